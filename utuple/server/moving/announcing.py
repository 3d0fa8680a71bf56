"""Announcing: everyone concerned is told that a move is committed, or that it was given up, and told again until it has
heard."""

from __future__ import annotations

import asyncio

from utuple.cluster.line import Line
from utuple.cluster.move import MoveKind
from utuple.cluster.record import MoveRecord
from utuple.runtime.logs import Log
from utuple.server.moving.servers import TRANSIENT, OtherServers
from utuple.server.moving.shipping import Shipping
from utuple.server.ports import MovePort

_log = Log("utuple.server.moving.announcing")
_CALL_OFF_ATTEMPTS = 5
"""How often a learner is told that it may forget; what it keeps of it does no harm."""


class Announcing:
    def __init__(self, port: MovePort, others: OtherServers, shipping: Shipping) -> None:
        self._port = port
        self._others = others
        self._shipping = shipping

    async def announce(self, record: MoveRecord) -> None:
        """The new lines, to everyone who must know, each on its own, until all do."""
        names = sorted(record.audience - {self._port.config.name})
        await asyncio.gather(*(self._announce_to(record, name) for name in names))

    async def _announce_to(self, record: MoveRecord, name: str) -> None:
        pauses = self._others.retry_pauses()
        while not self._is_excused(record, name):
            try:
                if await self._others.hear(name, self._current(record)):
                    return
            except TRANSIENT as error:
                _log.info("not announced yet", server=name, order=record.move, reason=error)
            await pauses.wait()

    def _current(self, record: MoveRecord) -> list[Line]:
        """What has become of the section by now."""
        return self._port.lines.overlapping(record.move.section)

    def _is_excused(self, record: MoveRecord, name: str) -> bool:
        """Who is suspended meanwhile hears of it when it returns; but not a drain's heir, whose shadows wait for this."""
        if record.move.kind is MoveKind.DRAIN and name == record.move.helper:
            return False
        members = [line.member(name) for line in self._current(record)]
        there = [member for member in members if member is not None]
        return bool(there) and all(member.suspended for member in there)

    async def call_off(self, record: MoveRecord) -> None:
        """Whoever took part forgets it; the drained first, so that nothing more is shipped."""
        move = record.move
        for name in move.servers if move.kind is MoveKind.DRAIN else (move.learner,):
            if name:
                await self._call_off_at(record, name)

    async def _call_off_at(self, record: MoveRecord, name: str) -> None:
        pauses = self._others.retry_pauses()
        attempts = 0
        while record.move.kind is MoveKind.DRAIN or attempts < _CALL_OFF_ATTEMPTS:
            attempts += 1
            try:
                return await self._forget_at(name, record.id)
            except TRANSIENT as error:
                _log.info("not called off yet", server=name, order=record.move, reason=error)
            await pauses.wait()

    async def _forget_at(self, name: str, move: bytes) -> None:
        """Here too it may have to be tried again: the store may be lost at this moment."""
        if name == self._port.config.name:
            await self._shipping.forget(move)
        else:
            await self._others.forget(name, move)
