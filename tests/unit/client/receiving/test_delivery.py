"""Deliveries of many formals in one message: each formal gets its own rows of columns they share."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Sequence
from dataclasses import replace

import pytest

from utuple.client.receiving.delivery import READ, Chunk, Delivered, Delivery, chunks_of
from utuple.errors import InvalidInput
from utuple.model.columns import columns_of
from utuple.model.utuple import Exact, Family, Template, UTuple
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import MAX_SEVERAL, columns_to_wire, pack, said_in

FAMILY = Family("truck", "load")
ONE, OTHER, STRANGE = bytes([1] * 16), bytes([2] * 16), bytes([3] * 16)
FORMALS = {id_: UTuple(id_, FAMILY, Template(), None, {}, 60.0, "r") for id_ in (ONE, OTHER)}
EVENTS = [
    UTuple(bytes([9, n] * 8), FAMILY, Exact(f"a{n}", n, None), {"n": n}, None, 60.0)
    for n in range(3)
]


def message(formals: list[bytes], counts: list[int], rows: list[int]) -> pb.Deliveries:
    return pb.Deliveries(
        formals=b"".join(formals),
        counts=pack(array("I", counts)),
        rows=pack(array("I", rows)),
        seqs=pack(array("Q", [10, 11, 12])),
        columns=columns_to_wire(columns_of(EVENTS)),
    )


def test_each_formal_gets_its_own_rows_and_those_of_strangers_are_left_out() -> None:
    several = message([ONE, STRANGE, OTHER], [2, 1, 2], [0, 2, 1, 1, 2])
    found = list(chunks_of("A", several, FORMALS))
    assert [(name, places) for name, _, places in found] == [(ONE, range(2)), (OTHER, range(3, 5))]
    chunk, second = (chunk for _, chunk, _ in found)
    assert chunk is second  # taken apart once
    assert chunk.origin == "A"
    for rows, (_, _, places) in zip(([0, 2], [1, 2]), found, strict=True):
        assert [chunk.seqs[place] for place in places] == [10 + row for row in rows]
        assert [chunk.ids[place] for place in places] == [EVENTS[row].id for row in rows]
        said = [Delivered(chunk, place, READ) for place in places]
        assert [(one.address, one.data) for one in said] == [(f"a{n}", {"n": n}) for n in rows]


DEVICES = {
    id_: UTuple(id_, FAMILY, Exact(f"d{id_[0]}", 0, (1.0, id_[0])), None, {}, 60.0, "r")
    for id_ in (ONE, OTHER)
}


def commands(chunk: Chunk, places: Sequence[int]) -> list[tuple[object, ...]]:
    """What the program sees of them."""
    found = [Delivered(chunk, place, READ) for place in places]
    return [(c.id.bytes, c.data, c.address, c.position, c.subject, c.type) for c in found]


def test_each_device_gets_its_own_commands_and_one_for_several_is_seen_as_its_own() -> None:
    several = message([ONE, STRANGE, OTHER], [2, 1, 1], [2, 1, 0, 1])
    found = {name: (chunk, places) for name, chunk, places in chunks_of("A", several, DEVICES)}
    assert commands(*found[ONE]) == [
        (EVENTS[2].id, {"n": 2}, "d1", (1.0, 1), "truck", "load"),
        (EVENTS[1].id, {"n": 1}, "d1", (1.0, 1), "truck", "load"),
    ]
    assert commands(*found[OTHER]) == [(EVENTS[1].id, {"n": 1}, "d2", (1.0, 2), "truck", "load")]
    chunk, places = found[OTHER]
    assert [chunk.seqs[place] for place in places] == [11]
    assert found[ONE][0] is chunk, "decoded once"


def test_a_part_of_some_commands_is_the_same_and_holds_no_others() -> None:
    [_, (_, chunk, places)] = chunks_of("A", message([ONE, OTHER], [2, 1], [2, 1, 0]), DEVICES)
    part = chunk.part(places)
    assert (len(part), len(part.columns)) == (1, 1)
    assert commands(part, range(1)) == commands(chunk, places)
    assert (part.ids, part.seqs, part.origin) == ([EVENTS[0].id], [10], "A")


@pytest.mark.parametrize(
    ("counts", "rows", "field"),
    [([2, 1], [0, 1], "counts"), ([1, 1], [0, 3], "rows"), ([1], [0, 1], "counts")],
)
def test_rows_that_do_not_add_up_are_refused(
    counts: list[int], rows: list[int], field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        list(chunks_of("A", message([ONE, OTHER], counts, rows), FORMALS))
    assert refused.value.field == field


def test_data_is_decoded_with_its_neighbours_and_each_delivery_has_its_own() -> None:
    data = [{"n": n, "list": [n]} for n in range(130)]
    data[70] = {"raw": b"\x00"}
    data[129] = {"text": "x" * 70_000}
    events = [replace(EVENTS[0], data=one) for one in data]
    chunk = Chunk(columns_of(events), "A", "A", stored=False, rows=[*range(130), 5])
    first, second = (Delivered(chunk, place, READ) for place in (5, 130))
    first.data["list"].append("mine")
    assert first.data == {"n": 5, "list": [5, "mine"]}, "what was changed stays so"
    assert second.data == data[5], "of the same event, for another formal"
    rest = [Delivered(chunk, place, READ) for place in range(130) if place != 5]
    assert [one.data for one in rest] == data[:5] + data[6:]
    assert rest[-1].data is rest[-1].data, "large ones too"


class Noting:
    def __init__(self) -> None:
        self.done: list[int] = []

    def acknowledge(self, chunk: Chunk, place: int, after_s: float | None = None) -> None:
        self.done.append(place)

    def check(self, chunk: Chunk, place: int, after_s: float | None = None) -> None:
        return


async def test_acknowledging_may_be_awaited_made_a_task_or_forgotten_and_is_refused_the_second_time() -> (
    None
):
    chunk, noting = Chunk(columns_of(EVENTS), "A", "A", stored=False), Noting()
    one, other, third = (Delivery(chunk, place, noting) for place in (0, 1, 2))
    await one.ack()
    await asyncio.create_task(other.ack())
    forgotten = third.ack()
    assert noting.done == [0, 1, 2]
    for again in (one.ack, other.nack, third.ack):
        with pytest.raises(InvalidInput, match=r"n?ack: .* is refused: it was acknowledged or"):
            await again()
    await forgotten
    assert noting.done == [0, 1, 2]


def test_a_reader_may_say_several_things_at_once_but_not_without_limit() -> None:
    one = pb.FromReader(taken=pb.Taken(id=ONE, count=1))
    assert list(said_in(one)) == [one]
    assert list(said_in(pb.FromReader(several=pb.Several(messages=[one, one])))) == [one, one]
    for wrong in ([one] * (MAX_SEVERAL + 1), [pb.FromReader(several=pb.Several())]):
        with pytest.raises(InvalidInput):
            said_in(pb.FromReader(several=pb.Several(messages=wrong)))
