"""Moves of load in the writer's order: what a home decides, and what it asks of the others. Pure.

The rules of DESIGN section 6 that are decided at one server are decided here:

    one move per section at a time, recorded before anything happens          begin
    the commit point: nothing came after the cut, then the new epoch          commit
    before it a move can be given up, after it never                          abort
    ready means: everything that was taught is known here, durably            promise
    a member that comes on must have promised                                 hear
    an heir goes on to no epoch in which its shadows may count and do not     hear
    shadows count, and what was shipped goes, only after the commit           hear (settled), end_shipping
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from utuple.cluster.line import Line, ServerInfo
from utuple.cluster.move import Move, MoveKind, target
from utuple.cluster.record import MoveRecord, MoveStep
from utuple.errors import InvalidInput
from utuple.model.key import key_of
from utuple.model.section import Section
from utuple.model.utuple import Family
from utuple.server.moving.delta import Taught, Trail
from utuple.server.moving.steps import (
    Abort,
    Begin,
    BeginShipping,
    Commit,
    End,
    Learn,
    Outcome,
    Promise,
    Shipment,
    Taken,
    decode_lines,
    decode_record,
    decode_shipment,
    decode_taken,
    encode_lines,
    encode_record,
    encode_shipment,
    encode_taken,
    with_cancelled,
)
from utuple.server.writing.lines import OwnLines
from utuple.server.writing.transaction import Draft

_KEPT_RECORDS = 200
"""Moves that ended, kept as the event log."""
_CLOSED = 1_000
"""Moves that are over for this server, remembered in memory: what is late of them is passed over."""
_LEAVING = "leaving"
Infos = tuple[ServerInfo, ...]
_OK = Outcome(done=True)


class Moving:
    def __init__(self, name: str, lines: OwnLines, notes: Mapping[str, bytes]) -> None:
        self._name = name
        self._lines = lines
        self.records: dict[bytes, MoveRecord] = {}
        self.promises: dict[bytes, tuple[Line, ...]] = {}
        self.shipments: dict[bytes, Shipment] = {}
        self.taken: dict[bytes, Taken] = {}
        self.taught: dict[bytes, Taught] = {}
        """In memory only: a learner that starts again is taught anew."""
        self.trails: dict[bytes, Trail] = {}
        self.leaving = _LEAVING in notes
        self.left: list[Section] = []
        """Sections whose uTuples were brought away from here: it never joins them again, so that its own
        seqs of one section always lie at one place."""
        self._closed: dict[bytes, None] = {}
        for note, body in notes.items():
            kind, _, id_ = note.partition("/")
            match kind:
                case "move":
                    self.records[bytes.fromhex(id_)] = decode_record(bytes.fromhex(id_), body)
                case "promise":
                    self.promises[bytes.fromhex(id_)] = decode_lines(body)
                case "shipment":
                    self.shipments[bytes.fromhex(id_)] = decode_shipment(body)
                case "taken":
                    self.taken[bytes.fromhex(id_)] = decode_taken(body)
                case "left":
                    self.left.append(decode_shipment(body).section)

    @property
    def undone(self) -> list[MoveRecord]:
        return [record for record in self.records.values() if record.is_undone]

    # --- at the home -----------------------------------------------------------------------------

    def begin(self, step: Begin, draft: Draft, now_us: int) -> Outcome:
        if step.id in self.records:
            return _OK
        try:
            line = self._fitting_line(step.move)
            target(step.move, line)
        except InvalidInput as error:
            return Outcome(done=False, reason=str(error))
        busy = self._in_the_way(step.move)
        if busy is not None:
            return Outcome(done=False, reason=f"a move is under way here: {busy.move}")
        self._record(MoveRecord(step.id, step.move, line, began_us=now_us), draft)
        return _OK

    def _fitting_line(self, move: Move) -> Line:
        line = self._lines.line_of(move.section.start)
        if line is None or line.home != self._name:
            raise InvalidInput("section", str(move.section), f"{self._name} is not its home")
        return line

    def _in_the_way(self, move: Move) -> MoveRecord | None:
        """One move per section at a time; and a home hands over only when it owes nothing."""
        hands_over = move.member == self._name and move.kind in (MoveKind.RELEASE, MoveKind.DRAIN)
        for record in self.undone:
            owes = record.step is MoveStep.COMMITTED
            waits = record.step is MoveStep.LEARNING or (hands_over and owes)
            if waits and record.move.section.overlaps(move.section):
                return record
        return None

    def commit(self, step: Commit, draft: Draft, now_us: int) -> Outcome:
        """The commit point (R3)."""
        record = self.records.get(step.id)
        if record is None or record.step in (MoveStep.ABORTED, MoveStep.OVER):
            return Outcome(done=False, reason="the move was given up")
        if record.step is not MoveStep.LEARNING:
            return _OK
        if step.cut is not None:
            trail = self.trails.get(step.id)
            if trail is None or trail.count != step.cut:
                return Outcome(done=False, reason="EFs or CAs came after the cut")
        try:
            after = target(record.move, self._fitting_line(record.move))
        except InvalidInput as error:
            return Outcome(done=False, reason=str(error))
        for line in after:
            self._hear(line, draft)
        self.trails.pop(step.id, None)
        self._record(
            replace(
                record,
                step=MoveStep.COMMITTED,
                after=after,
                committed_us=now_us,
                copied=step.copied,
                rows=step.rows,
                cuts=step.cuts,
            ),
            draft,
        )
        self.settle(step.id, draft)
        return _OK

    def abort(self, step: Abort, draft: Draft, now_us: int) -> Outcome:
        record = self.records.get(step.id)
        if record is None or record.step is not MoveStep.LEARNING:
            return Outcome(done=False, reason="only before its commit can a move be given up")
        self.trails.pop(step.id, None)
        given_up = replace(record, step=MoveStep.ABORTED, reason=step.reason, ended_us=now_us)
        self._record(given_up, draft)
        return _OK

    def end(self, step: End, draft: Draft, now_us: int) -> Outcome:
        record = self.records.get(step.id)
        if record is None or not record.is_undone or record.step is MoveStep.LEARNING:
            return _OK
        aborted = record.step is MoveStep.ABORTED
        then = MoveStep.OVER if aborted else MoveStep.DONE
        ended_us = record.ended_us if aborted else now_us
        self._record(replace(record, step=then, ended_us=ended_us, held_us=step.held_us), draft)
        ended = [record for record in self.records.values() if not record.is_undone]
        for old in sorted(ended, key=lambda record: record.ended_us)[:-_KEPT_RECORDS]:
            del self.records[old.id]
            draft.notes[_note("move", old.id)] = None
        return _OK

    def settled_for(self, name: str) -> list[bytes]:
        """Drains that are committed and that this server has not confirmed: they go with every Hear."""
        return [
            record.id
            for record in self.undone
            if record.step is MoveStep.COMMITTED
            and record.move.kind is MoveKind.DRAIN
            and name in (record.move.member, record.move.helper)
        ]

    # --- the trail of a section that is being taught ---------------------------------------------

    def watch(self, id_: bytes) -> None:
        """From now on changes of the section's EFs and CAs are noted for this move."""
        self.trails[id_] = Trail(self.records[id_].move.learned)

    def noticed(self, id_: bytes, family: Family, *, present: bool) -> None:
        """An EF or CA came or was cancelled."""
        if self.trails:
            key = key_of(*family)
            for trail in self.trails.values():
                if key in trail.section:
                    trail.count += 1
                    trail.pending[id_] = present

    def changes(self, id_: bytes) -> tuple[dict[bytes, bool], int]:
        """What was noted since the last call, and the cut it makes."""
        trail = self.trails[id_]
        pending, trail.pending = trail.pending, {}
        return pending, trail.count

    # --- at a learner, a new home, an heir -------------------------------------------------------

    def learning(self, step: Learn) -> Taught | None:
        """What this move has taught so far, if this portion is the next; None: it is late."""
        taught = self.taught.get(step.id)
        if step.id in self._closed:
            return None
        if step.number == 0 and (taught is None or step.attempt > taught.attempt):
            taught = self.taught[step.id] = Taught(step.attempt)
        elif taught is None or (step.attempt, step.number) != (taught.attempt, taught.portions):
            return None
        taught.portions += 1
        return taught

    def promise(self, step: Promise, draft: Draft) -> Outcome:
        going = [shipment.section for shipment in self.shipments.values()]
        if any(gone.overlaps(line.section) for gone in (*self.left, *going) for line in step.lines):
            # Also while its uTuples are on their way: at their end it deletes all it has of the section.
            reason = f"{self._name} was drained of this section"
            return Outcome(done=False, reason=reason, never=True)
        if step.id in self._closed:
            return Outcome(done=False, reason="the move is over")
        if step.learned is not None:
            taught = self.taught.get(step.id)
            known = (len(taught.ids), taught.digest) if taught is not None else (0, b"")
            if taught is None or known != step.learned:
                return Outcome(done=False, reason=f"knows {known[0]} of {step.learned[0]}")
        if step.shipped is not None:
            held = self.taken.get(step.id, Taken({})).rows
            if held != step.shipped:
                return Outcome(done=False, reason=f"holds {held} of {step.shipped}")
        self.promises[step.id] = step.lines
        draft.notes[_note("promise", step.id)] = encode_lines(step.lines)
        self._lines.meet(step.servers)
        draft.lines = self._lines.all
        return _OK

    def hear(
        self, lines: Sequence[Line], servers: Infos, draft: Draft, settled: Sequence[bytes] = ()
    ) -> Outcome:
        """Newer lines from their home, and drains that are committed. What may not be served by is not taken (law 7)."""
        unready = [str(line) for line in lines if not self._may_serve(line, settled)]
        if unready:
            return Outcome(done=False, reason=f"not ready for {', '.join(unready)}")
        self._lines.meet(servers)
        for line in lines:
            self._hear(line, draft)
        for id_, promised in list(self.promises.items()):
            if all(self._lines.reaches(line) for line in promised if line.member(self._name)):
                del self.promises[id_]
                self._close(id_)
                draft.notes[_note("promise", id_)] = None
        return _OK

    def _may_serve(self, line: Line, settled: Sequence[bytes]) -> bool:
        return self._knows_its_shadows(line, settled) and self._knows_its_templates(line)

    def _knows_its_shadows(self, line: Line, settled: Sequence[bytes]) -> bool:
        """Who holds shadows must know whether they count before it serves a later line. Only the home of their move says
        so, and another server may have become home, and gone on, since."""
        return self._lines.reaches(line) or not any(
            id_ in self.taken and id_ not in settled and _supersedes(line, promised)
            for id_, promised in self.promises.items()
        )

    def _knows_its_templates(self, line: Line) -> bool:
        """Who is on and was not before must have promised: then it knows every EF and CA of the section."""
        me = line.member(self._name)
        if me is None or not me.accumulatable:
            return True
        own = self._lines.line_of(line.section.start)
        if own is not None and own.epoch >= line.epoch:
            return True
        before = own.member(self._name) if own is not None else None
        if before is not None and before.accumulatable:
            return True
        return any(_supersedes(line, promised) for promised in self.promises.values())

    def _hear(self, line: Line, draft: Draft) -> None:
        if self._lines.hear(line):
            draft.lines = self._lines.all
            draft.changed.append(line)

    def settle(self, id_: bytes, draft: Draft) -> None:
        """A drain is committed: its shadows count here, or what was shipped from here may go."""
        self._close(id_)
        if id_ in self.taken:
            del self.taken[id_]
            draft.notes[_note("taken", id_)] = None
            draft.revealed.append(id_)
        shipment = self.shipments.get(id_)
        if shipment is not None and not shipment.is_settled:
            self._ship(id_, replace(shipment, is_settled=True), draft)

    def forget(self, id_: bytes, draft: Draft) -> None:
        """The move was given up."""
        self._close(id_)
        if self.promises.pop(id_, None) is not None:
            draft.notes[_note("promise", id_)] = None
        if self.taken.pop(id_, None) is not None:
            draft.notes[_note("taken", id_)] = None
            draft.dropped.append(id_)
        shipment = self.shipments.get(id_)
        if shipment is not None and not shipment.is_settled:
            self._ship(id_, None, draft)

    # --- at a drained server and its heir --------------------------------------------------------

    def check_line(self, line: Line) -> Outcome:
        own = self._lines.line_of(line.section.start)
        me = line.member(self._name)
        if own != line:
            return Outcome(done=False, reason=f"the line here is {own}")
        if me is None or me.accumulatable:
            return Outcome(done=False, reason=f"{self._name} is not off in {line}")
        return _OK

    def begin_shipping(self, step: BeginShipping, draft: Draft) -> Outcome:
        if step.id in self.shipments:
            return _OK
        checked = self.check_line(step.line)
        if checked.done:
            self._ship(step.id, Shipment(step.line.section, step.heir.name), draft)
            self._lines.meet((step.heir,))
        return checked

    def cancelled(self, id_: bytes, family: Family, draft: Draft) -> None:
        """A formal was cancelled: if it was brought to an heir, the heir must hear of it."""
        for move, shipment in list(self.shipments.items()):
            if key_of(*family) in shipment.section:
                self._ship(move, with_cancelled(shipment, id_), draft)

    def may_take(self, id_: bytes, origin: str, after: int) -> bool:
        """Do these rows follow what this move has brought here?"""
        taken = self.taken.get(id_, Taken({}))
        return id_ not in self._closed and taken.seqs.get(origin, 0) == after

    def took(self, id_: bytes, origin: str, upto: int, rows: int, draft: Draft) -> None:
        taken = self.taken.get(id_, Taken({}))
        seqs = dict(taken.seqs)
        if upto:
            seqs[origin] = upto
        self.taken[id_] = Taken(seqs, taken.rows + rows)
        draft.notes[_note("taken", id_)] = encode_taken(self.taken[id_])

    def end_shipping(self, id_: bytes, draft: Draft) -> Outcome:
        shipment = self.shipments.get(id_)
        if shipment is None:
            return _OK
        if not shipment.is_settled:
            return Outcome(done=False, reason="the move is not committed")
        self._ship(id_, None, draft)
        draft.removed.append(shipment.section)
        self.left.append(shipment.section)
        draft.notes[_note("left", id_)] = encode_shipment(shipment)
        return _OK

    def leave(self, *, stay: bool, draft: Draft) -> Outcome:
        if stay and (self.left or self.shipments):
            return Outcome(done=False, reason="some of its uTuples were brought away already")
        self.leaving = not stay
        draft.notes[_LEAVING] = None if stay else b""
        return _OK

    # --- notes -----------------------------------------------------------------------------------

    def _close(self, id_: bytes) -> None:
        self.taught.pop(id_, None)
        self._closed[id_] = None
        while len(self._closed) > _CLOSED:
            del self._closed[next(iter(self._closed))]

    def _record(self, record: MoveRecord, draft: Draft) -> None:
        self.records[record.id] = record
        draft.notes[_note("move", record.id)] = encode_record(record)

    def _ship(self, id_: bytes, shipment: Shipment | None, draft: Draft) -> None:
        if shipment is None:
            del self.shipments[id_]
            draft.notes[_note("shipment", id_)] = None
        else:
            self.shipments[id_] = shipment
            draft.notes[_note("shipment", id_)] = encode_shipment(shipment)


def _note(kind: str, id_: bytes) -> str:
    return f"{kind}/{id_.hex()}"


def _supersedes(line: Line, promised: tuple[Line, ...]) -> bool:
    """Is this one of the promised lines, or a later one of the same keys?"""
    return any(line.epoch >= one.epoch and line.section.overlaps(one.section) for one in promised)
