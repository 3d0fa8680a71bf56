"""Preparing: one attempt to bring a move to its commit point. Whoever must know or hold something first is made ready, and
only then is the new epoch decided, in the writer's order.

What has to be prepared depends on the kind of move:

    somebody comes on            it is taught every EF and CA of the section
    a member is released         it has heard of the line in which it is off, and holds nothing
    a member is drained          the same, and its rows are at the heir
    the home itself leaves       the next home is ready
    otherwise                    nothing: the commit alone
"""

from __future__ import annotations

from dataclasses import dataclass

from utuple.cluster.line import Line
from utuple.cluster.move import MoveKind, target
from utuple.cluster.record import MoveRecord
from utuple.model.columns import MICROSECONDS
from utuple.runtime.clock import now_us
from utuple.runtime.logs import Log
from utuple.server.moving.servers import GivenUp, NotReady, OtherServers
from utuple.server.moving.shipping import Shipping
from utuple.server.moving.steps import CheckLine, Commit
from utuple.server.moving.teaching import Teaching
from utuple.server.ports import MovePort

_log = Log("utuple.server.moving.preparing")
_CUTS = 5
"""Cuts in one attempt before everything is taught anew."""


@dataclass(slots=True)
class Effort:
    """What a move cost so far."""

    copied: int = 0
    rows: int = 0
    held_us: int = 0
    cuts: int = 0


class Preparing:
    def __init__(self, port: MovePort, others: OtherServers, shipping: Shipping) -> None:
        self._port = port
        self._others = others
        self._shipping = shipping

    async def attempt(self, record: MoveRecord, effort: Effort) -> bool:
        """Prepare everyone, then commit. False: prepare again at once. Raises what may pass, or GivenUp."""
        move, line, own = record.move, record.before, self._port.config.name
        after = target(move, line)
        if move.learner not in (None, own):  # a home knows every EF and CA
            return await self._teach(record, str(move.learner), after, effort)
        if move.leaves:
            await self._require_that_it_is_off(line, move.member)
        if move.kind is MoveKind.RELEASE:
            await self._require_vacancy(line, move.member)
        if move.kind is MoveKind.DRAIN:
            effort.rows = await self._ship(record)
            await self._others.make_ready(move.helper, record.id, after, shipped=effort.rows)
        if after[0].home not in (line.home, move.helper):
            await self._others.make_ready(after[0].home, record.id, after)
        return await self._commit(record, None, effort)

    async def _commit(self, record: MoveRecord, cut: int | None, effort: Effort) -> bool:
        step = Commit(record.id, cut, effort.copied, effort.rows, effort.cuts)
        outcome = await self._port.step(step)
        if outcome.done:
            return True
        if cut is None:
            raise GivenUp(outcome.reason)
        _log.info("cut not held", move=record.id.hex(), reason=outcome.reason)
        return False

    # --- somebody comes on -----------------------------------------------------------------------

    async def _teach(
        self, record: MoveRecord, learner: str, after: tuple[Line, ...], effort: Effort
    ) -> bool:
        teaching = Teaching(self._port, self._others, record, learner)
        await teaching.teach_all()
        # The first cut is made without a hold: where no EF or CA comes just then, nobody waits.
        for number in range(_CUTS):
            began_us = now_us()
            release = self._port.hold(record.move.learned) if number else None
            try:
                cut = await teaching.teach_rest()
                await teaching.make_ready(after)
                effort.copied = teaching.count
                effort.cuts += 1
                if await self._commit(record, cut, effort):
                    return True
            finally:
                if release is not None:
                    release()
                    most_us = round(self._port.config.hold_limit_s * MICROSECONDS)
                    effort.held_us += min(now_us() - began_us, most_us)
        return False

    # --- a member leaves -------------------------------------------------------------------------

    async def _require_that_it_is_off(self, line: Line, member: str) -> None:
        """It must have heard of this line: by an older one it could still be on, and take what nobody would look for."""
        if member != self._port.config.name and not await self._others.hear(member, [line]):
            raise NotReady(f"{member} has not taken {line}")

    async def _require_vacancy(self, line: Line, member: str) -> None:
        if member == self._port.config.name:
            reason = await self.vacancy(line)
        else:
            reason = await self._others.vacancy(member, line)
        if reason:
            raise GivenUp(f"{member} cannot leave: {reason}")

    async def vacancy(self, line: Line) -> str:
        """Empty if this server is off by this very line and holds nothing of it; else why not."""
        checked = await self._port.step(CheckLine(line))
        if not checked.done:
            return checked.reason
        (census,) = await self._port.store.census([line.section], now_us())
        return "" if census.is_empty else f"it holds {census.rows} uTuples"

    async def _ship(self, record: MoveRecord) -> int:
        """All rows of the drained member are at the heir; how many there are."""
        move, line = record.move, record.before
        heir = self._others.info(move.helper)
        if move.member == self._port.config.name:
            return await self._shipping.bring(record.id, line, heir)
        while True:
            rows = await self._others.ship(move.member, record.id, line, heir)
            if rows is not None:
                return rows
