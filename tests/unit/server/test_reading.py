"""A reader's stream: messages stay below what a peer takes, and lose no row."""

from __future__ import annotations

from array import array

from utuple.model.columns import columns_of
from utuple.model.utuple import Exact, Family, UTuple
from utuple.server.cursors import Sending
from utuple.server.reading import PIECE_BYTES, to_reader
from utuple.store.contract import Batch
from utuple.wire.codec import columns_from_wire

FORMAL = b"f" * 16


def test_large_payloads_are_cut_into_messages_in_order() -> None:
    big = {"blob": "x" * (1 << 19)}
    events = [
        UTuple(n.to_bytes(16, "big"), Family("s", "t"), Exact("a", n), big, None, 60)
        for n in range(60)
    ]
    batch = Batch(columns_of(events), array("Q", range(1, 61)), array("q", [0] * 60))
    rows = list(range(1, 60))
    sending = Sending(1, batch, rows, [FORMAL] * len(rows), stored=False)
    messages = list(to_reader(sending, "A"))
    assert len(messages) > 1
    assert all(message.ByteSize() <= PIECE_BYTES + (2 << 20) for message in messages)
    got = [columns_from_wire(message.deliveries.columns)[0] for message in messages]
    assert [time for columns in got for time in columns.times_us] == rows
