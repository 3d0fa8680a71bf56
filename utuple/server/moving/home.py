"""Moves at the home of their section: what it records and decides, in the writer's order. Pure.

The rules of moving load that a home keeps (docs/moving.md):

    one move per section at a time, recorded before anything happens       begin
    the commit point: nothing came after the cut, then the new epoch       commit
    before the commit a move can be given up, after it never               abort
"""

from __future__ import annotations

from dataclasses import replace

from utuple.cluster.line import Line
from utuple.cluster.move import Move, MoveKind, line_of, target
from utuple.cluster.record import MoveRecord, MoveStep
from utuple.errors import InvalidInput
from utuple.model.key import key_of
from utuple.model.utuple import Family
from utuple.server.moving.notes import encode_record, note_of
from utuple.server.moving.steps import DONE, Abort, Begin, Commit, End, Outcome, refused
from utuple.server.moving.taught import ChangeLog
from utuple.server.writing.lines import OwnLines
from utuple.server.writing.transaction import Draft

_KEPT_RECORDS = 200
"""Moves that ended, kept as the event log."""


class HomeMoves:
    def __init__(self, name: str, lines: OwnLines, records: dict[bytes, MoveRecord]) -> None:
        self._name = name
        self._lines = lines
        self.records = records
        """Of every move this server is or was home of, by id."""
        self._change_logs: dict[bytes, ChangeLog] = {}
        """Of moves that are teaching. Only in memory: after a restart the learner is taught anew."""

    @property
    def undone(self) -> list[MoveRecord]:
        return [record for record in self.records.values() if record.is_undone]

    # --- the steps -------------------------------------------------------------------------------

    def begin(self, step: Begin, draft: Draft, now_us: int) -> Outcome:
        if step.id in self.records:
            return DONE
        try:
            line = self._fitting_line(step.move)
            target(step.move, line)
        except InvalidInput as error:
            return refused(str(error))
        busy = self._in_the_way(step.move)
        if busy is not None:
            return refused(f"a move is under way here: {busy.move}")
        self._record(MoveRecord(step.id, step.move, line, began_us=now_us), draft)
        return DONE

    def _fitting_line(self, move: Move) -> Line:
        lines = self._lines.overlapping(move.section)
        if not lines or lines[0].home != self._name:
            raise InvalidInput("section", str(move.section), f"{self._name} is not its home")
        return line_of(move, lines)

    def _in_the_way(self, move: Move) -> MoveRecord | None:
        """One move per section at a time; and a home that hands over may owe nobody the news of an earlier move: the
        next home would not know whom to tell."""
        hands_over = move.leaves == self._name
        for record in self.undone:
            owes = record.step is MoveStep.COMMITTED
            waits = record.step is MoveStep.LEARNING or (hands_over and owes)
            if waits and record.move.section.overlaps(move.section):
                return record
        return None

    def commit(self, step: Commit, draft: Draft, now_us: int) -> Outcome:
        """The commit point (R3). Everything is checked again here, in the writer's order, because whatever was prepared
        was prepared while registrations went on: an EF that came after the cut is not known to the learner, and a
        restart has ended the hold and lost the change log. Either way the new epoch must wait."""
        record = self.records.get(step.id)
        if record is None or record.step in (MoveStep.ABORTED, MoveStep.OVER):
            return refused("the move was given up")
        if record.step is not MoveStep.LEARNING:
            return DONE
        if step.cut is not None:
            log = self._change_logs.get(step.id)
            if log is None or log.length != step.cut:
                return refused("EFs or CAs came after the cut")
        try:
            after = target(record.move, self._fitting_line(record.move))
        except InvalidInput as error:
            return refused(str(error))
        for line in after:
            draft.note_line(line, self._lines)
        self._change_logs.pop(step.id, None)
        committed = replace(
            record,
            step=MoveStep.COMMITTED,
            after=after,
            committed_us=now_us,
            copied=step.copied,
            rows=step.rows,
            cuts=step.cuts,
        )
        self._record(committed, draft)
        return DONE

    def abort(self, step: Abort, draft: Draft, now_us: int) -> Outcome:
        record = self.records.get(step.id)
        if record is None or record.step is not MoveStep.LEARNING:
            return refused("only before its commit can a move be given up")
        self._change_logs.pop(step.id, None)
        given_up = replace(record, step=MoveStep.ABORTED, reason=step.reason, ended_us=now_us)
        self._record(given_up, draft)
        return DONE

    def end(self, step: End, draft: Draft, now_us: int) -> Outcome:
        record = self.records.get(step.id)
        if record is None or not record.is_undone or record.step is MoveStep.LEARNING:
            return DONE
        if record.step is MoveStep.ABORTED:
            ended = replace(record, step=MoveStep.OVER, held_us=step.held_us)
        else:
            ended = replace(record, step=MoveStep.DONE, held_us=step.held_us, ended_us=now_us)
        self._record(ended, draft)
        self._forget_the_oldest(draft)
        return DONE

    def _forget_the_oldest(self, draft: Draft) -> None:
        ended = [record for record in self.records.values() if not record.is_undone]
        for old in sorted(ended, key=lambda record: record.ended_us)[:-_KEPT_RECORDS]:
            del self.records[old.id]
            draft.notes[note_of("move", old.id)] = None

    def _record(self, record: MoveRecord, draft: Draft) -> None:
        self.records[record.id] = record
        draft.notes[note_of("move", record.id)] = encode_record(record)

    # --- for the driver, and for who hears of new lines ------------------------------------------

    def settled_for(self, name: str) -> list[bytes]:
        """Drains that are committed and that this server has not confirmed: they go with every Hear."""
        return [
            record.id
            for record in self.undone
            if record.step is MoveStep.COMMITTED
            and record.move.kind is MoveKind.DRAIN
            and name in record.move.servers
        ]

    def start_change_log(self, id_: bytes) -> ChangeLog:
        """From now on changes of the section's EFs and CAs are noted for this move."""
        log = self._change_logs[id_] = ChangeLog(self.records[id_].move.learned)
        return log

    def template_changed(self, id_: bytes, family: Family, *, present: bool) -> None:
        """An EF or CA came or was cancelled."""
        if self._change_logs:
            key = key_of(*family)
            for log in self._change_logs.values():
                if key in log.section:
                    log.note(id_, present=present)
