"""What is left of earlier layouts of a partitioned line (utuple/cluster/past.py).

At the home: every member has heard of the line, and says what it holds that was taken by an earlier layout. Nothing can be added
to that any more, so that the answers are true for as long as the line stands. If they say less than the line does, the home
orders a `prune`, after a move of its own and now and then: nobody else would know when.

At a member that holds nothing of the kind: EFs outside of its share can meet nothing there, and go. That is done a few at a time
between registrations, and anew after a restart: nothing is noted of it but the line itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress

from utuple.cluster.line import Line
from utuple.cluster.move import Move, MoveKind
from utuple.cluster.past import History, Past
from utuple.model.columns import MICROSECONDS
from utuple.model.key import key_of
from utuple.model.section import Section
from utuple.model.utuple import Kind
from utuple.runtime.clock import now_us
from utuple.runtime.logs import Log
from utuple.server.moving.participant import keeps_a_share
from utuple.server.moving.servers import TRANSIENT, NotReady, OtherServers
from utuple.server.moving.steps import CheckHeard, Prune
from utuple.server.ports import MovePort
from utuple.store.contract import OWN_ORIGIN

Order = Callable[[Move], Awaitable[str]]
"""Have this move made; empty, or why it is not."""

_log = Log("utuple.server.moving.older")
_PORTION = 200
"""EFs that are looked at in one turn of the event loop: some milliseconds' work."""


class Older:
    def __init__(self, port: MovePort, others: OtherServers) -> None:
        self._port = port
        self._others = others
        self.lines_changed = asyncio.Event()

    async def tend_forever(self, order: Order) -> None:
        """Both of it, whenever lines have changed; what has to wait is tried again after a while."""
        config = self._port.config
        while True:
            self.lines_changed.clear()
            waits = await self._forget(order)
            pause_s = config.census_s if waits else None
            if not await self._prune_all():
                pause_s = config.tell_again_s
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self.lines_changed.wait()

    # --- at the home -----------------------------------------------------------------------------

    async def _forget(self, order: Order) -> bool:
        """Order what can be forgotten now. Is anything left that must wait?"""
        lines = [one for one in self._port.lines if one.past and one.home == self._port.config.name]
        for line in lines:
            why = "earlier layouts are heard of by nobody else, or nothing is left of them"
            move = Move(MoveKind.PRUNE, line.section, line.epoch, line.home, why=why)
            with suppress(*TRANSIENT):  # somebody does not answer: there is no hurry
                if await self.left(move) != line.past:
                    await order(move)
        return bool(lines)

    async def left(self, move: Move) -> History:
        """What members hold of each earlier layout of this section. Raises if one cannot say. The home itself is visited by
        every EF, so it need not be named."""
        line = self._port.lines.line_of(move.section.start)
        if line is None or line.section != move.section or line.epoch != move.epoch:
            raise NotReady(f"the line here is {line}")
        if any(member.suspended for member in line.members):
            raise NotReady("a member is suspended: it must return first")
        names = [one.name for one in line.members if one.name != self._port.config.name]
        answers = await asyncio.gather(*(self._held_by(name, line) for name in names))
        said = list(zip(names, answers, strict=True))
        found = (
            Past(one.layout, tuple((name, upto[at]) for name, upto in said if upto[at]))
            for at, one in enumerate(line.past)
        )
        return tuple(one for one in found if one.upto)

    async def _held_by(self, name: str, line: Line) -> list[int]:
        if not await self._others.hear(name, [line]):
            raise NotReady(f"{name} has not taken {line}")
        return await self._others.older(name, line)

    # --- at a member -----------------------------------------------------------------------------

    async def held(self, line: Line) -> list[int]:
        """Of each earlier layout: the last seq of what this server may hold of it, 0 if it holds nothing any more."""
        checked = await self._port.step(CheckHeard(line))
        if not checked.done:
            raise NotReady(checked.reason)
        first = 0 if self._owes(line.section) else await self._first_seq(line.section)
        found = []
        for one in line.past:
            known = one.upto_at(self._port.config.name)
            upto = checked.count if known is None else known
            found.append(upto if first is not None and first <= upto else 0)
        return found

    async def _first_seq(self, section: Section) -> int | None:
        """Of the EAs here that a reader may still be given; 0 if another server has brought some, None if there are none."""
        since_us = now_us() - round(self._port.config.late_s * MICROSECONDS)
        store = self._port.store
        for origin in (*await store.origins(), OWN_ORIGIN):
            async with aclosing(store.section_events(section, origin, 0, since_us)) as found:
                async for batch in found:
                    return batch.seqs[0] if origin == OWN_ORIGIN else 0
        return None

    def _owes(self, section: Section) -> bool:
        """Does a reader with a drop policy, who was away, have to hear from here what became of its absence?"""
        templates = self._port.writer.templates
        known = (templates.get(absence.formal) for absence in self._port.absences(""))
        return any(one is not None and key_of(*one.packed.family) in section for one in known)

    async def _prune_all(self) -> bool:
        name = self._port.config.name
        shares = [line for line in self._port.lines if keeps_a_share(line, name)]
        try:
            return all([await self._prune(line) for line in shares])
        except TRANSIENT:  # the store is lost, or this server stops
            return False

    async def _prune(self, line: Line) -> bool:
        """False: not now. Whether an EF is in the share follows from itself and the line, so that it may be decided here; whether
        the line is still this one is decided in the writer's order."""
        writer, name = self._port.writer, self._port.config.name
        here = {f for f in writer.index.count_by_family if key_of(*f) in line.section}
        ids = [
            id_
            for id_, one in writer.templates.items()
            if one.packed.kind is Kind.EF and one.packed.family in here
        ]
        pruned = 0
        for first in range(0, len(ids), _PORTION):
            known = (writer.templates.get(id_) for id_ in ids[first : first + _PORTION])
            outside = [
                one.packed.id
                for one in known
                if one is not None and name not in line.keepers(one.utuple)
            ]
            if outside and not (await self._port.step(Prune(line, outside))).done:
                return False
            pruned += len(outside)
            await asyncio.sleep(0)
        if pruned:
            _log.info("EFs of others' shares forgotten", line=line, count=pruned)
        return True
