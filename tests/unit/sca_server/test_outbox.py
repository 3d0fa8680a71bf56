"""What waits for one reader: in order, bounded, and never carried out late."""

from __future__ import annotations

import pytest

from sca_server.outbox import Outbox, OutboxLimits, Parcel
from utuple.delivery.notice import News, Notice

PLENTY = OutboxLimits(rows=100, size_bytes=1 << 20, message_rows=100, message_bytes=1 << 20)
FORMAL = b"F" * 16


def offer(outbox: Outbox, number: int, payload: bytes = b"{}", stale_at_s: float = 10.0) -> bool:
    return outbox.offer(FORMAL, number.to_bytes(16), payload, stale_at_s)


def numbers(taken: object) -> list[int]:
    assert isinstance(taken, Parcel)
    assert len(taken.formals) == len(taken.payloads) == len(taken.commands)
    return [int.from_bytes(command) for command in taken.commands]


def test_notes_and_deliveries_leave_in_the_order_they_came() -> None:
    outbox = Outbox(PLENTY)
    outbox.put(Notice(News.ATTACHED, FORMAL))
    offer(outbox, 1)
    offer(outbox, 2)
    outbox.put(Notice(News.DETACHED, FORMAL))
    assert outbox.pop(0) == Notice(News.ATTACHED, FORMAL)
    assert numbers(outbox.pop(0)) == [1, 2]
    assert outbox.pop(0) == Notice(News.DETACHED, FORMAL)
    assert outbox.pop(0) is None
    assert (outbox.rows, outbox.notices, outbox.size_bytes) == (0, 0, 0)


@pytest.mark.parametrize(
    ("limits", "taken"),
    [
        (OutboxLimits(rows=2, size_bytes=1 << 20, message_rows=9, message_bytes=1 << 20), 2),
        (OutboxLimits(rows=9, size_bytes=700, message_rows=9, message_bytes=1 << 20), 3),
    ],
)
def test_a_full_outbox_takes_no_more_until_something_left(limits: OutboxLimits, taken: int) -> None:
    outbox = Outbox(limits)
    offered = [offer(outbox, number, payload=b"x" * 100) for number in range(5)]
    assert offered == [True] * taken + [False] * (5 - taken)
    assert numbers(outbox.pop(0)) == list(range(taken))
    assert offer(outbox, 9)


@pytest.mark.parametrize(
    ("limits", "messages"),
    [
        (OutboxLimits(9, 1 << 20, message_rows=2, message_bytes=1 << 20), [[0, 1], [2, 3], [4]]),
        (OutboxLimits(9, 1 << 20, message_rows=9, message_bytes=450), [[0, 1], [2, 3], [4]]),
        (OutboxLimits(9, 1 << 20, message_rows=9, message_bytes=1), [[0], [1], [2], [3], [4]]),
    ],
)
def test_a_message_is_bounded_but_carries_one_at_least(
    limits: OutboxLimits, messages: list[list[int]]
) -> None:
    outbox = Outbox(limits)
    for number in range(5):
        offer(outbox, number, payload=b"x" * 100)
    assert [numbers(outbox.pop(0)) for _ in messages] == messages
    assert outbox.pop(0) is None


def test_what_nobody_waits_for_any_longer_is_dropped_and_not_carried_out_late() -> None:
    outbox = Outbox(PLENTY)
    offer(outbox, 1, stale_at_s=5.0)
    offer(outbox, 2, stale_at_s=7.0)
    assert numbers(outbox.pop(5.0)) == [2]
    offer(outbox, 3, stale_at_s=7.0)
    assert outbox.pop(7.0) is None
    assert (outbox.rows, outbox.size_bytes) == (0, 0)
