"""Chores: what delivery adds to the next transaction. Positions, lifetimes of formals, and notes of their readers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from utuple.server.delivering.absent.away import AwayReaders
from utuple.server.delivering.acknowledged import AcknowledgedElsewhere
from utuple.server.delivering.cursors import Cursors
from utuple.server.delivering.sharing.seats import Seats
from utuple.server.ports import DeliveryPort
from utuple.server.writing.lifetimes import Lifetimes
from utuple.server.writing.transaction import Housekeeping
from utuple.store.contract import FormalPosition


class Chores:
    def __init__(
        self,
        engine: DeliveryPort,
        cursors: Cursors,
        away: AwayReaders,
        seats: Seats,
        elsewhere: AcknowledgedElsewhere,
    ) -> None:
        self._engine, self._elsewhere = engine, elsewhere
        self._cursors, self._away, self._seats = cursors, away, seats
        self.lifetimes = Lifetimes()
        self.gone: dict[str, bytes | None] = {}
        """Notes of formals that were forgotten."""
        self._is_saving = False
        """The next transaction makes positions durable."""
        self._saving: asyncio.TimerHandle | None = None
        self._last_saved = 0
        """Positions, when some were saved last."""

    @property
    def are_there(self) -> bool:
        has_notes = self._away.has_notes or bool(self._elsewhere.unsaved)
        return self._is_saving or bool(self.lifetimes.changed) or has_notes

    def pop(self) -> Housekeeping:
        """For the transaction that is prepared now: what is said later is for the next."""
        if not self.are_there:
            return Housekeeping()
        positions: Sequence[FormalPosition] = ()
        notes, self.gone = self.gone | self._away.pop_notes(), {}
        notes |= self._elsewhere.pop_unsaved()
        if self._is_saving:
            positions, self._is_saving = self._cursors.unsaved_positions(), False
            self._last_saved, notes = len(positions), notes | self._seats.pop_notes()
        renewed = self.lifetimes.pop_changed() if self.lifetimes.changed else ()
        return Housekeeping(positions, renewed, notes)

    def save(self) -> None:
        """With the next transaction."""
        self._is_saving = True
        self._saving = None
        self._engine.wake()

    def save_soon(self) -> None:
        if self._saving is None:
            wait_s = self._engine.config.gathering_s(self._last_saved)
            self._saving = asyncio.get_running_loop().call_later(wait_s, self.save)
