"""What every verb works with, put together once for a space."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from utuple.client.config import Config
from utuple.client.event_loop import Home
from utuple.client.receiving.session import Sessions
from utuple.client.routing.lines import Lines
from utuple.client.routing.outcome import fate_of, given_up, is_unknown, retry_after_s
from utuple.client.routing.registrar import Registrar
from utuple.client.routing.retry import GiveUp, Tries, after
from utuple.client.sending.batcher import Batcher
from utuple.client.transport import Transport
from utuple.errors import UTupleError
from utuple.model.identity import uuid7

_ID_BITS = 74


@dataclass(frozen=True, slots=True)
class Parts:
    config: Config
    transport: Transport
    dice: random.Random
    now_us: Callable[[], int]
    lines: Lines
    batcher: Batcher
    registrar: Registrar
    sessions: Sessions
    home: Home

    def new_id(self) -> bytes:
        return uuid7(self.now_us(), self.random_bits())

    def random_bits(self) -> int:
        """As many as a UUIDv7 takes."""
        return self.dice.getrandbits(_ID_BITS)

    def tries(self, *, retry: bool = False) -> Tries:
        """A call begins now."""
        self.home.check()
        return Tries(asyncio.get_running_loop().time() + self.config.timeout_s, retry=retry)

    async def wait_after(self, error: UTupleError, tries: Tries, pending: object = None) -> Tries:
        """After a failed attempt at the one server there is for it: wait, or raise."""
        fate = fate_of(error)
        if fate is None:
            raise given_up(error, unknown=is_unknown(error, tries), pending=pending) from None
        step = after(
            tries,
            fate,
            "",
            now_s=asyncio.get_running_loop().time(),
            dice=self.dice.random(),
            policy=self.config.retry,
            retry_after_s=retry_after_s(error),
        )
        if isinstance(step, GiveUp):
            raise given_up(error, unknown=step.unknown, pending=pending) from None
        await self.lines.pause(step.wait_s, {})
        return step.tries

    async def close(self) -> None:
        await self.batcher.close()
        await self.sessions.close()
        await self.lines.close()
        await self.transport.close()


def put_together(
    managers: Sequence[str],
    config: Config,
    transport: Transport,
    dice: random.Random,
    now_us: Callable[[], int],
) -> Parts:
    lines = Lines(transport, managers, config)
    home = Home()
    sessions = Sessions(transport, lines, dice, config, now_us, home)
    batcher = Batcher(transport, lines, config)
    registrar = Registrar(lines, batcher, dice, config)
    return Parts(config, transport, dice, now_us, lines, batcher, registrar, sessions, home)
