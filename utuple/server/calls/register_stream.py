"""One client's stream of registrations: each is its own call, and answered by its number when it is done. On a stream
it costs both sides half of what a call of gRPC costs. No gRPC here: errors travel as answers.

A registration is a future and no task: a server that takes a thousand a second has better things to do.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from functools import partial
from math import inf
from typing import Generic, TypeVar

from utuple.errors import OutcomeUnknown, UTupleError
from utuple.model.columns import MICROSECONDS
from utuple.runtime.logs import Log
from utuple.wire import utuple_pb2 as pb
from utuple.wire.status import described

_log = Log("utuple.server.calls.register_stream")

MOST_UNANSWERED = 1_000
"""On one stream; what comes beyond is not read yet. What each may hold is for the writer's queue to limit."""

T = TypeVar("T")

Submit = Callable[[pb.RegisterRequest, float | None], asyncio.Future[T]]
"""With how long its caller waits, if it says so. To cancel what it gives is to take the registration back."""


def _never(answer: pb.RegisterAnswer) -> bool:
    return False


class Registering(Generic[T]):
    def __init__(
        self,
        submit: Submit[T],
        told: Callable[[T], pb.RegisterAnswer],
        say_now: Callable[[pb.RegisterAnswer], bool] = _never,
    ) -> None:
        """`say_now`: tries to say it at once; what it cannot is said by `serve`."""
        self._submit = submit
        self._told = told
        self._say_now = say_now
        self._answers: deque[pb.RegisterAnswer] = deque()
        self._unanswered: dict[asyncio.Future[T], float] = {}
        """With the instant from which on nobody waits any longer."""
        self._look: asyncio.TimerHandle | None = None
        self._looks_s = inf
        """When that is so of the first of them, or earlier: one timer for all."""
        self._stir = asyncio.Event()
        """Something was answered, or it is over."""
        self._room = asyncio.Event()
        self._is_closing = False

    async def serve(
        self, requests: AsyncIterator[pb.RegisterRequest]
    ) -> AsyncGenerator[pb.RegisterAnswer, None]:
        """Until the client ends it, or `close`; what was read by then is answered first. When the client has gone,
        what the writer has not come to yet is not registered."""
        listening = asyncio.create_task(self._listen(requests))
        try:
            while self._answers or self._unanswered or not self._is_closing:
                while self._answers:
                    yield self._answers.popleft()
                self._stir.clear()
                if self._unanswered or not self._is_closing:
                    await self._stir.wait()
        finally:
            listening.cancel()
            for waiting in list(self._unanswered):
                waiting.cancel()
            if self._look is not None:
                self._look.cancel()

    def close(self) -> None:
        self._is_closing = True
        self._stir.set()

    def take_now(self, request: pb.RegisterRequest) -> bool:
        """One that need not wait to be read. False: it must."""
        if self._is_closing or len(self._unanswered) >= MOST_UNANSWERED:
            return False
        self._begin(request)
        return True

    async def _listen(self, requests: AsyncIterator[pb.RegisterRequest]) -> None:
        try:
            async for request in requests:
                self._begin(request)
                while len(self._unanswered) >= MOST_UNANSWERED:
                    self._room.clear()
                    await self._room.wait()
        finally:
            self.close()

    def _begin(self, request: pb.RegisterRequest) -> None:
        left_s = request.limit_us / MICROSECONDS or None
        try:
            waiting = self._submit(request, left_s)
        except Exception as error:  # noqa: BLE001  a bug, or its caller's fault: the others on the stream go on
            self._say(request.number, _failure(error))
            return
        until_s = inf if left_s is None else asyncio.get_running_loop().time() + left_s
        self._unanswered[waiting] = until_s
        waiting.add_done_callback(partial(self._answered, request.number))
        if until_s < self._looks_s:
            self._look_at(until_s)

    def _look_at(self, when_s: float) -> None:
        if self._look is not None:
            self._look.cancel()
        self._looks_s = when_s
        self._look = asyncio.get_running_loop().call_at(when_s, self._take_back)

    def _take_back(self) -> None:
        """What nobody waits for any longer."""
        self._look, self._looks_s = None, inf
        now_s, left = asyncio.get_running_loop().time(), inf
        for waiting, until_s in list(self._unanswered.items()):
            if until_s <= now_s:
                waiting.cancel()
            else:
                left = min(left, until_s)
        if left < inf:
            self._look_at(left)

    def _answered(self, number: int, done: asyncio.Future[T]) -> None:
        del self._unanswered[done]
        self._room.set()
        if done.cancelled():  # its caller has given up by now, as it said it would
            self._stir.set()
            return
        error = done.exception()
        self._say(number, self._told(done.result()) if error is None else _failure(error))

    def _say(self, number: int, answer: pb.RegisterAnswer) -> None:
        answer.number = number
        if self._answers or not self._say_now(answer):
            self._answers.append(answer)
            self._stir.set()
        elif self._is_closing:
            self._stir.set()


def _failure(error: BaseException) -> pb.RegisterAnswer:
    if not isinstance(error, UTupleError):
        _log.error("registration failed", reason=repr(error))
        error = OutcomeUnknown(f"a bug: {error}")
    return pb.RegisterAnswer(failure=described(error))
