"""Matches of lifetime 0 wait a moment for their reader: in order, once, and only so much for so long."""

from __future__ import annotations

from array import array
from dataclasses import replace

from tests.unit.server.writing.test_engine import ea
from utuple.model.columns import columns_of
from utuple.server.delivering.fleeting import FleetingMatches
from utuple.store.contract import Batch

FORMAL, OTHER = b"f" * 16, b"o" * 16


def batch(*lifetimes_s: float, first: int = 1) -> Batch:
    rows = [replace(ea(first + at), lifetime_s=lifetime) for at, lifetime in enumerate(lifetimes_s)]
    seqs = array("Q", range(first, first + len(rows)))
    return Batch(columns_of(rows), seqs, array("q", [0] * len(rows)), is_fleeting=True)


def seqs(fleeting: FleetingMatches, formal: bytes, now_s: float) -> list[int]:
    return [seq for held in fleeting.pop(formal, now_s) for seq in held.seqs]


def test_each_reader_takes_its_own_once() -> None:
    fleeting = FleetingMatches(5.0, 100, 1_000_000)
    fleeting.keep(FORMAL, batch(0, 0, 0, 0), [0, 2], now_s=1.0)
    fleeting.keep(OTHER, batch(0, 0, 0, 0), [3], now_s=1.0)
    fleeting.keep(FORMAL, batch(0, first=9), [0], now_s=2.0)
    assert seqs(fleeting, FORMAL, 3.0) == [1, 3, 9]
    assert seqs(fleeting, FORMAL, 3.0) == []
    assert seqs(fleeting, OTHER, 3.0) == [4]


def test_what_has_waited_too_long_is_let_go() -> None:
    fleeting = FleetingMatches(5.0, 100, 1_000_000)
    fleeting.keep(FORMAL, batch(0), [0], now_s=1.0)
    fleeting.keep(FORMAL, batch(0, first=2), [0], now_s=4.0)
    assert seqs(fleeting, FORMAL, 6.5) == [2]


def test_beyond_the_limit_the_oldest_is_let_go() -> None:
    fleeting = FleetingMatches(5.0, 3, 1_000_000)
    for number in range(5):
        fleeting.keep(FORMAL, batch(0, first=1 + number), [0], now_s=1.0)
    assert seqs(fleeting, FORMAL, 1.0) == [3, 4, 5]


def test_what_was_taken_makes_room_again() -> None:
    fleeting = FleetingMatches(5.0, 2, 1_000_000)
    fleeting.keep(FORMAL, batch(0, 0), [0, 1], now_s=1.0)
    assert seqs(fleeting, FORMAL, 1.0) == [1, 2]
    fleeting.keep(FORMAL, batch(0, 0, first=3), [0, 1], now_s=1.5)
    assert seqs(fleeting, FORMAL, 1.5) == [3, 4]
