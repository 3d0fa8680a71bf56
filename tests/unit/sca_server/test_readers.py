"""Hand-overs and their confirmations, with time as a number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sca_server.outbox import OutboxLimits, Parcel
from sca_server.readers import ReaderLimits, Readers, Round, Stream
from utuple.delivery.handed import Handed
from utuple.delivery.notice import News, Notice
from utuple.errors import Overloaded
from utuple.wire import utuple_pb2 as pb

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


def device(number: int = 1) -> bytes:
    return bytes([number]) * 16


def command(number: int) -> bytes:
    return bytes([0xC0 + number]) * 16


def hand(
    readers: Readers,
    number: int,
    to: bytes | None = None,
    *,
    now_s: float = 0,
    wait_s: float = 10,
) -> Round:
    round_ = Round(now_s + wait_s)
    readers.hand(round_, [command(number)], [to or device()], [b"{}"], now_s)
    return round_


def confirm(readers: Readers, stream: Stream, number: int, of: int = 1) -> list[Round]:
    return readers.confirm(stream, [device(of)], [command(number)])


def said(round_: Round) -> list[int]:
    return list(round_.handed)


def attached(readers: Readers, *numbers: int) -> Stream:
    stream = readers.open()
    for number in numbers or (1,):
        readers.attach(stream, device(number))
        stream.outbox.pop(0)
    return stream


def delivered(stream: Stream, now_s: float = 0) -> list[bytes]:
    """The commands written to it now; notes in between are passed over."""
    found: list[bytes] = []
    while (taken := stream.outbox.pop(now_s)) is not None:
        if isinstance(taken, Parcel):
            found += taken.commands
    return found


def test_the_numbers_are_the_protocols() -> None:
    """All but ACKNOWLEDGED, which is said of stored commands alone."""
    assert {one.name: one.value for one in Handed if one} == {
        name: number for name, number in pb.Handed.items() if number not in (0, pb.ACKNOWLEDGED)
    }


def test_a_device_nobody_is_attached_for_is_not_connected() -> None:
    readers = Readers(limits())
    round_ = hand(readers, 1)
    assert (said(round_), round_.open) == ([NOT_CONNECTED], 0)


def test_a_confirmed_command_is_handed_over_and_completes_its_call() -> None:
    readers = Readers(limits())
    stream = attached(readers)
    round_ = hand(readers, 1)
    assert said(round_) == [OPEN]
    assert delivered(stream) == [command(1)]
    assert confirm(readers, stream, 1) == [round_]
    assert (said(round_), readers.handed_over, readers.unconfirmed) == ([HANDED_OVER], 1, 0)


def test_a_call_is_complete_when_its_last_device_has_confirmed() -> None:
    readers = Readers(limits())
    stream = attached(readers, 1, 2)
    round_ = Round(10.0)
    readers.hand(round_, [command(1)] * 3, [device(n) for n in (1, 2, 3)], [b"{}"] * 3, 0.0)
    assert confirm(readers, stream, 1, 2) == []
    assert confirm(readers, stream, 1, 1) == [round_]
    assert said(round_) == [HANDED_OVER, HANDED_OVER, NOT_CONNECTED]


def test_without_a_word_by_the_deadline_it_is_not_confirmed() -> None:
    readers = Readers(limits())
    attached(readers)
    late, early = hand(readers, 1, wait_s=10.0), hand(readers, 2, wait_s=5.0)
    assert readers.overdue(4.999) == []
    assert readers.overdue(5.0) == [early]
    assert readers.overdue(9.999) == []
    assert readers.overdue(10.0) == [late]
    assert (said(late), said(early)) == ([NOT_CONFIRMED], [NOT_CONFIRMED])
    assert readers.unconfirmed == 0


def test_a_confirmed_command_is_not_delivered_again_to_that_device_but_is_to_others() -> None:
    readers = Readers(limits())
    stream = attached(readers, 1, 2)
    hand(readers, 1)
    delivered(stream)
    confirm(readers, stream, 1)
    assert said(hand(readers, 1)) == [HANDED_OVER]
    assert delivered(stream) == []
    assert said(hand(readers, 1, device(2))) == [OPEN]
    assert delivered(stream) == [command(1)]


def test_a_retry_while_the_first_waits_is_sent_once_and_answered_with_it() -> None:
    readers = Readers(limits())
    stream = attached(readers)
    first, retry = hand(readers, 1, wait_s=5.0), hand(readers, 1, wait_s=10.0)
    assert delivered(stream) == [command(1)]
    assert readers.overdue(5.0) == [first]
    assert confirm(readers, stream, 1) == [retry]
    assert (said(first), said(retry)) == ([NOT_CONFIRMED], [HANDED_OVER])


def test_a_late_confirmation_spares_the_retry() -> None:
    readers = Readers(limits())
    stream = attached(readers)
    hand(readers, 1)
    delivered(stream)
    readers.overdue(10.0)
    assert confirm(readers, stream, 1) == []
    assert said(hand(readers, 1, now_s=11.0)) == [HANDED_OVER]
    assert delivered(stream) == []


def test_an_unconfirmed_command_that_comes_again_is_delivered_again() -> None:
    readers = Readers(limits())
    stream = attached(readers)
    hand(readers, 1)
    delivered(stream)
    readers.overdue(10.0)
    assert said(hand(readers, 1, now_s=11.0)) == [OPEN]
    assert delivered(stream, 11.0) == [command(1)]


def test_only_what_was_sent_to_a_stream_can_be_confirmed_by_it() -> None:
    readers = Readers(limits())
    attached(readers, 1)
    stranger = attached(readers, 2)
    round_ = hand(readers, 1)
    assert confirm(readers, stranger, 1, 1) == []
    assert confirm(readers, stranger, 2, 2) == [], "never sent"
    assert said(round_) == [OPEN]
    assert said(hand(readers, 2, device(2))) == [OPEN], "so it is sent now"


def test_a_second_attach_replaces_the_first_which_is_told() -> None:
    readers = Readers(limits())
    first, second = attached(readers), readers.open()
    assert readers.attach(second, device()) is first
    assert first.outbox.pop(0) == Notice(News.REPLACED, device())
    assert second.outbox.pop(0) == Notice(News.ATTACHED, device())
    hand(readers, 1)
    assert (delivered(first), delivered(second)) == ([], [command(1)])


def test_an_attach_by_the_same_stream_again_replaces_nobody() -> None:
    readers = Readers(limits())
    stream = attached(readers)
    assert readers.attach(stream, device()) is None
    assert stream.outbox.pop(0) == Notice(News.ATTACHED, device())
    assert stream.outbox.pop(0) is None


def test_a_retry_after_a_replacement_goes_to_the_new_holder_and_both_calls_wait_for_it() -> None:
    readers = Readers(limits())
    first = attached(readers)
    before = hand(readers, 1)
    second = attached(readers)
    after = hand(readers, 1)
    assert delivered(second) == [command(1)]
    assert confirm(readers, first, 1) == []
    assert set(confirm(readers, second, 1)) == {before, after}
    assert not first.unconfirmed and not second.unconfirmed


def test_what_was_sent_before_a_replacement_may_still_be_confirmed_by_who_has_it() -> None:
    readers = Readers(limits())
    first = attached(readers)
    round_ = hand(readers, 1)
    attached(readers)
    assert confirm(readers, first, 1) == [round_]


def test_a_detached_device_is_not_connected_and_its_stream_is_told() -> None:
    readers = Readers(limits())
    stream = attached(readers)
    assert readers.detach(device()) is stream
    assert stream.outbox.pop(0) == Notice(News.DETACHED, device())
    assert readers.detach(device()) is None
    assert said(hand(readers, 1)) == [NOT_CONNECTED]


def test_the_end_of_a_stream_ends_every_wait_for_it_at_once() -> None:
    readers = Readers(limits())
    stream, other = attached(readers, 1), attached(readers, 2)
    round_, others = hand(readers, 1), hand(readers, 1, device(2))
    assert readers.close(stream) == ([device(1)], [round_])
    assert (said(round_), said(others)) == ([NOT_CONFIRMED], [OPEN])
    assert said(hand(readers, 2)) == [NOT_CONNECTED]
    assert confirm(readers, other, 1, 2) == [others]


def test_a_program_that_comes_back_may_confirm_what_its_last_stream_had() -> None:
    readers = Readers(limits())
    stream = attached(readers)
    hand(readers, 1)
    readers.close(stream)
    back = attached(readers)
    confirm(readers, back, 1)
    assert said(hand(readers, 1)) == [HANDED_OVER]


@pytest.mark.parametrize("bound", [limits(unconfirmed=2), limits(rows=2)])
def test_a_reader_that_stopped_costs_a_bounded_number_and_slows_nobody(bound: ReaderLimits) -> None:
    readers = Readers(bound)
    attached(readers, 1)
    reading = attached(readers, 2)
    stopped = [said(hand(readers, number)) for number in range(4)]
    assert stopped == [[OPEN], [OPEN], [NOT_CONFIRMED], [NOT_CONFIRMED]]
    for number in range(4):
        round_ = hand(readers, number, device(2))
        assert delivered(reading) == [command(number)]
        assert confirm(readers, reading, number, 2) == [round_]


def test_the_same_command_twice_in_one_call_is_sent_once_and_answered_twice() -> None:
    readers = Readers(limits())
    stream = attached(readers)
    twice, overdue = Round(10.0), Round(10.0)
    for round_, number in ((twice, 1), (overdue, 2)):
        readers.hand(round_, [command(number)] * 2, [device()] * 2, [b"{}"] * 2, 0.0)
    assert delivered(stream) == [command(1), command(2)]
    assert confirm(readers, stream, 1) == [twice]
    assert readers.overdue(10.0) == [overdue]
    assert (said(twice), said(overdue)) == ([HANDED_OVER] * 2, [NOT_CONFIRMED] * 2)


def test_only_the_latest_confirmed_pairs_are_remembered() -> None:
    readers = Readers(limits(remembered=2))
    stream = attached(readers)
    for number in range(1, 6):
        hand(readers, number)
        confirm(readers, stream, number)
    answers = [said(hand(readers, number)) for number in range(1, 6)]
    assert answers == [[OPEN]] * 2 + [[HANDED_OVER]] * 3


def test_answered_calls_do_not_pile_up_until_their_deadline() -> None:
    readers = Readers(limits(remembered=10))
    stream = attached(readers)
    waiting = hand(readers, 1, wait_s=1_000.0)
    for _ in range(1_000):
        round_ = Round(900.0)
        readers.hand(round_, [command(2)], [device()], [b"{}"], 0.0)
        delivered(stream)
        confirm(readers, stream, 2)
        readers._confirmed.discard(command(2) + device())
    assert len(readers._deadlines) < 200
    assert readers.overdue(999.0) == []
    assert readers.overdue(1_000.0) == [waiting]


def test_streams_and_what_one_holds_are_bounded() -> None:
    readers = Readers(limits(streams=1, formals=1))
    stream = attached(readers, 1)
    readers.attach(stream, device(1))
    with pytest.raises(Overloaded, match="at most 1 CFs"):
        readers.attach(stream, device(2))
    with pytest.raises(Overloaded, match="at most 1 readers"):
        readers.open()
    readers.close(stream)
    readers.open()


def test_many_confirmations_at_once_complete_the_calls_they_complete_and_no_others() -> None:
    readers = Readers(limits())
    stream, stranger = attached(readers, 1, 2), attached(readers, 3)
    one, other, third = hand(readers, 1), hand(readers, 2, device(2)), hand(readers, 3, device(3))
    numbers = ((1, 1), (3, 3), (9, 1), (2, 2))
    formals, commands = [device(of) for _, of in numbers], [command(n) for n, _ in numbers]
    assert readers.confirm(stream, formals, commands) == [one, other]
    assert (said(third), readers.handed_over) == ([OPEN], 2)
    assert confirm(readers, stranger, 3, 3) == [third]


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
                pair = command(number) + device(to)
                self.rounds.append((round_, pair, pair in self.confirmed))
            case ("confirm", int(number), int(of), int(by)):
                confirm(self.readers, self.streams[by], number, of)
                pair = command(number) + device(of)
                if (pair, id(self.streams[by])) in self.written:
                    self.confirmed.add(pair)
            case ("attach", int(number), int(by)):
                self.readers.attach(self.streams[by], device(number))
            case ("reopen", int(which)):
                self.readers.close(self.streams[which])
                self.streams[which] = self.readers.open()
            case ("pass", int(some_s)):
                self.now_s += some_s
                self.readers.overdue(self.now_s)
        for stream in self.streams:
            while (taken := stream.outbox.pop(self.now_s)) is not None:
                if not isinstance(taken, Parcel):
                    continue
                for told, to_whom in zip(taken.commands, taken.formals, strict=True):
                    pair = told + to_whom
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
            if said(round_) == [HANDED_OVER]:
                assert was_confirmed or any(got == pair for got, _ in scene.written)
    scene.readers.overdue(scene.now_s + 5)
    assert all(said(round_) != [OPEN] for round_, _, _ in scene.rounds)
    assert scene.readers.unconfirmed == 0
    assert not any(stream.unconfirmed for stream in scene.streams)
