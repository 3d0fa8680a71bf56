"""What the formals of one stream have to say, joined: a message by itself would weigh more than what it says."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence

from utuple.client.receiving.link import Link
from utuple.model.utuple import ID_BYTES
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import MAX_POSITIONS, pack


def acknowledgements(links: Iterable[Link]) -> Iterator[pb.FromReader]:
    """Of all formals in one message an origin: each by itself would weigh more than its deliveries."""
    reached: dict[str, dict[bytes, int]] = {}
    for link in links:
        for origin, seq in link.acknowledging():
            reached.setdefault(origin, {})[link.id] = seq
    for origin, positions in reached.items():
        formals, seqs = list(positions), array("Q", positions.values())
        for at in range(0, len(formals), MAX_POSITIONS):
            yield pb.FromReader(
                acknowledge=pb.Acknowledge(
                    origin=origin,
                    formals=b"".join(formals[at : at + MAX_POSITIONS]),
                    seqs=pack(seqs[at : at + MAX_POSITIONS]),
                )
            )


def confirmations(confirms: Sequence[tuple[bytes, bytes]]) -> Iterator[pb.FromReader]:
    """Of all devices in one message, too."""
    formals = b"".join([id_ * (len(commands) // ID_BYTES) for id_, commands in confirms])
    commands = b"".join([commands for _, commands in confirms])
    most = MAX_POSITIONS * ID_BYTES
    for at in range(0, len(commands), most):
        confirm = pb.Confirm(formals=formals[at : at + most], commands=commands[at : at + most])
        yield pb.FromReader(confirm=confirm)


def together(messages: list[pb.FromReader]) -> pb.FromReader:
    """As one: a message on a stream costs far more than what a formal has to say."""
    return (
        messages[0] if len(messages) == 1 else pb.FromReader(several=pb.Several(messages=messages))
    )
