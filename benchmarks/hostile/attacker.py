"""python -m benchmarks.hostile.attacker SETTINGS: strangers, who come again as soon as they are hung up on."""

from __future__ import annotations

import asyncio
import resource
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, cast

from benchmarks.apart import step_back
from benchmarks.child import Answer, answer_questions, settings
from benchmarks.hostile.attacks import ATTACKS, TLS_ATTACKS, Attack
from utuple.runtime.program import run_program

AGAIN_PER_S = 160.0
"""New connections of all strangers together, after the first ones: what one machine on a network can do, and not so many that it
is the kernel that is measured."""
_FILES = 8192


class Stranger(asyncio.Protocol):
    """Says the next piece whenever the kernel has taken the last."""

    def __init__(self, attack: Attack, ended: asyncio.Event) -> None:
        self._attack = attack
        self._pieces: Iterator[bytes] = attack.says()
        self._ended = ended
        self._is_paused = False
        self._transport: asyncio.Transport | None = None
        self.sent_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if not self._attack.reads:
            self._transport.pause_reading()
        self._go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._ended.set()

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self._go_on()

    def _go_on(self) -> None:
        transport = self._transport
        if transport is None or self._is_paused or transport.is_closing():
            return
        piece = next(self._pieces, None)
        if piece is None:
            return
        transport.write(piece)
        self.sent_bytes += len(piece)
        asyncio.get_running_loop().call_later(self._attack.pause_s, self._go_on)


class Strangers:
    def __init__(self, host: str, port: int) -> None:
        self._where = host, port
        self._connected = 0
        self._sent_bytes = 0

    async def attack(self, question: Mapping[str, Any]) -> Answer:
        self._connected = self._sent_bytes = 0
        attack = {**ATTACKS, **TLS_ATTACKS}[question["name"]]
        with suppress(TimeoutError):
            async with asyncio.timeout(question["seconds"]), asyncio.TaskGroup() as group:
                for _ in range(attack.connections):
                    group.create_task(self._again_and_again(attack, question["own_address"]))
        return {"connections": self._connected, "sent_mb": self._sent_bytes / (1 << 20)}

    async def _again_and_again(self, attack: Attack, own_address: str) -> None:
        loop = asyncio.get_running_loop()
        while True:
            ended = asyncio.Event()
            stranger = Stranger(attack, ended)
            transport = None
            try:
                transport, _ = await loop.create_connection(
                    lambda stranger=stranger: stranger,  # type: ignore[misc]
                    *self._where,
                    local_addr=(own_address, 0),
                )
                self._connected += 1
                await ended.wait()
            except OSError:
                pass  # not let in
            finally:
                self._sent_bytes += stranger.sent_bytes
                if transport is not None:
                    transport.abort()
            await asyncio.sleep(attack.connections / AGAIN_PER_S)


async def main(stop: asyncio.Event) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(_FILES, hard), hard))
    step_back()
    given = settings()
    strangers = Strangers(given["host"], given["port"])
    await answer_questions({"attack": strangers.attack}, stop)


if __name__ == "__main__":
    sys.exit(run_program("strangers", main))
