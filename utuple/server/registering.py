"""One client's stream of registrations: each is its own call, and answered by its number when it is done. On a stream
it costs both sides half of what a call of gRPC costs. No gRPC here: errors travel as answers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

from utuple.errors import OutcomeUnknown, UTupleError
from utuple.model.columns import MICROSECONDS
from utuple.runtime.logs import Log
from utuple.wire import utuple_pb2 as pb
from utuple.wire.status import described

_log = Log("utuple.server.registering")

MOST_UNANSWERED = 1_000
"""On one stream; what comes beyond is not read yet. What each may hold is for the writer's queue to limit."""

Register = Callable[[pb.RegisterRequest, float | None], Awaitable[pb.RegisterAnswer]]
"""With how long its caller waits, if it says so."""


class Registering:
    def __init__(self, register: Register) -> None:
        self._register = register
        self._answers: deque[pb.RegisterAnswer] = deque()
        self._calls: set[asyncio.Task[None]] = set()
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
            while self._answers or self._calls or not self._is_closing:
                while self._answers:
                    yield self._answers.popleft()
                self._stir.clear()
                if self._calls or not self._is_closing:
                    await self._stir.wait()
        finally:
            for task in (listening, *self._calls):
                task.cancel()

    def close(self) -> None:
        self._is_closing = True
        self._stir.set()

    async def _listen(self, requests: AsyncIterator[pb.RegisterRequest]) -> None:
        try:
            async for request in requests:
                call = asyncio.create_task(self._answer(request))
                self._calls.add(call)
                call.add_done_callback(self._ended)
                while len(self._calls) >= MOST_UNANSWERED:
                    self._room.clear()
                    await self._room.wait()
        finally:
            self.close()

    def _ended(self, call: asyncio.Task[None]) -> None:
        self._calls.discard(call)
        self._room.set()
        self._stir.set()

    async def _answer(self, request: pb.RegisterRequest) -> None:
        left_s = request.limit_us / MICROSECONDS or None
        try:
            async with asyncio.timeout(left_s):
                answer = await self._register(request, left_s)
        except TimeoutError:
            return  # its caller has given up by now, as it said it would
        except UTupleError as error:
            answer = pb.RegisterAnswer(failure=described(error))
        except Exception as error:  # noqa: BLE001  a bug: told, and the others on the stream go on
            _log.exception("registration failed")
            answer = pb.RegisterAnswer(failure=described(OutcomeUnknown(f"a bug: {error}")))
        answer.number = request.number
        self._answers.append(answer)
        self._stir.set()
