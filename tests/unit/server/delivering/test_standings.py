"""How stored commands stand, while they live and for a while after their end."""

from __future__ import annotations

import pytest

from tests.unit.server.delivering.test_commands import command
from utuple.model.packed import packed
from utuple.server.delivering import standings as module
from utuple.server.delivering.standings import KEPT_US, Standings
from utuple.store.contract import NO_SEQ, StoredTemplate

LAMP, FAN = b"l" * 16, b"f" * 16


def stored(name: str, seq: int, expires_us: int = 100) -> StoredTemplate:
    return StoredTemplate(packed(command(name)), seq, expires_us)


def test_a_command_is_known_while_it_lives_and_a_minute_longer() -> None:
    held, one = Standings(), stored("a", 7)
    id_ = one.packed.id
    assert held.look(id_, one, 100) is None, "it was over when it was heard of first"
    assert held.begin(one) is held.look(id_, one, 99) is held.look(id_, None, 100)
    held.ended(id_, [FAN], 101)
    standing = held.look(id_, None, 100 + KEPT_US - 1)
    assert standing is not None and standing.acknowledged == {FAN}, "elsewhere"
    assert held.look(id_, None, 100 + KEPT_US) is None
    held.ended(LAMP, (), 101 + KEPT_US)
    assert held.get(id_) is None, "and then it is forgotten"
    assert held.begin(stored("b", NO_SEQ)) is None, "without a lifetime it is not kept"


def test_who_goes_past_a_command_after_its_end_has_not_acknowledged_it() -> None:
    held = Standings()
    one, two = held.begin(stored("a", 7)), held.begin(stored("b", 8, 200))
    assert one is not None and two is not None
    held.handed(LAMP, "porch", one.stored.packed.id)
    held.handed(LAMP, "porch", two.stored.packed.id)
    held.handed(FAN, "hall", two.stored.packed.id)
    held.advance(LAMP, 0, 8, 150)
    held.advance(FAN, 0, 8, 150)
    assert (one.acknowledged, one.passed) == ({LAMP}, {FAN})
    assert (two.acknowledged, two.passed) == ({LAMP, FAN}, set())
    assert one.have_it == {LAMP: "porch"}


def test_what_was_stored_before_a_restart_or_had_to_go_is_not_kept_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = Standings()
    held.take_over(7)
    before, after = held.begin(stored("a", 7)), held.begin(stored("b", 8))
    assert before is not None and after is not None
    assert (before.is_whole, after.is_whole) == (False, True)
    monkeypatch.setattr(module, "MOST_KEPT", 2)
    held.handed(LAMP, "porch", after.stored.packed.id)
    assert held.get(before.stored.packed.id) is None and held.get(after.stored.packed.id) is after
    third = held.begin(stored("c", 9))
    again = held.begin(after.stored)
    assert third is not None and third.is_whole
    assert again is not None and not again.is_whole and not again.have_it
    held.drop(again.stored.packed.id)
    assert held.get(again.stored.packed.id) is None


def test_one_that_is_stored_again_under_another_seq_is_another() -> None:
    held = Standings()
    first, again = held.begin(stored("a", 7)), held.begin(stored("a", 9))
    assert first is not None and again is not None and first is not again
    held.handed(LAMP, "porch", again.stored.packed.id)
    held.advance(LAMP, 0, 8, 50)
    assert not again.acknowledged
    held.advance(LAMP, 8, 9, 50)
    assert again.acknowledged == {LAMP}
