"""Registrations on one stream: each is a call of its own, and one that fails or hangs is nobody else's trouble."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

from utuple.errors import InvalidInput, Overloaded, UTupleError
from utuple.server.calls import register_stream
from utuple.server.calls.register_stream import Registering
from utuple.wire import utuple_pb2 as pb
from utuple.wire.status import error_described


class Wire:
    """What a client sends, and its end."""

    def __init__(self) -> None:
        self._sent: asyncio.Queue[pb.RegisterRequest | None] = asyncio.Queue()

    def send(self, number: int, limit_us: int = 0) -> None:
        self._sent.put_nowait(pb.RegisterRequest(number=number, limit_us=limit_us))

    def end(self) -> None:
        self._sent.put_nowait(None)

    async def requests(self) -> AsyncIterator[pb.RegisterRequest]:
        while (request := await self._sent.get()) is not None:
            yield request


class Writer:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.waiting: dict[int, asyncio.Future[pb.RegisterAnswer]] = {}

    def stream(self) -> Registering[pb.RegisterAnswer]:
        return Registering(self._submit, lambda answer: answer)

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
        wire.send(number)
    wire.end()
    async with aclosing(writer.stream().serve(wire.requests())) as answers:
        first = asyncio.ensure_future(anext(answers))
        await writer.has(3)
        writer.answer(2)
        assert (await first).number == 2
        writer.answer(3)
        writer.answer(1)
        rest = [answer async for answer in answers]
    assert [(one.number, one.load.queued) for one in rest] == [(3, 3.0), (1, 1.0)]


async def test_one_that_fails_is_told_why_and_the_others_go_on() -> None:
    wire, writer = Wire(), Writer()
    for number in range(4):
        wire.send(number)
    wire.end()
    async with aclosing(writer.stream().serve(wire.requests())) as answers:
        first = asyncio.ensure_future(anext(answers))
        await writer.has(4)
        writer.fail(0, Overloaded("full", retry_after_s=2.5))
        writer.fail(1, InvalidInput("latitude", 91, "at most 90"))
        writer.fail(2, ValueError("a bug"))
        writer.answer(3)
        told = {one.number: one for one in [await first, *[answer async for answer in answers]]}
    full, wrong, bug = failure(told[0]), failure(told[1]), failure(told[2])
    assert isinstance(full, Overloaded) and full.retry_after_s == 2.5
    assert isinstance(wrong, InvalidInput) and wrong.field == "latitude"
    assert type(bug).__name__ == "OutcomeUnknown"
    assert not told[3].failure


async def test_what_nobody_waits_for_any_longer_is_taken_back_before_its_turn() -> None:
    wire, writer = Wire(), Writer()
    wire.send(1, limit_us=1)
    wire.end()
    async with aclosing(writer.stream().serve(wire.requests())) as answers:
        async with asyncio.timeout(5.0):
            assert [answer async for answer in answers] == []
    assert writer.waiting[1].cancelled()


async def test_who_waits_longer_is_not_taken_back_with_those_who_do_not() -> None:
    wire, writer = Wire(), Writer()
    wire.send(1, limit_us=60_000_000)
    wire.send(2, limit_us=1)
    wire.send(4, limit_us=5_000)
    wire.send(3)
    stream = writer.stream()
    async with aclosing(stream.serve(wire.requests())) as answers:
        first = asyncio.ensure_future(anext(answers))
        await writer.has(4)
        async with asyncio.timeout(5.0):
            await asyncio.wait([writer.waiting[2], writer.waiting[4]])
        assert writer.waiting[2].cancelled() and writer.waiting[4].cancelled()
        assert not writer.waiting[1].done() and not writer.waiting[3].done()
        writer.answer(1)
        writer.answer(3)
        wire.end()
        assert {(await first).number, *[one.number async for one in answers]} == {1, 3}


async def test_a_client_that_goes_takes_back_what_the_writer_has_not_come_to() -> None:
    wire, writer = Wire(), Writer()
    wire.send(1)
    answers = writer.stream().serve(wire.requests())
    first = asyncio.ensure_future(anext(answers))
    await writer.has(1)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await answers.aclose()
    await asyncio.sleep(0)
    assert writer.waiting[1].cancelled()


async def test_a_server_that_stops_answers_what_it_has_read_and_ends_the_stream() -> None:
    wire, writer = Wire(), Writer()
    wire.send(1)
    stream = writer.stream()
    async with aclosing(stream.serve(wire.requests())) as answers:
        first = asyncio.ensure_future(anext(answers))
        await writer.has(1)
        stream.close()
        writer.answer(1)
        assert (await first).number == 1
        assert await anext(answers, None) is None


async def test_no_more_are_read_than_may_be_unanswered() -> None:
    wire, writer = Wire(), Writer()
    most = register_stream.MOST_UNANSWERED
    for number in range(most + 5):
        wire.send(number)
    async with aclosing(writer.stream().serve(wire.requests())) as answers:
        first = asyncio.ensure_future(anext(answers))
        await writer.has(most)
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(writer.waiting) == most
        writer.answer(0)
        assert (await first).number == 0
        await writer.has(most + 1)
