"""Moves at whoever takes part in them beside the home, in the writer's order: a learner, a next home, a drained server
and its heir. Pure.

The rules of moving load that they keep (docs/moving.md):

    ready means: everything that was taught is known here, durably                 promise
    a member that comes on must have promised                                      hear
    an heir goes on to no epoch in which its shadows may count and do not          hear
    shadows count, and what was shipped goes, only after the commit                settle, end_shipping
    EFs outside its share go only where nothing that they match can be             may_prune
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from utuple.cluster.line import Line, ServerInfo
from utuple.model.key import key_of
from utuple.model.section import Section
from utuple.model.utuple import Family
from utuple.server.moving.notes import (
    LEAVING,
    KeptNotes,
    Received,
    Shipment,
    encode_lines,
    encode_received,
    encode_shipment,
    note_of,
)
from utuple.server.moving.steps import DONE, BeginShipping, Learn, Outcome, Promise, refused
from utuple.server.moving.taught import TaughtIds
from utuple.server.writing.lines import OwnLines
from utuple.server.writing.transaction import Draft

_CLOSED = 1_000
"""Moves that are over for this server, remembered in memory: what is late of them is passed over."""
_NOTHING = Received({})


class Participant:
    def __init__(self, name: str, lines: OwnLines, kept: KeptNotes) -> None:
        self._name = name
        self._lines = lines
        self.promises = kept.promises
        self.shipments = kept.shipments
        self.received = kept.received
        self.leaving = kept.leaving
        self.left = kept.left
        """Sections whose uTuples were brought away from here: it never joins them again, so that its own
        seqs of one section always lie at one place."""
        self._taught: dict[bytes, TaughtIds] = {}
        """In memory only: a learner that starts again is taught anew."""
        self._closed: dict[bytes, None] = {}

    # --- a learner, a next home, an heir ---------------------------------------------------------

    def learning(self, step: Learn) -> TaughtIds | None:
        """What this move has taught so far, if this portion is the next; None: it is late."""
        taught = self._taught.get(step.id)
        if step.id in self._closed:
            return None
        if step.number == 0 and (taught is None or step.attempt > taught.attempt):
            taught = self._taught[step.id] = TaughtIds(step.attempt)
        elif taught is None or (step.attempt, step.number) != (taught.attempt, taught.portions):
            return None
        taught.portions += 1
        return taught

    def promise(self, step: Promise, draft: Draft) -> Outcome:
        going = [shipment.section for shipment in self.shipments.values()]
        if any(gone.overlaps(line.section) for gone in (*self.left, *going) for line in step.lines):
            # Also while its uTuples are on their way: at their end it deletes all it has of the section.
            return refused(f"{self._name} was drained of this section", never=True)
        if self.leaving and not all(map(self._is_member_of, step.lines)):
            # Whoever sees it in no line any more may remove it for good, and be late in doing so.
            return refused(f"{self._name} is leaving", never=True)
        if step.id in self._closed:
            return refused("the move is over")
        if step.learned is not None:
            taught = self._taught.get(step.id)
            if taught is None or taught.summary != step.learned:
                known = len(taught.ids) if taught is not None else 0
                return refused(f"knows {known} of {step.learned[0]}")
        if step.shipped is not None:
            held = self.received.get(step.id, _NOTHING).rows
            if held != step.shipped:
                return refused(f"holds {held} of {step.shipped}")
        self.promises[step.id] = step.lines
        draft.notes[note_of("promise", step.id)] = encode_lines(step.lines)
        self._lines.meet(step.servers)
        draft.lines = self._lines.all
        return DONE

    def _is_member_of(self, line: Line) -> bool:
        """Of all of this section, by the lines it has now."""
        own = self._lines.overlapping(line.section)
        return bool(own) and all(known.member(self._name) is not None for known in own)

    def hear(
        self,
        lines: Sequence[Line],
        servers: tuple[ServerInfo, ...],
        draft: Draft,
        settled: Sequence[bytes] = (),
    ) -> Outcome:
        """Newer lines from their home, and drains that are committed. A line that may not be served by is refused as a
        whole (law 7): the home says it again until it is taken."""
        unready = [str(line) for line in lines if not self._may_serve(line, settled)]
        if unready:
            return refused(f"not ready for {', '.join(unready)}")
        self._lines.meet(servers)
        for line in lines:
            draft.note_line(line, self._lines)
        for id_, promised in list(self.promises.items()):
            if all(self._lines.reaches(line) for line in promised if line.member(self._name)):
                self._close(id_)
                self._unpromise(id_, draft)
        for id_ in settled:
            self.settle(id_, draft)
        return DONE

    def _may_serve(self, line: Line, settled: Sequence[bytes]) -> bool:
        return self._knows_its_shadows(line, settled) and self._knows_its_templates(line)

    def _knows_its_shadows(self, line: Line, settled: Sequence[bytes]) -> bool:
        """Who holds shadows must know whether they count before it serves a later line. Only the home of their move says
        so, and another server may have become home, and gone on, since."""
        return self._lines.reaches(line) or not any(
            id_ in self.received and id_ not in settled and _supersedes(line, promised)
            for id_, promised in self.promises.items()
        )

    def _knows_its_templates(self, line: Line) -> bool:
        """Who is on and was not before must have promised: then it knows every EF and CA of the section. So must who kept
        only its share of a partitioned line, and takes more from now on."""
        me = line.member(self._name)
        if me is None or not me.accumulatable:
            return True
        own = self._lines.line_of(line.section.start)
        if own is not None and own.epoch >= line.epoch:
            return True
        before = own.member(self._name) if own is not None else None
        if own is not None and before is not None and before.accumulatable:
            is_home = self._name == own.home == line.home
            if is_home or line.layout.asks_no_more_of(self._name, own.layout):
                return True
        return any(_supersedes(line, promised) for promised in self.promises.values())

    def may_prune(self, line: Line) -> Outcome:
        """May it forget EFs that are not in its share? Not while it learns: what it is taught it will need, though not by the line of
        now. Nor while its rows are brought away, since readers' positions go with them."""
        own = self._lines.line_of(line.section.start)
        if own != line or not keeps_a_share(line, self._name):
            return refused(f"the line here is {own}")
        promised = (one for lines in self.promises.values() for one in lines)
        if self._taught or any(one.section.overlaps(line.section) for one in promised):
            return refused("it learns")
        if any(shipment.section.overlaps(line.section) for shipment in self.shipments.values()):
            return refused("its rows are brought away")
        return DONE

    def settle(self, id_: bytes, draft: Draft) -> None:
        """A move is committed: the shadows of a drain count here, or what was shipped from here may go."""
        self._close(id_)
        if id_ in self.received:
            del self.received[id_]
            draft.notes[note_of("taken", id_)] = None
            draft.revealed.append(id_)
        shipment = self.shipments.get(id_)
        if shipment is not None and not shipment.is_settled:
            self._note_shipment(id_, replace(shipment, is_settled=True), draft)

    def forget(self, id_: bytes, draft: Draft) -> Outcome:
        """The move was given up."""
        self._close(id_)
        self._unpromise(id_, draft)
        if self.received.pop(id_, None) is not None:
            draft.notes[note_of("taken", id_)] = None
            draft.dropped.append(id_)
        shipment = self.shipments.get(id_)
        if shipment is not None and not shipment.is_settled:
            self._note_shipment(id_, None, draft)
        return DONE

    # --- a drained server and its heir -----------------------------------------------------------

    def check_line(self, line: Line) -> Outcome:
        """Is this the line here, in the writer's order, and is this server off in it?"""
        own = self._lines.line_of(line.section.start)
        me = line.member(self._name)
        if own != line:
            return refused(f"the line here is {own}")
        if me is None or me.accumulatable:
            return refused(f"{self._name} is not off in {line}")
        return DONE

    def begin_shipping(self, step: BeginShipping, draft: Draft) -> Outcome:
        if step.id in self.shipments:
            return DONE
        checked = self.check_line(step.line)
        if checked.done:
            self._note_shipment(step.id, Shipment(step.line.section, step.heir.name), draft)
            self._lines.meet((step.heir,))
        return checked

    def cancelled(self, id_: bytes, family: Family, draft: Draft) -> None:
        """A formal was cancelled: if it was brought to an heir, the heir must hear of it."""
        for move, shipment in list(self.shipments.items()):
            if key_of(*family) in shipment.section:
                told = replace(shipment, cancelled=(*shipment.cancelled, id_))
                self._note_shipment(move, told, draft)

    def may_receive(self, id_: bytes, origin: str, after: int) -> bool:
        """Do these rows follow what this move has brought here?"""
        received = self.received.get(id_, _NOTHING)
        return id_ not in self._closed and received.seqs.get(origin, 0) == after

    def note_received(self, id_: bytes, origin: str, upto: int, rows: int, draft: Draft) -> None:
        received = self.received.get(id_, _NOTHING)
        seqs = dict(received.seqs)
        if upto:
            seqs[origin] = upto
        self.received[id_] = Received(seqs, received.rows + rows)
        draft.notes[note_of("taken", id_)] = encode_received(self.received[id_])

    def end_shipping(self, id_: bytes, draft: Draft) -> Outcome:
        shipment = self.shipments.get(id_)
        if shipment is None:
            return DONE
        if not shipment.is_settled:
            return refused("the move is not committed")
        self._note_shipment(id_, None, draft)
        draft.removed.append(shipment.section)
        self.left.append(shipment.section)
        draft.notes[note_of("left", id_)] = encode_shipment(shipment)
        return DONE

    def leave(self, draft: Draft, *, stay: bool) -> Outcome:
        """The operator wants this server out of every line, or not after all."""
        if stay and (self.left or self.shipments):
            return refused("some of its uTuples were brought away already")
        self.leaving = not stay
        draft.notes[LEAVING] = None if stay else b""
        return DONE

    @property
    def emptied(self) -> list[Section]:
        """Sections it was drained of, or is being."""
        return [*self.left, *(shipment.section for shipment in self.shipments.values())]

    # --- notes -----------------------------------------------------------------------------------

    def _close(self, id_: bytes) -> None:
        self._taught.pop(id_, None)
        self._closed[id_] = None
        while len(self._closed) > _CLOSED:
            del self._closed[next(iter(self._closed))]

    def _unpromise(self, id_: bytes, draft: Draft) -> None:
        if self.promises.pop(id_, None) is not None:
            draft.notes[note_of("promise", id_)] = None

    def _note_shipment(self, id_: bytes, shipment: Shipment | None, draft: Draft) -> None:
        if shipment is None:
            del self.shipments[id_]
        else:
            self.shipments[id_] = shipment
        body = encode_shipment(shipment) if shipment is not None else None
        draft.notes[note_of("shipment", id_)] = body


def keeps_a_share(line: Line, name: str) -> bool:
    """This member needs the EFs of its segments and no others: it is not the home, which keeps every one, and holds no EAs of
    earlier layouts."""
    is_member = line.member(name) is not None and name != line.home
    return is_member and bool(line.layout.axes) and not line.may_hold_older(name)


def _supersedes(line: Line, promised: tuple[Line, ...]) -> bool:
    """Is this one of the promised lines, or a later one of the same keys?"""
    return any(line.epoch >= one.epoch and line.section.overlaps(one.section) for one in promised)
