"""Who comes under an id or a reader's name that is taken. Pure.

The name of a reader stands for one reading of a family: a program that comes back with other conditions would otherwise begin a
second one, and what waits in the first would never be given to anybody. So it is refused, and nothing is changed."""

from __future__ import annotations

import json

from utuple.model.identity import content_digest
from utuple.model.packed import Packed
from utuple.server.matching.index import TemplateIndex
from utuple.server.writing.request import Part, Reason, Refusal
from utuple.store.contract import StoredTemplate

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


def _other_content(row: int, held: Packed, came: Packed) -> Refusal | None:
    if content_digest(held.utuple) != content_digest(came.utuple):
        return Refusal(Part.TEMPLATES, Reason.CONFLICT, [row])
    if held.terms == came.terms:
        return None
    kept, asked = (one.terms.decode() or "the default" for one in (held, came))
    rule = f"reader {held.reader!r} is known with the terms {kept}, not {asked}: `utuple readers forget` it first"
    return Refusal(Part.TEMPLATES, Reason.CONFLICT, [row], "reader", held.reader, rule)


def _shown(half: Packed) -> str:
    """What it asks for, `since` left out: that is no part of what a reader is."""
    place = {name: asked for name, asked in json.loads(half.metadata).items() if name != "since_us"}
    where = json.loads(half.payload)
    asked = {**place, **({"where": where} if where else {})}
    said = ", ".join(f"{name} {json.dumps(one)}" for name, one in asked.items() if one not in _ANY)
    return (said if len(said) <= _SHOWN else f"{said[:_SHOWN]}…") or "none"
