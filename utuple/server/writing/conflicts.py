"""Who comes under an id or a reader's name that is taken. Pure.

The name of a reader stands for one reading of a family: a program that comes back with other conditions would otherwise begin a
second one, and what waits in the first would never be given to anybody. So it is refused, and nothing is changed.

On a secured server an id belongs to who registered it, whatever is kept under it: `Owners`. It is asked in the writer's order, so
that of two who come at once under one id the first has it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from utuple.model.identity import content_digest
from utuple.model.packed import Packed
from utuple.model.terms import decode_terms
from utuple.model.utuple import Kind
from utuple.security.identity import Role
from utuple.security.owners import may_use
from utuple.server.matching.index import TemplateIndex
from utuple.server.writing.request import Answer, Part, Reason, Refusal, Request
from utuple.store.contract import Known, StoredTemplate

_SHOWN = 200
"""Of conditions, in a message."""
_ANY = (None, ["any"])


def conflicting(
    row: int, came: Packed, held: StoredTemplate | None, index: TemplateIndex, now_us: int
) -> Refusal | None:
    """Why an EF or CA is not registered, if something else is in its place; `held` has its id."""
    if held is not None:
        return _other_content(row, held.packed, came)
    id_ = index.readers.reading(came)
    other = index.templates.get(id_) if id_ is not None else None
    if other is None or other.expires_us <= now_us or came.lifetime_s == 0:
        return None
    rule = (
        f"reader {came.reader!r} reads {'/'.join(came.family)} by other conditions: {_shown(other.packed)}, not "
        f"{_shown(came)}; take another name, or `utuple readers forget` it with all that it has not acknowledged"
    )
    return Refusal(Part.TEMPLATES, Reason.CONFLICT, [row], "reader", came.reader, rule)


class Owners:
    """Whom the ids that a batch names belong to, as they are kept and as the batch itself takes and cancels them."""

    def __init__(
        self, known: Mapping[bytes, Known], templates: Mapping[bytes, StoredTemplate]
    ) -> None:
        self._devices = {id_: one.reader for id_, one in known.items() if one.reader is not None}
        self._templates = templates

    def refusal(self, request: Request, part: Part, row: int, id_: bytes) -> Refusal | None:
        """If this EF, CA or CF is another's."""
        if request.by is None:
            return None
        if part is Part.CANCELS and request.by.role is Role.OPERATOR:
            return None
        kept = self._kept(id_)
        if part is Part.TEMPLATES and kept == "":
            return None  # a CA from before CAs had owners: its content decides
        verdict = may_use(request.by, kept)
        if verdict.is_allowed:
            return None
        return Refusal(part, Reason.NOT_ALLOWED, [row], rule=verdict.reason)

    def is_absent(self, request: Request, id_: bytes) -> bool:
        """Nothing is kept here under this id that a caller who is known could cancel. His word must not go on from here to where
        something is: what a home has forgotten the member that it teaches forgets, too, and asks nobody."""
        return request.by is not None and self._kept(id_) is None

    def _kept(self, id_: bytes) -> str | None:
        held = self._templates.get(id_)
        return held.packed.reader if held is not None else self._devices.get(id_)

    def own_devices(self, request: Request, answer: Answer, rows: Sequence[int]) -> Sequence[int]:
        """Those of these CFs that may be registered. They are their caller's from now on."""
        if request.by is None:
            return rows
        columns, places, own = request.devices, request.device_rows, []
        for row in rows:
            id_ = columns.id_at(row)
            place = places[row] if places is not None else row
            if (refusal := self.refusal(request, Part.DEVICES, place, id_)) is not None:
                answer.refusals.append(refusal)
                continue
            self._devices[id_] = columns.readers[row]
            own.append(row)
        return own

    def cancelled(self, id_: bytes) -> None:
        self._devices.pop(id_, None)


NOBODY_ASKS = Owners({}, {})
"""Of a batch of EAs."""


def _other_content(row: int, held: Packed, came: Packed) -> Refusal | None:
    if held.kind is Kind.CA:
        held = held._replace(reader=came.reader)  # its owner's, and no part of what it says
    if content_digest(held.utuple) != content_digest(came.utuple):
        return Refusal(Part.TEMPLATES, Reason.CONFLICT, [row])
    if held.terms == came.terms:
        return None
    kept, asked = (decode_terms(one.terms) for one in (held, came))
    rule = (
        f"reader {held.reader!r} is known with the terms {kept}, not {asked}; say the same, take another name, or "
        "`utuple readers forget` it with all that it has not acknowledged"
    )
    return Refusal(Part.TEMPLATES, Reason.CONFLICT, [row], "reader", held.reader, rule)


def _shown(half: Packed) -> str:
    """What it asks for, `since` left out: that is no part of what a reader is."""
    place = {name: asked for name, asked in json.loads(half.metadata).items() if name != "since_us"}
    where = json.loads(half.payload)
    asked = {**place, **({"where": where} if where else {})}
    said = ", ".join(f"{name} {json.dumps(one)}" for name, one in asked.items() if one not in _ANY)
    return (said if len(said) <= _SHOWN else f"{said[:_SHOWN]}…") or "none"
