"""Hand-overs and their confirmations, with time as a number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sca_server.index import Device
from sca_server.outbox import Attached, Delivery, Detached, OutboxLimits, Replaced
from sca_server.readers import Handed, ReaderLimits, Readers, Round, Stream
from sca_server.template import DataTemplate
from utuple.errors import Overloaded
from utuple.model.utuple import Family
from utuple.wire import utuple_pb2 as pb

ANYTHING = DataTemplate(b"{}", None)
OPEN, HANDED_OVER = Handed.OPEN, Handed.HANDED_OVER
NOT_CONNECTED, NOT_CONFIRMED = Handed.NOT_CONNECTED, Handed.NOT_CONFIRMED


def limits(
    *,
    streams: int = 10,
    formals: int = 10,
    unconfirmed: int = 100,
    remembered: int = 100,
    rows: int = 100,
) -> ReaderLimits:
    outbox = OutboxLimits(rows, 1 << 20, message_rows=100, message_bytes=1 << 20)
    return ReaderLimits(streams, formals, unconfirmed, remembered, stale_s=30.0, outbox=outbox)


def device(number: int = 1) -> Device:
    return Device(bytes([number]) * 16, Family("lamp", "dim"), "lamp-1", ANYTHING, "r", 0)


def command(number: int) -> bytes:
    return bytes([0xC0 + number]) * 16


def hand(
    readers: Readers,
    number: int,
    to: Device | None = None,
    *,
    now_s: float = 0,
    wait_s: float = 10,
) -> Round:
    round_ = Round(now_s + wait_s)
    readers.hand(round_, command(number), to or device(), b"{}", now_s)
    return round_


def attached(readers: Readers, *numbers: int) -> Stream:
    stream = readers.open()
    for number in numbers or (1,):
        readers.attach(stream, device(number).id)
        stream.outbox.take(0)
    return stream


def delivered(stream: Stream, now_s: float = 0) -> list[bytes]:
    """The commands written to it now; notes in between are passed over."""
    found: list[Delivery] = []
    while (taken := stream.outbox.take(now_s)) is not None:
        if isinstance(taken, list):
            found += taken
    return [row.command for row in found]


def test_the_numbers_are_the_protocols() -> None:
    assert {said.name: said.value for said in Handed if said} == {
        name: number for name, number in pb.Handed.items() if number
    }


def test_a_device_nobody_is_attached_for_is_not_connected() -> None:
    readers = Readers(limits())
    round_ = hand(readers, 1)
    assert (round_.handed, round_.open) == ([NOT_CONNECTED], {})


def test_a_confirmed_command_is_handed_over_and_completes_its_call() -> None:
    readers = Readers(limits())
    stream = attached(readers)
    round_ = hand(readers, 1)
    assert round_.handed == [OPEN]
    assert delivered(stream) == [command(1)]
    assert readers.confirm(stream, device().id, command(1)) == [round_]
    assert (round_.handed, readers.handed_over, readers.unconfirmed) == ([HANDED_OVER], 1, 0)


def test_a_call_is_complete_when_its_last_device_has_confirmed() -> None:
    readers = Readers(limits())
    stream = attached(readers, 1, 2)
    round_ = Round(10.0)
    for number in (1, 2, 3):
        readers.hand(round_, command(1), device(number), b"{}", 0.0)
    assert readers.confirm(stream, device(2).id, command(1)) == []
    assert readers.confirm(stream, device(1).id, command(1)) == [round_]
    assert round_.handed == [HANDED_OVER, HANDED_OVER, NOT_CONNECTED]


def test_without_a_word_by_the_deadline_it_is_not_confirmed() -> None:
    readers = Readers(limits())
    attached(readers)
    late, early = hand(readers, 1, wait_s=10.0), hand(readers, 2, wait_s=5.0)
    assert readers.overdue(4.999) == []
    assert readers.overdue(5.0) == [early]
    assert readers.overdue(9.999) == []
    assert readers.overdue(10.0) == [late]
    assert (late.handed, early.handed) == ([NOT_CONFIRMED], [NOT_CONFIRMED])
    assert readers.unconfirmed == 0


def test_a_confirmed_command_is_not_delivered_again_to_that_device_but_is_to_others() -> None:
    readers = Readers(limits())
    stream = attached(readers, 1, 2)
    hand(readers, 1)
    delivered(stream)
    readers.confirm(stream, device().id, command(1))
    assert hand(readers, 1).handed == [HANDED_OVER]
    assert delivered(stream) == []
    assert hand(readers, 1, device(2)).handed == [OPEN]
    assert delivered(stream) == [command(1)]


def test_a_retry_while_the_first_waits_is_sent_once_and_answered_with_it() -> None:
    readers = Readers(limits())
    stream = attached(readers)
    first, retry = hand(readers, 1, wait_s=5.0), hand(readers, 1, wait_s=10.0)
    assert delivered(stream) == [command(1)]
    assert readers.overdue(5.0) == [first]
    assert readers.confirm(stream, device().id, command(1)) == [retry]
    assert (first.handed, retry.handed) == ([NOT_CONFIRMED], [HANDED_OVER])


def test_a_late_confirmation_spares_the_retry() -> None:
    readers = Readers(limits())
    stream = attached(readers)
    hand(readers, 1)
    delivered(stream)
    readers.overdue(10.0)
    assert readers.confirm(stream, device().id, command(1)) == []
    assert hand(readers, 1, now_s=11.0).handed == [HANDED_OVER]
    assert delivered(stream) == []


def test_an_unconfirmed_command_that_comes_again_is_delivered_again() -> None:
    readers = Readers(limits())
    stream = attached(readers)
    hand(readers, 1)
    delivered(stream)
    readers.overdue(10.0)
    assert hand(readers, 1, now_s=11.0).handed == [OPEN]
    assert delivered(stream, 11.0) == [command(1)]


def test_only_what_was_sent_to_a_stream_can_be_confirmed_by_it() -> None:
    readers = Readers(limits())
    attached(readers, 1)
    stranger = attached(readers, 2)
    round_ = hand(readers, 1)
    assert readers.confirm(stranger, device(1).id, command(1)) == []
    assert readers.confirm(stranger, device(2).id, command(2)) == [], "never sent"
    assert round_.handed == [OPEN]
    assert hand(readers, 2, device(2)).handed == [OPEN], "so it is sent now"


def test_a_second_attach_replaces_the_first_which_is_told() -> None:
    readers = Readers(limits())
    first, second = attached(readers), readers.open()
    assert readers.attach(second, device().id) is first
    assert first.outbox.take(0) == Replaced(device().id)
    assert second.outbox.take(0) == Attached(device().id, unknown=False)
    hand(readers, 1)
    assert (delivered(first), delivered(second)) == ([], [command(1)])


def test_an_attach_by_the_same_stream_again_replaces_nobody() -> None:
    readers = Readers(limits())
    stream = attached(readers)
    assert readers.attach(stream, device().id) is None
    assert stream.outbox.take(0) == Attached(device().id, unknown=False)
    assert stream.outbox.take(0) is None


def test_a_retry_after_a_replacement_goes_to_the_new_holder_and_both_calls_wait_for_it() -> None:
    readers = Readers(limits())
    first = attached(readers)
    before = hand(readers, 1)
    second = attached(readers)
    after = hand(readers, 1)
    assert delivered(second) == [command(1)]
    assert readers.confirm(first, device().id, command(1)) == []
    assert readers.confirm(second, device().id, command(1)) == [before, after]
    assert not first.unconfirmed and not second.unconfirmed


def test_what_was_sent_before_a_replacement_may_still_be_confirmed_by_who_has_it() -> None:
    readers = Readers(limits())
    first = attached(readers)
    round_ = hand(readers, 1)
    attached(readers)
    assert readers.confirm(first, device().id, command(1)) == [round_]


def test_a_detached_device_is_not_connected_and_its_stream_is_told() -> None:
    readers = Readers(limits())
    stream = attached(readers)
    assert readers.detach(device().id) is stream
    assert stream.outbox.take(0) == Detached(device().id)
    assert readers.detach(device().id) is None
    assert hand(readers, 1).handed == [NOT_CONNECTED]


def test_the_end_of_a_stream_ends_every_wait_for_it_at_once() -> None:
    readers = Readers(limits())
    stream, other = attached(readers, 1), attached(readers, 2)
    round_, others = hand(readers, 1), hand(readers, 1, device(2))
    assert readers.close(stream) == ([device(1).id], [round_])
    assert (round_.handed, others.handed) == ([NOT_CONFIRMED], [OPEN])
    assert hand(readers, 2).handed == [NOT_CONNECTED]
    assert readers.confirm(other, device(2).id, command(1)) == [others]


def test_a_program_that_comes_back_may_confirm_what_its_last_stream_had() -> None:
    readers = Readers(limits())
    stream = attached(readers)
    hand(readers, 1)
    readers.close(stream)
    back = attached(readers)
    readers.confirm(back, device().id, command(1))
    assert hand(readers, 1).handed == [HANDED_OVER]


@pytest.mark.parametrize("bound", [limits(unconfirmed=2), limits(rows=2)])
def test_a_reader_that_stopped_costs_a_bounded_number_and_slows_nobody(bound: ReaderLimits) -> None:
    readers = Readers(bound)
    attached(readers, 1)
    reading = attached(readers, 2)
    stopped = [hand(readers, number).handed for number in range(4)]
    assert stopped == [[OPEN], [OPEN], [NOT_CONFIRMED], [NOT_CONFIRMED]]
    for number in range(4):
        round_ = hand(readers, number, device(2))
        assert delivered(reading) == [command(number)]
        assert readers.confirm(reading, device(2).id, command(number)) == [round_]


def test_the_same_command_twice_in_one_call_is_sent_once_and_answered_twice() -> None:
    readers = Readers(limits())
    stream = attached(readers)
    twice, overdue = Round(10.0), Round(10.0)
    for round_, number in ((twice, 1), (twice, 1), (overdue, 2), (overdue, 2)):
        readers.hand(round_, command(number), device(), b"{}", 0.0)
    assert delivered(stream) == [command(1), command(2)]
    assert readers.confirm(stream, device().id, command(1)) == [twice]
    assert readers.overdue(10.0) == [overdue]
    assert (twice.handed, overdue.handed) == ([HANDED_OVER] * 2, [NOT_CONFIRMED] * 2)


def test_only_the_latest_confirmed_pairs_are_remembered() -> None:
    readers = Readers(limits(remembered=2))
    stream = attached(readers)
    for number in (1, 2, 3):
        hand(readers, number)
        readers.confirm(stream, device().id, command(number))
    assert [hand(readers, number).handed for number in (1, 2, 3)] == [
        [OPEN],
        [HANDED_OVER],
        [HANDED_OVER],
    ]


def test_answered_calls_do_not_pile_up_until_their_deadline() -> None:
    readers = Readers(limits(remembered=10))
    stream = attached(readers)
    waiting = hand(readers, 1, wait_s=1_000.0)
    for _ in range(1_000):
        round_ = Round(900.0)
        readers.hand(round_, command(2), device(), b"{}", 0.0)
        delivered(stream)
        readers.confirm(stream, device().id, command(2))
        readers._confirmed.clear()
    assert len(readers._deadlines) < 200
    assert readers.overdue(999.0) == []
    assert readers.overdue(1_000.0) == [waiting]


def test_streams_and_what_one_holds_are_bounded() -> None:
    readers = Readers(limits(streams=1, formals=1))
    stream = attached(readers, 1)
    readers.attach(stream, device(1).id)
    with pytest.raises(Overloaded, match="at most 1 CFs"):
        readers.attach(stream, device(2).id)
    with pytest.raises(Overloaded, match="at most 1 readers"):
        readers.open()
    readers.close(stream)
    readers.open()


def test_deliveries_are_counted_without_gaps() -> None:
    readers = Readers(limits(unconfirmed=2))
    stream = attached(readers)
    for number in range(4):
        hand(readers, number)
    taken = stream.outbox.take(0)
    assert isinstance(taken, list)
    assert [row.seq for row in taken] == [1, 2]


steps = st.one_of(
    st.tuples(st.just("hand"), st.integers(0, 3), st.integers(1, 2), st.integers(1, 5)),
    st.tuples(st.just("confirm"), st.integers(0, 3), st.integers(1, 2), st.integers(0, 1)),
    st.tuples(st.just("attach"), st.integers(1, 2), st.integers(0, 1)),
    st.tuples(st.just("reopen"), st.integers(0, 1)),
    st.tuples(st.just("pass"), st.integers(1, 4)),
)


class Scene:
    """Two streams, two devices, four commands; notes what was written where."""

    def __init__(self) -> None:
        self.readers = Readers(limits(unconfirmed=3))
        self.streams = [self.readers.open(), self.readers.open()]
        self.rounds: list[tuple[Round, bytes, bool]] = []
        self.written: set[tuple[bytes, int]] = set()
        self.confirmed: set[bytes] = set()
        self.now_s = 0.0

    def step(self, what: tuple[object, ...]) -> None:
        match what:
            case ("hand", int(number), int(to), int(wait_s)):
                round_ = hand(self.readers, number, device(to), now_s=self.now_s, wait_s=wait_s)
                pair = command(number) + device(to).id
                self.rounds.append((round_, pair, pair in self.confirmed))
            case ("confirm", int(number), int(of), int(by)):
                self.readers.confirm(self.streams[by], device(of).id, command(number))
                pair = command(number) + device(of).id
                if (pair, id(self.streams[by])) in self.written:
                    self.confirmed.add(pair)
            case ("attach", int(number), int(by)):
                self.readers.attach(self.streams[by], device(number).id)
            case ("reopen", int(which)):
                self.readers.close(self.streams[which])
                self.streams[which] = self.readers.open()
            case ("pass", int(some_s)):
                self.now_s += some_s
                self.readers.overdue(self.now_s)
        for stream in self.streams:
            while (taken := stream.outbox.take(self.now_s)) is not None:
                for row in taken if isinstance(taken, list) else ():
                    assert isinstance(row, Delivery)
                    pair = row.command + row.formal
                    assert not self.is_remembered(pair), "delivered after it was confirmed"
                    self.written.add((pair, id(stream)))

    def is_remembered(self, pair: bytes) -> bool:
        return pair in self.readers._confirmed


@given(st.lists(steps, max_size=40))
def test_handed_over_means_confirmed_by_who_got_it_and_no_call_waits_for_ever(
    script: list[tuple[object, ...]],
) -> None:
    scene = Scene()
    for what in script:
        scene.step(what)
        for round_, pair, was_confirmed in scene.rounds:
            if round_.handed == [HANDED_OVER]:
                assert was_confirmed or any(got == pair for got, _ in scene.written)
    scene.readers.overdue(scene.now_s + 5)
    assert all(round_.handed != [OPEN] for round_, _, _ in scene.rounds)
    assert scene.readers.unconfirmed == 0
    assert not any(stream.unconfirmed for stream in scene.streams)
