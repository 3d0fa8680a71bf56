"""The judge at a uTupleServer: what a caller registers, reads, commands and is delivered, against the grants it holds durably.

What is allowed goes on with its readers under their owner's name (`utuple.security.owners`); what is not is refused row by row,
with what would be allowed. Batches are judged as columns. Without a judge nothing is secured, and everything is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from utuple.errors import InvalidInput, NotAllowed
from utuple.model.columns import MICROSECONDS, Columns
from utuple.model.packed import Packed, decode_metadata
from utuple.model.utuple import Exact, Kind, Template, UTuple
from utuple.security.grants import Action, Grants
from utuple.security.identity import Identity, Role
from utuple.security.owners import may_come_under, may_use, owned, under_others
from utuple.security.rights import Verdict, allow, allow_rows
from utuple.server.moving.notes import GRANTS, decode_grants
from utuple.server.sharing import FairShares
from utuple.server.writing.request import Part, Reason, Refusal, Request, invalid


class Holder(Protocol):
    """Who has the grants in force."""

    @property
    def grants(self) -> Grants: ...


class Judge:
    def __init__(
        self,
        holder: Holder,
        refused: Callable[[str, str, str], None],
        restore: Callable[[bytes], None] = lambda _: None,
        note: Callable[[str, str, Mapping[str, str]], object] = lambda *_: None,
    ) -> None:
        """`refused` hears of what was: who, what, why; `restore` of the grants that the store holds; `note` of what operators
        and monitors have ordered."""
        self._holder = holder
        self._note = note
        self.shares: FairShares | None = None
        """How much of the server one identity may use."""
        self._refused = refused
        self._restore = restore

    def opened(self, notes: Mapping[str, bytes | None]) -> None:
        """The store was opened (again)."""
        number, body = decode_grants(notes.get(GRANTS))
        if number:
            self._restore(body)

    def committed(self, notes: Mapping[str, bytes | None]) -> None:
        """Grants that have become durable are in force at once, also if whoever brought them waits no longer."""
        with suppress(InvalidInput):  # checked when they came; whoever hears them goes on
            self.opened(notes)

    @property
    def grants(self) -> Grants:
        return self._holder.grants

    def ordered(self, caller: Identity | None, what: str, **about: str) -> None:
        """For the audit: it was accepted."""
        self._note(caller.uri if caller is not None else "", what, about)

    # --- what is registered ----------------------------------------------------------------------

    def judged(self, request: Request, caller: Identity) -> Request:
        """The same without what is refused, and with readers under their owner's name. That nothing of it is another's is asked in
        the writer's order (`writing/conflicts.py`)."""
        refusals = list(request.refusals)
        events, event_rows = self._rows(
            request.events, request.event_rows, Part.EVENTS, caller, refusals
        )
        if len(events) == request.rows:  # EAs alone, and none of them refused: most requests
            return request
        devices, device_rows = self._rows(
            request.devices, request.device_rows, Part.DEVICES, caller, refusals
        )
        devices = replace(
            devices, readers=[owned(caller.name, reader) for reader in devices.readers]
        )
        return replace(
            request,
            events=events,
            event_rows=event_rows,
            devices=devices,
            device_rows=device_rows,
            templates=self._templates(request, caller, refusals),
            refusals=refusals,
            by=caller,
        )

    def _rows(
        self,
        columns: Columns,
        places: Sequence[int] | None,
        part: Part,
        caller: Identity,
        refusals: list[Refusal],
    ) -> tuple[Columns, Sequence[int] | None]:
        if not len(columns):
            return columns, places
        action = Action.EMIT if part is Part.EVENTS else Action.SERVE
        wrong = allow_rows(self.grants, caller, action, columns)
        if part is Part.DEVICES:
            wrong = under_others(caller, columns.each_id()) | wrong
        if not wrong:
            return columns, places
        stood = places if places is not None else range(len(columns))
        refusals += _grouped(part, {stood[row]: said for row, said in wrong.items()})
        good = [row for row in range(len(columns)) if row not in wrong]
        return columns.take(good), [stood[row] for row in good]

    def _templates(
        self, request: Request, caller: Identity, refusals: list[Refusal]
    ) -> list[tuple[int, Packed]]:
        allowed = []
        for row, half in request.templates:
            verdict = self._may_register(half, caller)
            if not verdict.is_allowed:
                refusals += _grouped(Part.TEMPLATES, {row: verdict})
                continue
            try:
                reader = owned(caller.name, half.reader) if half.reader else ""
            except InvalidInput as error:
                refusals.append(invalid(Part.TEMPLATES, row, error))
            else:
                allowed.append((row, half._replace(reader=reader)))
        return allowed

    def _may_watch(self, half: Packed, caller: Identity) -> Verdict:
        action = Action.WATCH if half.kind is Kind.EF else Action.COMMAND
        place = decode_metadata(half.metadata)
        return allow(self.grants, caller, action, half.family, place, half.lifetime_s)

    def _may_register(self, half: Packed, caller: Identity) -> Verdict:
        verdict = self._may_watch(half, caller)
        return verdict if not verdict.is_allowed else may_come_under(caller, half.id)

    def answered(self, caller: Identity, refusals: Iterable[Refusal]) -> None:
        """For the audit: what of it was not allowed, here or by the writer."""
        for refusal in refusals:
            if refusal.reason is Reason.NOT_ALLOWED:
                for _ in refusal.rows:
                    self._refused(caller.uri, refusal.part.name.lower(), "NotAllowed")

    # --- what is asked once ----------------------------------------------------------------------

    def check_read(self, utuple: UTuple, caller: Identity) -> None:
        """Raises NotAllowed, as `command` and `check_commanded` do."""
        verdict = allow(self.grants, caller, Action.WATCH, utuple.family, utuple.metadata)
        self._raise(caller, Action.WATCH, verdict)

    def command(self, request: Request, caller: Identity) -> Request:
        """The same, its one CA as its owner's."""
        [(row, half)] = request.templates
        self._raise(caller, Action.COMMAND, self._may_register(half, caller))
        return replace(
            request, templates=[(row, half._replace(reader=owned(caller.name, "")))], by=caller
        )

    def check_commanded(self, half: Packed, caller: Identity) -> None:
        """What has become of a stored CA is for who gave it, and for operators."""
        verdict = self._may_watch(half, caller)
        if verdict.is_allowed and half.reader and caller.role is not Role.OPERATOR:
            verdict = may_use(caller, half.reader)
        self._raise(caller, Action.COMMAND, verdict)

    def check_serve(self, row: Columns, caller: Identity) -> None:
        self._raise(caller, Action.SERVE, self.may_serve(row, caller))

    def _raise(self, caller: Identity, what: str, verdict: Verdict) -> None:
        if not verdict.is_allowed:
            self._refused(caller.uri, what, "NotAllowed")
            raise NotAllowed(verdict.reason)

    # --- what is delivered -----------------------------------------------------------------------

    def may_receive(self, half: Packed, caller: Identity) -> Verdict:
        """May this caller be given what meets this EF, by the grants of now?"""
        verdict = self._may_watch(half, caller)
        return verdict if not verdict.is_allowed else may_use(caller, half.reader)

    def may_serve(self, row: Columns, caller: Identity) -> Verdict:
        """The commands to this CF, a batch of one?"""
        place: Exact | Template = Exact(row.addresses[0], row.times_us[0], row.position_at(0))
        family, lifetime_s = row.families[row.family[0]], row.lifetimes_us[0] / MICROSECONDS
        verdict = allow(self.grants, caller, Action.SERVE, family, place, lifetime_s)
        return verdict if not verdict.is_allowed else may_use(caller, reader_at(row))


def reader_at(row: Columns) -> str:
    return row.readers[0] if row.readers else ""


def _grouped(part: Part, wrong: Mapping[int, Verdict]) -> list[Refusal]:
    """Rows that are refused for the same reason share one refusal."""
    rows: dict[str, list[int]] = {}
    for row, verdict in wrong.items():
        rows.setdefault(verdict.reason, []).append(row)
    return [Refusal(part, Reason.NOT_ALLOWED, at, rule=reason) for reason, at in rows.items()]
