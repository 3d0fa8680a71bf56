"""A load generator: a process of its own, asked by lines of JSON on its standard input and answering by one
line each. When its input ends, because whoever started it has gone, it ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

from benchmarks.benchmark import BenchFailed
from utuple.errors import UTupleError

LINE_LIMIT_BYTES = 1 << 20
_STOP_LIMIT_S = 10.0
_LOG_TAIL = 5

Answer = dict[str, Any]
Handler = Callable[[Mapping[str, Any]], Awaitable[Answer]]


class Child:
    """As the benchmark sees it."""

    def __init__(
        self,
        module: str,
        settings: Mapping[str, Any],
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`environment`: beside our own."""
        self._environment = environment or {}
        self._module = module
        self._settings = settings
        self._log = log
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Child:
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", self._module),
                orjson.dumps(self._settings).decode(),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                limit=LINE_LIMIT_BYTES,
                env={**os.environ, **self._environment},
                start_new_session=True,  # Ctrl-C is for us; we end it
            )
        return self

    async def __aexit__(self, *_: object) -> None:
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(_STOP_LIMIT_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def ask(self, do: str, **arguments: Any) -> Answer:
        """Its answer. One question at a time."""
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(orjson.dumps({"do": do, **arguments}) + b"\n")
            await process.stdin.drain()
            line = await process.stdout.readline()
        except (BrokenPipeError, ConnectionResetError):
            line = b""
        if not line:
            code = await process.wait()
            tail = "\n".join(self._log.read_text(errors="replace").splitlines()[-_LOG_TAIL:])
            raise BenchFailed(f"{self._module} ended with exit code {code}:\n{tail}")
        answer: Answer = orjson.loads(line)
        if "error" in answer:
            raise BenchFailed(f"{self._module}: {answer['error']}")
        return answer


async def answer_questions(handlers: Mapping[str, Handler], stop: asyncio.Event) -> None:
    """In the child: until the input ends, or it is told to stop."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(LINE_LIMIT_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    stopping = asyncio.create_task(stop.wait())
    stopping.add_done_callback(lambda _: reader.feed_eof())
    while line := await reader.readline():
        question = orjson.loads(line)
        try:
            answer = await handlers[question.pop("do")](question)
        except UTupleError as error:
            answer = {"error": str(error)}
        _say(answer)
    stopping.cancel()


def _say(answer: Answer) -> None:
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.buffer.write(orjson.dumps(answer) + b"\n")
        sys.stdout.buffer.flush()


def settings() -> dict[str, Any]:
    """What the benchmark gave this child."""
    given: dict[str, Any] = orjson.loads(sys.argv[1])
    return given
