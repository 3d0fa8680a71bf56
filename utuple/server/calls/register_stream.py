"""One client's stream of registrations: each is its own call, and answered by its number when it is done. On a stream
it costs both sides half of what a call of gRPC costs. No gRPC here: errors travel as answers.

Neither a registration nor its answer has a task. A request is submitted in the turn of the event loop in which it came,
and its answer is sent by the callback of the future that the writer settles.

Backpressure: the stream is not read while `MAX_UNANSWERED` requests wait for the writer, or while answers wait for room
because the client does not read them. So neither can pile up here. Nor while its caller is over its share, since all of it
would be refused: who does not heed "try again after" makes us refuse once a second, and not as often as it can ask.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from math import inf
from typing import Generic, TypeVar

from utuple.errors import OutcomeUnknown, UTupleError
from utuple.model.columns import MICROSECONDS
from utuple.runtime.logs import Log
from utuple.transport.duplex import Duplex
from utuple.wire import utuple_pb2 as pb
from utuple.wire.status import described

_log = Log("utuple.server.calls.register_stream")

MAX_UNANSWERED = 1_000
"""On one stream. How many bytes each may hold is limited by the writer's queue."""

_MOST_HELD_BACK_S = 1.0
"""Who is over its share is heard again after this at the latest, to be told how long it lasts."""

T = TypeVar("T")

Submit = Callable[[pb.RegisterRequest, float | None], asyncio.Future[T]]
"""The second argument is how long the caller waits, if it says so. Cancelling the future withdraws the registration."""


class RegisterStream(Generic[T]):
    def __init__(
        self,
        submit: Submit[T],
        to_wire: Callable[[T], pb.RegisterAnswer],
        stream: Duplex,
        wait_s: Callable[[pb.RegisterRequest], float] = lambda _: 0.0,
    ) -> None:
        """`wait_s`: until this is within its caller's share."""
        self._wait_s = wait_s
        self._held_back: asyncio.TimerHandle | None = None
        self._submit = submit
        self._to_wire = to_wire
        self._stream = stream
        self._receiving: asyncio.Task[None] | None = None
        self._unanswered: dict[asyncio.Future[T], float] = {}
        """Each with its deadline: from then on nobody waits for it."""
        self._all_answered = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_s = inf
        """When the timer fires: at the earliest of the deadlines, or before it. One timer serves all of them."""

    async def serve(self) -> None:
        """Until the client ends it, or `close`; what was received by then is answered first. When the client has gone,
        this is cancelled, and what the writer has not come to yet is not registered."""
        self._stream.when_writable(self._resume_if_room)
        self._receiving = asyncio.create_task(self._stream.receive_all(self._received))
        try:
            await asyncio.wait((self._receiving,))
            while self._unanswered:
                self._all_answered.clear()
                await self._all_answered.wait()
            if not self._receiving.cancelled():
                self._receiving.result()  # raises if a message could not be read
        finally:
            self._receiving.cancel()
            for waiting in list(self._unanswered):
                waiting.cancel()
            for timer in (self._timer, self._held_back):
                if timer is not None:
                    timer.cancel()

    def close(self) -> None:
        """The server stops: receive no more."""
        if self._receiving is not None:
            self._receiving.cancel()

    def _received(self, request: pb.RegisterRequest) -> None:
        limit_s = request.limit_us / MICROSECONDS or None
        try:
            waiting = self._submit(request, limit_s)
        except Exception as error:  # noqa: BLE001  a bug, or its caller's fault: the others on the stream go on
            self._send(request.number, _failure(error))
            if (wait_s := self._wait_s(request)) > 0:
                self._hold_back(wait_s)
            return
        deadline_s = inf if limit_s is None else asyncio.get_running_loop().time() + limit_s
        self._unanswered[waiting] = deadline_s
        waiting.add_done_callback(partial(self._answered, request.number))
        if deadline_s < self._timer_s:
            self._set_timer(deadline_s)
        if not self._has_room:
            self._stream.pause()

    @property
    def _has_room(self) -> bool:
        return (
            len(self._unanswered) < MAX_UNANSWERED
            and self._stream.is_writable
            and self._held_back is None
        )

    def _hold_back(self, wait_s: float) -> None:
        if self._held_back is None:
            self._stream.pause()
            again_s = min(wait_s, _MOST_HELD_BACK_S)
            self._held_back = asyncio.get_running_loop().call_later(again_s, self._go_on)

    def _go_on(self) -> None:
        self._held_back = None
        self._resume_if_room()

    def _resume_if_room(self) -> None:
        if self._has_room:
            self._stream.resume()

    def _set_timer(self, when_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_s = when_s
        self._timer = asyncio.get_running_loop().call_at(when_s, self._withdraw_late)

    def _withdraw_late(self) -> None:
        """Whoever registered these has given up by now."""
        self._timer, self._timer_s = None, inf
        now_s, earliest_s = asyncio.get_running_loop().time(), inf
        for waiting, deadline_s in list(self._unanswered.items()):
            if deadline_s <= now_s:
                waiting.cancel()
            else:
                earliest_s = min(earliest_s, deadline_s)
        if earliest_s < inf:
            self._set_timer(earliest_s)

    def _answered(self, number: int, done: asyncio.Future[T]) -> None:
        del self._unanswered[done]
        if not done.cancelled():  # else its caller has given up, as it said it would
            error = done.exception()
            answer = self._to_wire(done.result()) if error is None else _failure(error)
            self._send(number, answer)
        if not self._unanswered:
            self._all_answered.set()
        self._resume_if_room()

    def _send(self, number: int, answer: pb.RegisterAnswer) -> None:
        answer.number = number
        self._stream.send(answer)


def _failure(error: BaseException) -> pb.RegisterAnswer:
    if not isinstance(error, UTupleError):
        _log.error("registration failed", reason=repr(error))
        error = OutcomeUnknown(f"a bug: {error}")
    return pb.RegisterAnswer(failure=described(error))
