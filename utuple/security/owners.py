"""Whom a reader, and with it an EF, a CF or a CA, belongs to. Pure.

On a secured cluster a reader's name is kept with the name of the identity that made it in front: `dispatch/orders` is the reader
`orders` of the identity `dispatch`. So ownership is as durable as the reader, goes with it wherever a move brings it, and needs no
field of its own. The id of a named reader is its owner's, too. A name of an identity has no slash in it. A CA has no reader: it is kept under that of its owner without a name,
`dispatch/`.
"""

from __future__ import annotations

from collections.abc import Iterable

from utuple.errors import InvalidInput
from utuple.model.identity import is_named, is_named_by
from utuple.model.limits import MAX_NAME_BYTES
from utuple.security.identity import Identity
from utuple.security.rights import ALLOWED, Verdict

_BETWEEN = "/"


def owned(owner: str, reader: str) -> str:
    """The name under which a reader of this identity is kept."""
    kept = f"{owner}{_BETWEEN}{reader}"
    if len(kept.encode()) > MAX_NAME_BYTES:
        rule = f"must be at most {MAX_NAME_BYTES - len(owner) - 1} bytes, as a reader of {owner}"
        raise InvalidInput("reader", reader, rule)
    return kept


def owner_of(kept: str) -> str:
    """Empty: nobody's, from before the cluster was secured."""
    owner, between, _ = kept.partition(_BETWEEN)
    return owner if between else ""


def may_use(caller: Identity, kept: str | None) -> Verdict:
    """What is kept under this name may be registered again, attached, acknowledged, asked about and cancelled by who made it. None:
    nothing is."""
    if kept is None or owner_of(kept) == caller.name:
        return ALLOWED
    what = f"the reader {kept}" if kept.rpartition(_BETWEEN)[2] else "this command"
    return Verdict(f"{what} belongs to {owner_of(kept) or 'nobody'}, not to {caller}")


def may_come_under(caller: Identity, id_: bytes) -> Verdict:
    """May this caller register an EF, a CF or a CA under this id? Everybody can know the ids of named readers beforehand, and whoever
    came first under another's would keep him out."""
    if not is_named(id_) or is_named_by(caller.name, id_):
        return ALLOWED
    return Verdict(
        f"the id {id_.hex()} is that of a named reader of somebody else, not of {caller}"
    )


def under_others(caller: Identity, ids: Iterable[bytes]) -> dict[int, Verdict]:
    """Of a batch, by row: what comes under an id that only another may use."""
    judged = ((row, may_come_under(caller, id_)) for row, id_ in enumerate(ids) if is_named(id_))
    return {row: verdict for row, verdict in judged if not verdict.is_allowed}
