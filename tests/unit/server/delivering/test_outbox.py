"""What has queued for one stream leaves together, and nothing of it changes by that."""

from __future__ import annotations

from array import array
from dataclasses import replace

from tests.unit.server.writing.test_engine import ea
from utuple.delivery.notice import News, Notice
from utuple.model.columns import columns_of
from utuple.server.delivering.cursor import Sending
from utuple.server.delivering.outbox import JOINED_ROWS, Outbox, Outgoing
from utuple.store.contract import Batch

ONE, OTHER = b"1" * 16, b"2" * 16
NOTICE = Notice(News.ATTACHED, ONE)


def sending(
    first: int, count: int, lists: dict[bytes, list[int]], *, stored: bool = False
) -> Sending:
    """EAs first to first + count, seq as number, and who gets which of them by row."""
    seqs = array("Q", range(first, first + count))
    batch = Batch(columns_of(map(ea, seqs)), seqs, array("q", [n + 1000 for n in seqs]))
    rows = [row for own in lists.values() for row in own]
    return Sending(7, batch, rows, list(lists), [len(own) for own in lists.values()], stored)


def told(item: Outgoing | None) -> list[tuple[bytes, int, bytes, int]]:
    """Formal, seq, id and expiry of every delivery, in order."""
    assert isinstance(item, Sending)
    formals = [
        formal for formal, n in zip(item.formals, item.counts, strict=True) for _ in range(n)
    ]
    return [
        (formal, item.batch.seqs[row], item.batch.columns.id_at(row), item.batch.expires_us[row])
        for formal, row in zip(formals, item.rows, strict=True)
    ]


async def test_live_ones_that_queued_leave_as_one_formal_by_formal() -> None:
    outbox = Outbox(lambda: None)
    parts = [
        sending(1, 3, {ONE: [0, 2], OTHER: [1, 2]}),
        sending(4, 2, {OTHER: [0], ONE: [1]}),
        sending(6, 1, {OTHER: [0]}),
    ]
    for part in parts:
        outbox.put(part)
    got = outbox.pop()
    assert outbox.is_empty
    assert isinstance(got, Sending) and (got.stream, got.formals, got.stored) == (
        7,
        [ONE, OTHER],
        False,
    )
    expected = [one for part in parts for one in told(part)]
    assert told(got) == sorted(expected, key=lambda one: (one[0], one[1]))


async def test_what_has_no_seq_leaves_apart_from_what_has_one() -> None:
    outbox = Outbox(lambda: None)
    for number in (1, 2, 3, 4):
        part = sending(number, 1, {ONE: [0]})
        fleeting = replace(part.batch, is_fleeting=number in (2, 3))
        outbox.put(replace(part, batch=fleeting))
    left = [outbox.pop() for _ in range(3)]
    assert outbox.is_empty
    assert [[seq for _, seq, _, _ in told(item)] for item in left] == [[1], [2, 3], [4]]
    assert isinstance(left[1], Sending) and left[1].batch.is_fleeting


async def test_what_is_stored_or_a_small_part_of_its_batch_or_another_thing_leaves_alone() -> None:
    outbox = Outbox(lambda: None)
    items: list[Outgoing] = [
        sending(1, 1, {ONE: [0]}),
        sending(2, 1, {ONE: [0]}, stored=True),
        sending(3, 1, {ONE: [0]}),
        NOTICE,
        sending(4, 1, {ONE: [0]}),
        sending(5, 3, {ONE: [0]}),
        sending(8, 1, {ONE: [0]}),
    ]
    for item in items:
        outbox.put(item)
    assert [outbox.pop() for _ in items] == items


async def test_not_more_leave_together_than_a_message_should_hold() -> None:
    outbox = Outbox(lambda: None)
    half = sending(1, JOINED_ROWS // 2, {ONE: list(range(JOINED_ROWS // 2))})
    for _ in range(3):
        outbox.put(half)
    sizes = []
    while not outbox.is_empty:
        got = outbox.pop()
        assert isinstance(got, Sending)
        sizes.append(len(got.rows))
    assert sizes == [JOINED_ROWS, JOINED_ROWS // 2]
