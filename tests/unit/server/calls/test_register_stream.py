"""Registrations on one stream: each is a call of its own, and one that fails or hangs is nobody else's trouble."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from utuple.errors import InvalidInput, Overloaded, UTupleError
from utuple.server.calls import register_stream
from utuple.server.calls.register_stream import RegisterStream
from utuple.wire import utuple_pb2 as pb
from utuple.wire.status import error_described


class Wire:
    """What a client sends, and its end; and what it is answered."""

    def __init__(self) -> None:
        self._received: deque[pb.RegisterRequest] = deque()
        self._handle: Callable[[pb.RegisterRequest], None] | None = None
        self._is_paused = False
        self._end = asyncio.Event()
        self._resume: Callable[[], None] = lambda: None
        self.is_writable = True
        self.answers: asyncio.Queue[pb.RegisterAnswer] = asyncio.Queue()

    # --- the client's end

    def request(self, number: int, limit_us: int = 0) -> None:
        self._received.append(pb.RegisterRequest(number=number, limit_us=limit_us))
        self._give()

    def end(self) -> None:
        self._end.set()

    def make_room(self) -> None:
        self.is_writable = True
        self._resume()

    # --- the server's end

    async def receive_all(self, handle: Callable[[pb.RegisterRequest], None]) -> None:
        self._handle = handle
        self._give()
        await self._end.wait()

    def _give(self) -> None:
        while self._handle and self._received and not self._is_paused:
            self._handle(self._received.popleft())

    def pause(self) -> None:
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False
        self._give()

    def send(self, answer: pb.RegisterAnswer) -> None:
        self.answers.put_nowait(answer)

    def when_writable(self, resume: Callable[[], None]) -> None:
        self._resume = resume

    async def drained(self) -> bool:
        return True


class Writer:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.waiting: dict[int, asyncio.Future[pb.RegisterAnswer]] = {}

    def stream(self, wire: Wire) -> RegisterStream[pb.RegisterAnswer]:
        return RegisterStream(self._submit, lambda answer: answer, wire)

    def _submit(
        self, request: pb.RegisterRequest, left_s: float | None
    ) -> asyncio.Future[pb.RegisterAnswer]:
        self.waiting[request.number] = asyncio.get_running_loop().create_future()
        return self.waiting[request.number]

    def answer(self, number: int) -> None:
        self.waiting[number].set_result(pb.RegisterAnswer(load=pb.Load(queued=number)))

    def fail(self, number: int, error: Exception) -> None:
        self.waiting[number].set_exception(error)

    async def has(self, count: int) -> None:
        while len(self.waiting) < count:  # noqa: ASYNC110  turns of the loop, not time
            await asyncio.sleep(0)


def failure(answer: pb.RegisterAnswer) -> UTupleError:
    return error_described(answer.failure, sent="register")


async def test_each_is_answered_by_its_number_in_whatever_order() -> None:
    wire, writer = Wire(), Writer()
    for number in (1, 2, 3):
        wire.request(number)
    wire.end()
    serving = asyncio.create_task(writer.stream(wire).serve())
    await writer.has(3)
    for number in (2, 3, 1):
        writer.answer(number)
    await serving
    answers = [wire.answers.get_nowait() for _ in range(3)]
    assert [(one.number, one.load.queued) for one in answers] == [(2, 2.0), (3, 3.0), (1, 1.0)]


async def test_one_that_fails_is_told_why_and_the_others_go_on() -> None:
    wire, writer = Wire(), Writer()
    for number in range(4):
        wire.request(number)
    wire.end()
    serving = asyncio.create_task(writer.stream(wire).serve())
    await writer.has(4)
    writer.fail(0, Overloaded("full", retry_after_s=2.5))
    writer.fail(1, InvalidInput("latitude", 91, "at most 90"))
    writer.fail(2, ValueError("a bug"))
    writer.answer(3)
    await serving
    told = {one.number: one for one in [wire.answers.get_nowait() for _ in range(4)]}
    full, wrong, bug = failure(told[0]), failure(told[1]), failure(told[2])
    assert isinstance(full, Overloaded) and full.retry_after_s == 2.5
    assert isinstance(wrong, InvalidInput) and wrong.field == "latitude"
    assert type(bug).__name__ == "OutcomeUnknown"
    assert not told[3].failure


async def test_what_nobody_waits_for_any_longer_is_taken_back_before_its_turn() -> None:
    wire, writer = Wire(), Writer()
    wire.request(1, limit_us=1)
    wire.end()
    async with asyncio.timeout(5.0):
        await writer.stream(wire).serve()
    assert wire.answers.empty()
    assert writer.waiting[1].cancelled()


async def test_who_waits_longer_is_not_taken_back_with_those_who_do_not() -> None:
    wire, writer = Wire(), Writer()
    wire.request(1, limit_us=60_000_000)
    wire.request(2, limit_us=1)
    wire.request(4, limit_us=5_000)
    wire.request(3)
    serving = asyncio.create_task(writer.stream(wire).serve())
    await writer.has(4)
    async with asyncio.timeout(5.0):
        await asyncio.wait([writer.waiting[2], writer.waiting[4]])
    assert writer.waiting[2].cancelled() and writer.waiting[4].cancelled()
    assert not writer.waiting[1].done() and not writer.waiting[3].done()
    writer.answer(1)
    writer.answer(3)
    wire.end()
    await serving
    assert {wire.answers.get_nowait().number for _ in range(2)} == {1, 3}


async def test_a_client_that_goes_takes_back_what_the_writer_has_not_come_to() -> None:
    wire, writer = Wire(), Writer()
    wire.request(1)
    serving = asyncio.create_task(writer.stream(wire).serve())
    await writer.has(1)
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    assert writer.waiting[1].cancelled()


async def test_a_server_that_stops_answers_what_it_has_read_and_ends_the_stream() -> None:
    wire, writer = Wire(), Writer()
    wire.request(1)
    stream = writer.stream(wire)
    serving = asyncio.create_task(stream.serve())
    await writer.has(1)
    stream.close()
    writer.answer(1)
    async with asyncio.timeout(5.0):
        await serving
    assert (await wire.answers.get()).number == 1


async def test_no_more_are_read_than_may_be_unanswered() -> None:
    wire, writer = Wire(), Writer()
    most = register_stream.MAX_UNANSWERED
    for number in range(most + 5):
        wire.request(number)
    serving = asyncio.create_task(writer.stream(wire).serve())
    await writer.has(most)
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(writer.waiting) == most
    writer.answer(0)
    assert (await wire.answers.get()).number == 0
    await writer.has(most + 1)
    serving.cancel()


async def test_no_more_are_read_while_answers_wait_for_a_client_that_does_not_read_them() -> None:
    wire, writer = Wire(), Writer()
    wire.is_writable = False
    for number in range(3):
        wire.request(number)
    serving = asyncio.create_task(writer.stream(wire).serve())
    await writer.has(1)
    writer.answer(0)
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(writer.waiting) == 1
    wire.make_room()
    assert len(writer.waiting) == 3
    serving.cancel()


async def test_who_is_over_its_share_is_not_read_while_it_is() -> None:
    """Else refusing would cost as much as it can ask for."""
    wire, over_s = Wire(), [0.05]
    refused: list[int] = []

    def submit(request: pb.RegisterRequest, _: float | None) -> asyncio.Future[pb.RegisterAnswer]:
        refused.append(request.number)
        raise Overloaded("over", retry_after_s=over_s[0])

    def wait_s(request: pb.RegisterRequest) -> float:
        assert request.number == refused[-1], "as long as what was refused has to wait"
        return over_s[0]

    stream = RegisterStream(submit, lambda answer: answer, wire, wait_s)
    for number in range(4):
        wire.request(number)
    serving = asyncio.create_task(stream.serve())
    assert (await wire.answers.get()).number == 0
    for _ in range(20):
        await asyncio.sleep(0)
    wire.make_room()
    assert refused == [0], "nor when there is room for answers again"
    over_s[0] = 0.0  # from here on each is refused for another reason
    assert [(await wire.answers.get()).number for _ in range(3)] == [1, 2, 3]
    serving.cancel()
