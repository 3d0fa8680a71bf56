"""`matches`: the one relation. Every index, statement and fast path is tested against it."""

from __future__ import annotations

from utuple.model.condition import where_meets
from utuple.model.utuple import Exact, Kind, Template, UTuple


def matches(actual: UTuple, formal: UTuple) -> bool:
    """Does this EA (or CA) meet this EF (or CF)? Lifetimes are the caller's: they need a clock."""
    pair = (actual.kind, formal.kind)
    if pair == (Kind.EA, Kind.EF):
        exact, template = actual.metadata, formal.metadata
    elif pair == (Kind.CA, Kind.CF):
        exact, template = formal.metadata, actual.metadata
    else:
        return False
    assert isinstance(exact, Exact) and isinstance(template, Template)
    assert actual.data is not None and formal.where is not None
    return (
        actual.family == formal.family
        and template.accepts(exact)
        and where_meets(formal.where, actual.data)
    )
