"""Ledgers that a drain brings: nobody's before the last word, durable all along, and merged with what is known here."""

from __future__ import annotations

from utuple.model.terms import Terms
from utuple.server.delivering.sharing.brought import Brought
from utuple.server.delivering.sharing.ledger import Ledger

FORMAL, OTHER = b"f" * 16, b"o" * 16


def drained() -> Ledger:
    """At the server that is drained: 3 was tried once, 4 is parked, 1, 2 and 5 are done."""
    ledger = Ledger(Terms(attempts=2))
    ledger.sit(1, 1)
    ledger.assign("", [(seq, "a") for seq in range(1, 6)], 0.0)
    ledger.refuse(1, "", [3], 0.0, 0.0, 0)
    ledger.refuse(1, "", [4], 0.0, 0.0, 0)
    ledger.assign("", [(4, "a")], 0.0)
    ledger.refuse(1, "", [4], 0.0, 0.0, 77)
    ledger.settle("", [1, 2, 5], 0.0)
    return ledger


def test_a_ledger_counts_with_the_last_word_as_it_was_said_last() -> None:
    brought = Brought()
    brought.learn(FORMAL, "x", "move", b"first")
    brought.learn(FORMAL, "x", "move", b"last")
    brought.learn(OTHER, "x", "another", b"{}")
    assert brought.awaits(FORMAL, "x") and not brought.awaits(FORMAL, "y")
    assert brought.ended("move") == [(FORMAL, "x", b"last")]
    assert not brought.awaits(FORMAL, "x") and brought.awaits(OTHER, "x")
    assert brought.ended("move") == []


def test_what_is_awaited_outlives_a_crash_until_it_counts() -> None:
    brought = Brought()
    brought.learn(FORMAL, "x/y", "move", b'{"a": "b/c"}')
    notes = {name: body for name, body in brought.pop_unsaved().items() if body is not None}
    again = Brought()
    again.restore(notes)
    assert again.ended("move") == [(FORMAL, "x/y", b'{"a": "b/c"}')]
    assert again.pop_unsaved() == dict.fromkeys(notes)
    brought.forget(FORMAL)
    assert brought.pop_unsaved() == dict.fromkeys(notes) and not brought.awaits(FORMAL, "x/y")


def test_an_heir_goes_on_where_the_drained_server_stopped() -> None:
    heir = Ledger(Terms(attempts=2))
    heir.inherit("x", drained().encode(""))
    assert heir.upto == {"x": 5} and heir.changed == {"x"}
    assert {place: one.attempts for place, one in heir.open.items()} == {("x", 3): 1}
    assert [(place, one.attempts) for place, one in heir.parked.items()] == [(("x", 4), 2)]
    heir.sit(1, 1)
    assert heir.due(0.0) == {"x": [3]}


def test_what_an_heir_has_handed_out_itself_is_not_opened_once_more() -> None:
    heir = Ledger(Terms(attempts=2))
    heir.sit(1, 1)
    heir.assign("x", [(seq, "a") for seq in range(3, 6)], 0.0)
    heir.settle("x", [3, 5], 0.0)
    heir.inherit("x", drained().encode(""))
    assert set(heir.open) == {("x", 4)} and not heir.parked and heir.upto == {"x": 5}
