"""What a command's sender is told."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from utuple.client.sending.receipt import DeviceReceipt, Handovers, receipt_of
from utuple.wire import utuple_pb2 as pb


def handover(id_: int, address: str, handed: pb.Handed.ValueType) -> pb.Handover:
    return pb.Handover(id=bytes([id_]) * 16, address=address, handed=handed)


def test_a_receipt_without_devices_is_false_and_says_what_met_nobody() -> None:
    receipt = receipt_of("aircon/power at 'room-9' with {'on': True}", [])
    assert not receipt and (receipt.matched, receipt.handed_over) == (0, 0)
    assert str(receipt) == "no device matched: aircon/power at 'room-9' with {'on': True}"


def test_a_device_that_several_members_answer_for_counts_once_by_its_best_answer() -> None:
    receipt = receipt_of(
        "x",
        [
            handover(1, "room-1", pb.NOT_CONNECTED),
            handover(1, "room-1", pb.HANDED_OVER),
            handover(1, "room-1", pb.NOT_CONFIRMED),
        ],
    )
    assert receipt.devices == (DeviceReceipt("room-1", True),)


BEST_FIRST = (
    (pb.HANDED_OVER, ""),
    (pb.NOT_CONFIRMED, "not confirmed"),
    (pb.NOT_CONNECTED, "not connected"),
)


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([h for h, _ in BEST_FIRST]))))
def test_whatever_members_answer_a_cf_is_listed_once_and_its_best_answer_wins(
    answers: list[tuple[int, pb.Handed.ValueType]],
) -> None:
    receipt = receipt_of("x", [handover(id_, f"room-{id_}", handed) for id_, handed in answers])
    assert [device.address for device in receipt.devices] == [
        f"room-{id_}" for id_ in sorted({id_ for id_, _ in answers})
    ]
    for device in receipt.devices:
        mine = [handed for id_, handed in answers if f"room-{id_}" == device.address]
        best = next(reason for handed, reason in BEST_FIRST if handed in mine)
        assert (device.reason, device.handed_over) == (best, not best)


def test_two_devices_at_one_address_are_two() -> None:
    receipt = receipt_of(
        "x", [handover(1, "room", pb.HANDED_OVER), handover(2, "room", pb.NOT_CONNECTED)]
    )
    assert (receipt.matched, receipt.handed_over) == (2, 1)


def test_a_receipt_says_who_missed_the_command_and_why() -> None:
    receipt = receipt_of(
        "x",
        [
            handover(1, "room-1", pb.HANDED_OVER),
            handover(2, "room-2", pb.NOT_CONNECTED),
            handover(3, "room-3", pb.NOT_CONFIRMED),
        ],
    )
    assert receipt and (receipt.matched, receipt.handed_over) == (3, 1)
    assert str(receipt) == (
        "handed over to 1 of 3 devices; missed: room-2 (not connected), room-3 (not confirmed)"
    )


@given(st.lists(st.integers(0, 9), max_size=12), st.integers(0, 9), st.integers(0, 9))
def test_the_handovers_of_some_rows_are_those_counted_from_the_first(
    rows: list[int], first: int, end: int
) -> None:
    rows.sort()
    met = Handovers(rows, b"".join(bytes([at]) * 16 for at in range(len(rows))), bytes(len(rows)))
    assert list(met.between(first, end)) == [
        (row - first, id_, handed) for row, id_, handed in met if first <= row < end
    ]
    assert [one.id for one in met.of(first, "room")] == [id_ for row, id_, _ in met if row == first]
