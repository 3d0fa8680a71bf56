"""Commands that somebody has asked about are known for a while after their end."""

from __future__ import annotations

from tests.unit.server.delivering.test_commands import command
from utuple.model.packed import packed
from utuple.server.delivering.handover import LOOKED_AT_US, MOST_LOOKED_AT, LookedAt
from utuple.store.contract import StoredTemplate


def stored(name: str, expires_us: int) -> StoredTemplate:
    return StoredTemplate(packed(command(name)), 7, expires_us)


def test_who_has_asked_before_its_end_may_ask_after_it_and_nobody_else() -> None:
    looked_at, one = LookedAt(), stored("a", 100)
    id_ = one.packed.id
    assert looked_at.get(id_, one, 100) is None, "it was over when it was asked about first"
    assert looked_at.get(id_, one, 99) is one
    assert looked_at.get(id_, None, 100) is one
    assert looked_at.get(id_, None, 100 + LOOKED_AT_US) is None
    assert looked_at.get(id_, None, 100) is None, "it is forgotten"


def test_no_more_than_so_many_are_remembered() -> None:
    looked_at, one = LookedAt(), stored("a", 100)
    for number in range(MOST_LOOKED_AT + 1):
        looked_at.get(number.to_bytes(16, "big"), one, 0)
    assert looked_at.get((0).to_bytes(16, "big"), None, 0) is None
    assert looked_at.get((1).to_bytes(16, "big"), None, 0) is one
