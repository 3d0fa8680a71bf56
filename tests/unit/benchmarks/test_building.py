"""What `utuple bench client` compares the SDK with is the same message."""

from __future__ import annotations

from benchmarks import trucks
from benchmarks.client.building import message_of
from utuple.client.sending.batcher import Submission, request_of
from utuple.client.sending.rows import event_columns
from utuple.wire import utuple_pb2 as pb


async def test_the_lean_message_says_what_the_sdk_says() -> None:
    events = trucks.events(100, 7)
    time_us, random = 1_700_000_000_000_000, 12_345
    columns = event_columns(events, 0, time_us, random)
    ours = request_of([Submission(pb.EVENTS, {trucks.FAMILY: 1}, False, columns)])
    assert pb.RegisterRequest.FromString(message_of(events, time_us, random)) == ours
