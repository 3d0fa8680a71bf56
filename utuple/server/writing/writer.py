"""The writer's core: one order for everything that is registered here. Pure.

    prepare   judges a batch of requests in order: epochs, retries, seqs; gives the transaction to commit and
              what to say once it is committed
    match     matches its EAs against the index: what to deliver then. Nothing comes between the two
    (commit)  the caller's, which may begin before `match`

The core is changed by `prepare`, ahead of the commit, so that a batch sees its own templates. If the
commit fails the whole core is thrown away and made anew from the store: there is no undoing here.

Within a batch everything is concurrent, so any order is a right one. Ours: cancels, then templates (EF,
CA), then EAs and CFs. So a template's stored matches (seq up to its own) were all committed before it,
and everything else in its batch meets it in the index.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from utuple.cluster.line import Line
from utuple.model.columns import NEVER_US, Columns, lifetime_us
from utuple.model.condition import decode_where, where_meets
from utuple.model.portions import portions
from utuple.model.utuple import Family, Kind
from utuple.model.value import decode_data
from utuple.server.matching.index import TemplateIndex
from utuple.server.matching.kernels import Kernels
from utuple.server.matching.matched import Matches, matches_of
from utuple.server.moving.apply import apply_step
from utuple.server.moving.state import MoveState
from utuple.server.writing.conflicts import Owners, conflicting
from utuple.server.writing.lines import OwnLines
from utuple.server.writing.request import Answer, Part, Reason, Refusal, Request
from utuple.server.writing.transaction import Draft, Housekeeping, PreparedBatch
from utuple.store.contract import (
    NO_SEQ,
    Batch,
    Known,
    Recovered,
    RetryKey,
    StoredTemplate,
    Transaction,
)

SLICE_BYTES = 256 << 10
"""Of data, matched in one turn of the event loop."""


_NOTHING = Transaction(0)
"""Until it is known what there is."""


class Writer:
    def __init__(self, name: str, recovered: Recovered, kernels: Kernels | None = None) -> None:
        self.seq = recovered.seq
        self.lines = OwnLines(name, recovered.lines, recovered.servers)
        self.moves = MoveState(name, self.lines, recovered.notes)
        self.index = TemplateIndex(recovered.templates, kernels)

    @property
    def templates(self) -> dict[bytes, StoredTemplate]:
        return self.index.templates

    def retried(self, requests: Iterable[Request]) -> tuple[list[RetryKey], list[bytes]]:
        """What must be looked up in the store before `prepare`: what says that it is a retry; and, of a caller who is known,
        whether there is a CF under an id that it names, since that may be another's."""
        events: list[RetryKey] = []
        devices: list[bytes] = []
        for request in requests:
            if request.retry:
                rows = request.events
                events.extend(
                    RetryKey(rows.families[rows.family[row]], rows.times_us[row], rows.id_at(row))
                    for row in range(len(rows))
                    if rows.lifetimes_us[row]  # else it never was in the store
                )
            if request.retry or request.by is not None:
                devices.extend(request.devices.each_id())
            devices.extend(id_ for id_ in request.ids_of_others if id_ not in self.templates)
        return events, devices

    def prepare(
        self,
        requests: Sequence[Request],
        known: Mapping[bytes, Known],
        chores: Housekeeping,
        now_us: int,
    ) -> PreparedBatch:
        before = self.seq
        answers = [Answer(list(request.refusals)) for request in requests]
        prepared = PreparedBatch(_NOTHING, answers, now_us)
        others = [  # but for EAs there is nothing to look for in most requests
            pair for pair in zip(requests, answers, strict=True) if not pair[0].is_plain
        ]
        draft = Draft(Owners(known, self.templates)) if others else Draft()
        for request, answer in others:
            self._adopt(request, answer, draft)
            if request.step is not None:
                answer.outcome = apply_step(self, request.step, draft, prepared, now_us)
            self._cancel(request, answer, prepared, draft)
        for request, answer in others:
            self._templates(request, answer, prepared, draft, now_us)
        seen: dict[bytes, Known] = dict(known)
        some_retry = any(request.retry for request, _ in others)
        for request, answer in zip(requests, answers, strict=True):
            self._events(request, answer, prepared, draft, seen, some_retry, now_us)
            if not request.is_plain:
                self._devices(request, answer, prepared, draft, now_us)
            prepared.rows += request.rows
        if chores.renewed:
            self._renew(chores)
        prepared.changed = draft.changed
        prepared.transaction = Transaction(
            seq=self.seq,
            events=draft.events,
            devices=draft.devices,
            templates=draft.templates,
            cancelled=prepared.cancelled,
            renewed=chores.renewed,
            positions=[*chores.positions, *draft.positions],
            lines=draft.lines,
            servers=list(self.lines.servers.values()) if draft.lines is not None else None,
            notes={**chores.notes, **draft.notes},
            revealed=draft.revealed,
            dropped=draft.dropped,
            removed=draft.removed,
        )
        prepared.is_idle = prepared.transaction.is_empty and self.seq == before
        return prepared

    def match(self, prepared: PreparedBatch) -> None:
        """Before anything else is prepared."""
        while prepared.unmatched:
            self.match_slice(prepared)

    def match_slice(self, prepared: PreparedBatch) -> None:
        """The next of them."""
        batch = prepared.unmatched.pop(0)
        met = self.index.match(Kind.EF, batch.columns, prepared.now_us)
        prepared.events.append((batch, met))

    # --- the parts of a request ------------------------------------------------------------------

    def _adopt(self, request: Request, answer: Answer, draft: Draft) -> None:
        if request.adopt and self.lines.adopt(request.adopt, request.adopt_servers):
            answer.adopted = True
            draft.lines = self.lines.all

    def _cancel(
        self, request: Request, answer: Answer, prepared: PreparedBatch, draft: Draft
    ) -> None:
        accepted: Family | None = None
        for row, id_, family in request.cancels:
            if family is not accepted:
                if not self._judged(
                    request, answer, Part.CANCELS, family, [row], accumulates=False
                ):
                    continue
                accepted = family
            if (refusal := draft.owners.refusal(request, Part.CANCELS, row, id_)) is not None:
                answer.refusals.append(refusal)
                continue
            if draft.owners.is_absent(request, id_):
                continue
            self.forget(id_)
            draft.owners.cancelled(id_)
            prepared.changes[family] += 1
            self.moves.home.template_changed(id_, family, present=False)
            self.moves.participant.cancelled(id_, family, draft)
            prepared.cancelled.append(id_)

    def _templates(
        self,
        request: Request,
        answer: Answer,
        prepared: PreparedBatch,
        draft: Draft,
        now_us: int,
    ) -> None:
        kept: dict[bytes, StoredTemplate] = {}
        accepted: Family | None = None
        for row, half in request.templates:
            if half.family is not accepted:
                if not self._judged(
                    request, answer, Part.TEMPLATES, half.family, [row], accumulates=False
                ):
                    continue
                accepted = half.family
            held = kept.get(half.id) or self.templates.get(half.id)
            expires_us = now_us + lifetime_us(half.lifetime_s)
            if held is not None and held.expires_us == NEVER_US:
                expires_us = NEVER_US  # its reader is attached
            refusal = draft.owners.refusal(request, Part.TEMPLATES, row, half.id)
            refusal = refusal or conflicting(row, half, held, self.index, now_us)
            if refusal is not None:
                answer.refusals.append(refusal)
                continue
            if held is not None:
                # R5: what was registered before is searched again: a CA's CFs here, an EF's EAs when
                # its reader attaches.
                stored = held._replace(expires_us=expires_us)
                self.index.renew(half.id, expires_us)
            elif half.lifetime_s > 0:
                self.seq += 1
                stored = StoredTemplate(half, self.seq, expires_us)
                self.index.readers.note([half])  # others of this batch meet it, too
            else:
                # Matched and gone, so nothing is written and no seq is taken. A seq that is not durable could be given
                # again after a crash, to a CA that is kept; a device that had acknowledged it would then never be
                # given that CA. The order needs none: the search for a CA of lifetime 0 begins after this batch is
                # committed, so it finds every CF that was answered before the CA came.
                stored = StoredTemplate(half, NO_SEQ, expires_us)
            answer.seq = self.seq
            prepared.changes[half.family] += 1
            if half.lifetime_s > 0:
                kept[half.id] = stored
                draft.templates.append(stored)
                if held is None:
                    self.moves.home.template_changed(half.id, half.family, present=True)
            if half.kind is Kind.CA:
                prepared.commands.append(stored)
        self.index.add_all(kept.values())

    def _events(
        self,
        request: Request,
        answer: Answer,
        prepared: PreparedBatch,
        draft: Draft,
        seen: dict[bytes, Known],
        some_retry: bool,
        now_us: int,
    ) -> None:
        rows = self._accepted(request, answer, Part.EVENTS)
        columns = request.events
        if some_retry:
            rows = self._without_repeats(request, answer, columns, rows, seen)
        if not rows:
            return
        whole = columns if len(rows) == len(columns) else columns.take(rows)
        _count(whole, prepared.accepted)
        for batch in self._numbered(whole, now_us):
            slices = _slices(batch)
            prepared.unmatched.extend(slices)
            prepared.is_large |= len(slices) > 1
            if not batch.is_fleeting:
                draft.events.append(batch)

    def _devices(
        self,
        request: Request,
        answer: Answer,
        prepared: PreparedBatch,
        draft: Draft,
        now_us: int,
    ) -> None:
        rows = self._accepted(request, answer, Part.DEVICES)
        rows = draft.owners.own_devices(request, answer, rows)
        if not rows:
            return
        columns = request.devices
        whole = columns if len(rows) == len(columns) else columns.take(rows)
        _count(whole, prepared.accepted)
        for batch in self._numbered(whole, now_us):
            prepared.devices.append((batch, self.commands_for(batch.columns, now_us)))
            if not batch.is_fleeting:
                draft.devices.append(batch)

    def commands_for(self, devices: Columns, now_us: int) -> Matches:
        """The stored CAs these CFs meet: metadata by the index, then each CF's own data template."""
        found = []
        for id_, rows in self.index.match(Kind.CA, devices, now_us):
            data = decode_data(self.templates[id_].packed.payload)
            for row in rows:
                if where_meets(decode_where(devices.payloads[row]), data):
                    found.append((row, id_))
        return matches_of(found)

    # --- small steps -----------------------------------------------------------------------------

    def _accepted(self, request: Request, answer: Answer, part: Part) -> Sequence[int]:
        """Rows this server may take, in the order they came."""
        columns = request.events if part is Part.EVENTS else request.devices
        places = request.event_rows if part is Part.EVENTS else request.device_rows
        if not len(columns):
            return ()
        accepted, refused = self.lines.sort(columns, request.epochs, part)
        for reason, line, rows in refused:
            said = [places[row] for row in rows] if places is not None else rows
            self._refuse(answer, part, reason, line, said)
        return accepted

    def _judged(
        self,
        request: Request,
        answer: Answer,
        part: Part,
        family: Family,
        rows: list[int],
        *,
        accumulates: bool,
    ) -> bool:
        epoch = request.epochs.get(family, 0)
        reason, line = self.lines.judge(family, epoch, accumulates=accumulates)
        if reason is None:
            return True
        self._refuse(answer, part, reason, line, rows)
        return False

    def _refuse(
        self, answer: Answer, part: Part, reason: Reason, line: Line | None, rows: list[int]
    ) -> None:
        answer.refusals.append(Refusal(part, reason, rows))
        if line is not None and line not in answer.lines:
            answer.lines.append(line)

    def _without_repeats(
        self,
        request: Request,
        answer: Answer,
        columns: Columns,
        rows: Sequence[int],
        seen: dict[bytes, Known],
    ) -> list[int]:
        """Drop what is registered already, in the store or earlier in this batch; tell conflicts."""
        new: list[int] = []
        for row in rows:
            id_ = columns.id_at(row)
            held = seen.get(id_)
            mine = Known(id_, columns.addresses[row], columns.payloads[row])
            if held is None:
                seen[id_] = mine
                new.append(row)
            elif held != mine:
                place = request.event_rows[row] if request.event_rows is not None else row
                answer.refusals.append(Refusal(Part.EVENTS, Reason.CONFLICT, [place]))
        return new

    def _numbered(self, columns: Columns, now_us: int) -> list[Batch]:
        """What is stored, with its seqs; then what is of lifetime 0, which takes none. A seq is durable because the row that
        has it is. One of a row that is never stored would be given again after a crash, to a row that is stored; a
        reader that had received the first would go on after it, and never get the second."""
        lifetimes = columns.lifetimes_us
        if not (fleeting := lifetimes.count(0)):
            return [self._stored(columns, now_us)]
        if fleeting == len(columns):
            return [self._fleeting(columns, now_us)]
        rows = range(len(columns))
        stored = self._stored(columns.take([row for row in rows if lifetimes[row]]), now_us)
        gone = columns.take([row for row in rows if not lifetimes[row]])
        return [stored, self._fleeting(gone, now_us)]

    def _stored(self, columns: Columns, now_us: int) -> Batch:
        count = len(columns)
        seqs = array("Q", range(self.seq + 1, self.seq + count + 1))
        self.seq += count
        lifetimes = columns.lifetimes_us
        first = lifetimes[0]
        if lifetimes.count(first) == count:
            expires = array("q", [now_us + first]) * count
        else:
            expires = array("q", [now_us + lifetime for lifetime in lifetimes])
        return Batch(columns, seqs, expires)

    def _fleeting(self, columns: Columns, now_us: int) -> Batch:
        count = len(columns)
        after, expires = array("Q", [self.seq]) * count, array("q", [now_us]) * count
        return Batch(columns, after, expires, is_fleeting=True)

    def forget(self, id_: bytes) -> None:
        self.index.remove(id_)

    def _renew(self, chores: Housekeeping) -> None:
        for id_, expires_us in chores.renewed:
            self.index.renew(id_, expires_us)


def _count(columns: Columns, accepted: Counter[Family]) -> None:
    if len(columns.families) == 1:
        accepted[columns.families[0]] += len(columns)
    else:
        accepted.update(columns.families[number] for number in columns.family)


def _slices(batch: Batch) -> list[Batch]:
    """Each so large at most: to look into the data of more takes longer than others can wait."""
    payloads = batch.columns.payloads
    if sum(map(len, payloads)) <= SLICE_BYTES:
        return [batch]
    cuts = portions(map(len, payloads), SLICE_BYTES, len(payloads))
    return [batch.take(range(first, end)) for first, end in cuts]
