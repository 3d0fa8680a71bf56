"""Readers with a drop policy, as they come and go: opens and closes their absences, has the spans surveyed, and tells
readers what was dropped.

An orderly goodbye begins an absence at once. A connection that broke begins one only after `away_s`, since mostly the same
program is back by then; what arrives until then counts as arrived while it was connected. The same holds for EFs whose
readers are not here when the server starts, and for those it has learned."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import aclosing
from dataclasses import replace

from utuple.delivery.attachments import Attachments
from utuple.model.key import key_of
from utuple.model.terms import DropPolicy, decode_terms
from utuple.model.utuple import Kind
from utuple.runtime.clock import monotonic_s, now_us
from utuple.runtime.logs import Log
from utuple.runtime.tasks import Tasks
from utuple.server.delivering.absent.absences import Absence, Absences, Survey
from utuple.server.delivering.absent.presence import Presence, decode_presence
from utuple.server.delivering.cursor import Reading
from utuple.server.delivering.cursors import Cursors
from utuple.server.delivering.outbox import DropNotice
from utuple.server.delivering.reading.searching import searches
from utuple.server.matching.matched import Matches
from utuple.server.ports import DeliveryPort
from utuple.store.contract import (
    OWN_ORIGIN,
    Batch,
    Recovered,
    StoredTemplate,
    StoreUnavailable,
    Transaction,
)

_log = Log("utuple.server.delivering.absent.away")
_PRESENCE = "presence/"


class AwayReaders:
    def __init__(
        self,
        engine: DeliveryPort,
        cursors: Cursors,
        attached: Attachments[int],
        tasks: Tasks,
        send: Callable[[int, DropNotice], None],
    ) -> None:
        self._engine = engine
        self._cursors = cursors
        self._attached = attached
        self._tasks = tasks
        self._send = send
        self.absences = Absences()
        self.presence: dict[bytes, Presence] = {}
        """Of every EF with a drop policy."""
        self._leaving: dict[bytes, float] = {}
        """EFs whose readers are not here, and have not said goodbye: since when."""
        self._surveyed: set[bytes] = set()
        """Whose spans are being looked at."""
        self._notes: dict[str, bytes | None] = {}

    # --- with transactions -----------------------------------------------------------------------

    def take_over(self, recovered: Recovered) -> None:
        """The store was opened (again): what was noted since its last commit is gone, and noted anew."""
        self.absences.restore(recovered.notes)
        self._notes, self._surveyed = {}, set()
        for name, body in recovered.notes.items():
            formal = bytes.fromhex(name[len(_PRESENCE) :]) if name.startswith(_PRESENCE) else b""
            if formal and formal not in self.presence:
                self.presence[formal] = decode_presence(body)
        self._leaving = {}
        self._watch(recovered.templates)
        for absence in self.absences:
            if absence.formal not in self.presence and absence.origin == OWN_ORIGIN:
                self.absences.forget(absence.formal)
        for formal in [one for one in self.presence if one in self._attached]:
            self._return(formal)

    def _watch(self, templates: Iterable[StoredTemplate]) -> None:
        """Those of them that have a policy. Their readers are here, or are expected."""
        for stored in templates:
            if stored.packed.terms and policy_of(stored).drops:
                formal = stored.packed.id
                is_on = formal in self._attached
                self.presence.setdefault(formal, Presence(True, now_us()))
                if not is_on and not self.absences.is_open(formal):
                    self._leaving.setdefault(formal, monotonic_s())

    @property
    def has_notes(self) -> bool:
        return bool(self._notes or self.absences.unsaved)

    def pop_notes(self) -> dict[str, bytes | None]:
        """For the transaction that is prepared now."""
        notes, self._notes = self._notes, {}
        return notes | self.absences.pop_unsaved()

    def committed(self, transaction: Transaction, events: Iterable[tuple[Batch, Matches]]) -> None:
        self._watch(transaction.templates)
        if self.presence:
            for _, matches in events:
                for formal, rows in matches:
                    presence = self.presence.get(formal)
                    if presence is not None:
                        presence.arrived += len(rows)
        if transaction.notes:
            for formal in self.absences.committed(transaction.notes):
                if formal in self._attached:
                    self._pump(formal)

    # --- readers ---------------------------------------------------------------------------------

    def returned(self, formal: bytes) -> bool:
        """Its reader attaches. True: nothing is delivered yet, since the spans of its absences are not decided, durably."""
        if formal not in self.presence:
            return False
        self._leaving.pop(formal, None)
        self.presence[formal].turn(now_us(), is_on=True)
        self._note_presence(formal)
        self._return(formal)
        return not self.absences.is_saved(formal)

    def _return(self, formal: bytes) -> None:
        self.absences.close(formal, self._engine.writer.seq, now_us())
        if not self.absences.is_saved(formal):
            self._cursors.hold(formal)
        self._engine.wake()
        self._pump(formal)

    def left(self, formal: bytes, *, orderly: bool) -> None:
        """Its reader has gone."""
        if formal in self.presence:
            if orderly:
                self._open(formal)
            else:
                self._leaving[formal] = monotonic_s()

    def tick(self) -> None:
        since_s = monotonic_s() - self._engine.config.away_s
        for formal, left_s in list(self._leaving.items()):
            if left_s <= since_s:
                self._open(formal)

    def _open(self, formal: bytes) -> None:
        """From now on it is away."""
        self._leaving.pop(formal, None)
        stored = self._engine.writer.templates.get(formal)
        if stored is None or formal in self._attached:
            return
        presence, now = self.presence[formal], now_us()
        presence.turn(now, is_on=False)
        presence.zeta = presence.zeta_for(policy_of(stored))
        self._note_presence(formal)
        seq, policy = self._engine.writer.seq, policy_of(stored)
        self.absences.open(formal, seq, policy, presence.zeta, now)
        self._engine.wake()

    def _note_presence(self, formal: bytes) -> None:
        self._notes[f"{_PRESENCE}{formal.hex()}"] = self.presence[formal].encode()

    def told(self, formal: bytes, others_per_s: float, service_per_s: float) -> None:
        """What the reader knows of its other members and of itself."""
        presence = self.presence.get(formal)
        if presence is not None:
            presence.others_per_s = others_per_s
            presence.service_per_s = service_per_s or presence.service_per_s

    def forget(self, formal: bytes) -> None:
        """The EF is gone."""
        if self.presence.pop(formal, None) is not None:
            self._notes[f"{_PRESENCE}{formal.hex()}"] = None
        self._leaving.pop(formal, None)
        self.absences.forget(formal)

    def learn(self, absences: Iterable[Absence], ended: str = "") -> None:
        """What a drain has brought; the store has it, or will have it soon. With its last word the move has ended."""
        came = list(absences)
        self.absences.learn(came)
        formals = {one.formal for one in came} | (self.absences.ended(ended) if ended else set())
        for formal in formals:
            for origin in {one.origin for one in self.absences.of(formal)} - {OWN_ORIGIN}:
                acknowledged = self._cursors.acknowledged(formal, origin)
                self.passed(formal, origin, self._cursors.over_upto(formal, origin, acknowledged))
            if formal in self._attached:
                self._return(formal)

    # --- spans -----------------------------------------------------------------------------------

    def _pump(self, formal: bytes) -> None:
        """What is to be done next for a reader that is here."""
        undecided = self.absences.undecided(formal)
        if undecided and self._is_given_away(formal):
            return
        if undecided:
            own = [one.upto or 0 for one in undecided if one.origin == OWN_ORIGIN]
            is_there = max(own, default=0) <= self._cursors.committed
            if is_there and formal not in self._surveyed and self._engine.is_serving:
                self._surveyed.add(formal)
                self._tasks.start(self._survey(formal, undecided), "survey")
        elif self.absences.is_saved(formal):
            self.declare(formal)
            self._cursors.release(formal)

    def _is_given_away(self, formal: bytes) -> bool:
        """A drain that is committed: the heir decides what is not decided yet."""
        stored = self._engine.writer.templates.get(formal)
        moved = self._engine.writer.moves.participant
        given = [*moved.left, *(one.section for one in moved.shipments.values() if one.is_settled)]
        return stored is not None and any(key_of(*stored.packed.family) in one for one in given)

    async def _survey(self, formal: bytes, undecided: list[Absence]) -> None:
        stored = self._engine.writer.templates.get(formal)
        try:
            for absence in undecided if stored is not None else ():
                assert stored is not None
                decision = (await self._looked_through(absence, stored)).decide()
                if not self._is_given_away(formal):  # its rows may have gone meanwhile
                    self.absences.decide(absence, decision)
        except StoreUnavailable as error:
            _log.warning("survey broken off", reason=error)
            await asyncio.sleep(self._engine.config.reopen_s)
        finally:
            self._surveyed.discard(formal)
            self._engine.wake()
        if formal in self._attached and self.absences.undecided(formal):
            self._pump(formal)

    async def _looked_through(self, absence: Absence, stored: StoredTemplate) -> Survey:
        survey = Survey(absence)
        assert absence.upto is not None
        reading = Reading(absence.formal, absence.after, absence.upto, absence.origin)
        for search in searches(reading, stored, now_us(), self._engine.config.late_s):
            async with aclosing(self._engine.store.search(search)) as found:
                async for batch in found:
                    survey.look(batch)
        return survey

    def declare_again(self, formal: bytes) -> None:
        """To a reader that comes again, if nothing is to be decided first."""
        if self.presence and self.absences.is_saved(formal):
            self.declare(formal)

    def declare(self, formal: bytes) -> None:
        """To the reader that is here, whenever it comes, until it says that it has heard."""
        stream = self._attached.holders.get(formal)
        if stream is None:
            return
        for absence in self.absences.unheard(formal):
            self._send(stream, DropNotice(absence))

    def heard(self, formal: bytes, origin: str, after: int) -> None:
        for one in self.absences.unheard(formal):
            if one.key == (origin, after) and one.decision is not None and formal in self.presence:
                self.presence[formal].dropped += one.decision.dropped
                self._note_presence(formal)
        self.absences.heard(formal, origin, after)
        self._engine.wake()

    def passed(self, formal: bytes, origin: str, seq: int) -> bool:
        return self.absences.passed(formal, origin, seq)

    def named(self, name: str, move: str) -> list[Absence]:
        """All of them, as a drain brings them elsewhere: in this server's name. Without a move it is the last word; before it, what
        is decided and not durable yet may be decided otherwise after a crash."""
        found = []
        for one in self.absences:
            is_sure = not move or self.absences.is_durable(one)
            decision = one.decision if is_sure else None
            found.append(replace(one, origin=one.origin or name, move=move, decision=decision))
        return found


def policy_of(stored: StoredTemplate) -> DropPolicy:
    if stored.packed.kind is not Kind.EF or not stored.packed.terms:
        return DropPolicy()
    return decode_terms(stored.packed.terms).absent
