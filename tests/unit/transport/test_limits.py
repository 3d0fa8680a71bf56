"""What a stranger may not do: each limit by its name, met on a wire in memory, with time that moves by numbers."""

from __future__ import annotations

import asyncio
from dataclasses import fields, replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.transport.rfc9113 import GRPC, ONCE, POST, Talk, Wire
from utuple.transport.arrivals import Arrivals
from utuple.transport.http2 import frames
from utuple.transport.http2.frames import (
    CONTINUATION,
    DATA,
    HEADERS,
    PING,
    PRIORITY,
    SETTINGS,
    ErrorCode,
    frame,
    rst_stream,
    settings,
    window_update,
)
from utuple.transport.http2.limits import BROKEN, FAILED, SERVER, Budget, Limits, Rate
from utuple.transport.http2.turns import Turns
from utuple.transport.inbound import Entrance

CALM = ErrorCode.ENHANCE_YOUR_CALM


@given(
    st.integers(1, 50),
    st.floats(0.1, 100),
    st.lists(st.floats(0, 10), max_size=200),
)
def test_a_budget_gives_no_more_than_its_burst_and_its_rate(
    burst: int, per_s: float, gaps: list[float]
) -> None:
    budget, now_s, given_ = Budget(Rate(burst, per_s)), 0.0, 0
    for gap in gaps:
        now_s += gap
        given_ += budget.spend(now_s)
        assert given_ <= burst + per_s * now_s + 1e-6
    fresh = Budget(Rate(burst, per_s))
    assert sum(fresh.spend(0.0) for _ in range(2 * burst)) == burst


def test_every_limit_has_a_default_and_a_reason() -> None:
    source = (frames.__file__ or "").replace("frames.py", "limits.py")
    with open(source, encoding="utf-8") as file:
        lines = file.read().splitlines()
    for one in fields(Limits):
        at = next(n for n, line in enumerate(lines) if line.startswith(f"    {one.name}: "))
        assert lines[at + 1].startswith('    """') or one.name == "keepalive_timeout_s", one.name


async def flooded(piece: bytes, times: int, first: bytes = b"") -> Talk:
    talk = Talk()
    await talk.greet()
    await talk.say(first)
    for _ in range(times):
        await talk.say(piece)
        if talk.wire.is_closed:
            break
    return talk


FLOODS = {
    "pings": (frame(PING, 0, 0, bytes(8)), SERVER.pings),
    "settings": (settings({}), SERVER.settings),
    "answers to settings": (frame(SETTINGS, frames.ACK, 0), SERVER.settings),
    "PRIORITY": (frame(PRIORITY, 0, 1, bytes(5)), SERVER.empty_frames),
    "unknown frames": (frame(0x55, 0, 0, b""), SERVER.empty_frames),
    "window updates": (window_update(0, 1), SERVER.window_updates),
}


@pytest.mark.parametrize(("piece", "rate"), FLOODS.values(), ids=FLOODS.keys())
async def test_who_floods_is_told_to_be_calm_and_hung_up_on(piece: bytes, rate: Rate) -> None:
    talk = await flooded(piece, rate.burst - 10)
    assert not talk.wire.is_closed, "so many are nothing unusual"
    talk = await flooded(piece, 2 * rate.burst)
    assert talk.is_connection_error(CALM)


async def test_empty_data_and_empty_continuations_are_counted() -> None:
    talk = Talk()
    await talk.greet()
    await talk.say(talk.headers(1, GRPC, ends=False))
    for _ in range(SERVER.empty_frames.burst + 1):
        await talk.say(frame(DATA, 0, 1, b""))
    assert talk.is_connection_error(CALM)
    talk = await flooded(
        frame(CONTINUATION, 0, 1, b""), 2 * SERVER.empty_frames.burst, frame(HEADERS, 0, 1, b"")
    )
    assert talk.is_connection_error(CALM)


async def test_continuations_with_little_in_them_end_at_the_size_of_a_block() -> None:
    talk = await flooded(frame(CONTINUATION, 0, 1, b"x"), 20_000, frame(HEADERS, 0, 1, b""))
    assert talk.is_connection_error(CALM) and len(talk.wire.written) < 1000


async def test_calls_that_are_made_and_taken_back_are_counted() -> None:
    """CVE-2023-44487."""
    talk = Talk()
    await talk.greet()
    block = talk.headers(1, GRPC, ends=False)[9:]
    for number in range(1, 4 * SERVER.resets.burst, 2):
        begun = frame(HEADERS, frames.END_HEADERS, number, block)
        await talk.say(begun + rst_stream(number, ErrorCode.CANCEL))
    assert talk.is_connection_error(CALM)
    await asyncio.sleep(0)
    assert not talk.server._tasks, "no handler is left"


@pytest.mark.parametrize("wrong", ["window", "headers", "data"])
async def test_streams_that_a_peer_makes_us_reset_are_counted(wrong: str) -> None:
    """CVE-2025-8671."""
    talk = Talk()
    await talk.greet()
    for number in range(1, 4 * SERVER.resets.burst, 2):
        begun = talk.headers(number, GRPC if wrong == "window" else POST, ends=False)
        if wrong == "window":
            breaks = window_update(number, 0)
        elif wrong == "headers":
            breaks = talk.headers(number, (("x", "y"),), ends=False)
        else:
            breaks = frame(DATA, 0, number, b"x")
        await talk.say(begun + breaks)
    assert talk.is_connection_error(CALM)


async def test_who_does_not_read_the_answers_it_makes_us_write_is_not_read_from() -> None:
    talk = Talk(replace(SERVER, pings=Rate(1 << 20, 1.0)))
    await talk.greet()
    talk.connection.pause_writing()
    before = len(talk.wire.written)
    for _ in range(100_000):
        if not talk.wire.is_reading:
            break
        talk.connection.data_received(frame(PING, 0, 0, bytes(8)) * 20)
    assert not talk.wire.is_reading
    assert len(talk.wire.written) - before < SERVER.unsent_control_bytes + 10_000
    talk.connection.resume_writing()
    assert talk.wire.is_reading


async def test_many_frames_at_once_are_handled_in_turns() -> None:
    talk = Talk(replace(SERVER, pings=Rate(1 << 20, 1.0)))
    await talk.greet()
    talk.connection.data_received(frame(PING, 0, 0, bytes(8)) * 200)
    assert len(talk.heard(PING)) == SERVER.frames_per_turn and not talk.wire.is_reading
    await asyncio.sleep(0)
    assert len(talk.heard(PING)) == 2 * SERVER.frames_per_turn, "others had their turn between"
    await talk.say()
    assert len(talk.heard(PING)) == 200 and talk.wire.is_reading


async def test_of_all_connections_that_are_behind_one_goes_on_in_a_turn() -> None:
    """Else many strangers would make every turn of the loop as many times longer."""
    first = Talk(replace(SERVER, pings=Rate(1 << 20, 1.0)))
    talks = [first, *(Talk(first.limits, first) for _ in range(9))]
    for talk in talks:
        await talk.greet()
    for talk in talks:
        talk.connection.data_received(frame(PING, 0, 0, bytes(8)) * 200)
    answered = [len(talk.heard(PING)) for talk in talks]
    for _ in talks:
        await asyncio.sleep(0)
        before, answered = answered, [len(talk.heard(PING)) for talk in talks]
        assert sum(answered) - sum(before) <= SERVER.frames_per_turn
    for _ in range(3):
        await first.say()
    assert [len(talk.heard(PING)) for talk in talks] == [200] * 10


async def test_calls_count_as_several_frames_of_a_turn() -> None:
    """What they begin takes longer than the frame."""
    talk = Talk()
    await talk.greet()
    calls = b"".join(talk.headers(number, GRPC, ends=False) for number in range(1, 100, 2))
    talk.connection.data_received(calls)
    begun = SERVER.frames_per_turn // SERVER.frames_per_call
    assert len(talk.connection.streams) == begun < 10
    await talk.say()
    assert len(talk.connection.streams) == 50


async def test_a_turn_that_fails_does_not_hold_up_the_others() -> None:
    turns = Turns(asyncio.get_running_loop())
    done: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda *_: done.append("told"))

    def fails() -> bool:
        raise ValueError

    def works() -> bool:
        done.append("second")
        return False

    turns.later(fails)
    turns.later(works)
    for _ in range(4):
        await asyncio.sleep(0)
    assert done == ["told", "second"]


async def test_small_pieces_of_a_message_are_not_kept_one_by_one() -> None:
    import tracemalloc

    talk = Talk()
    await talk.greet()
    await talk.say(talk.headers(1, GRPC, ends=False), frame(DATA, 0, 1, b"\0\0\x0f\0\0"))
    tracemalloc.start()
    for _ in range(1000):
        talk.connection.data_received(frame(DATA, 0, 1, b"x") * 100)
        await talk.say()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 500_000, "100,000 bytes came"


async def test_more_than_a_connection_may_hold_ends_the_call_that_brought_it() -> None:
    limits = replace(SERVER, held_bytes_per_connection=100_000)
    talk = Talk(limits)
    await talk.greet()
    unfinished = b"\0\0\x0f\0\0" + bytes(40_000)
    for number in (1, 3, 5):
        begun = talk.headers(number, GRPC, ends=False)
        await talk.say(begun, frame(DATA, 0, number, unfinished))
    assert talk.server.held_bytes == 80_000
    assert talk.heard(HEADERS, 5) and not talk.heard(HEADERS, 3)
    await talk.say(rst_stream(1, ErrorCode.CANCEL), rst_stream(3, ErrorCode.CANCEL))
    assert talk.server.held_bytes == talk.connection.held_bytes == 0
    assert await talk.still_answers()


def passes(talk: Talk, seconds: float) -> None:
    """Time goes by, and the peer answers pings."""
    for _ in range(int(seconds)):
        if not talk.wire.is_closed:
            talk.connection.data_received(frame(0x55, 0, 0, b"")[:5])
            talk.connection.data_received(frame(0x55, 0, 0, b"")[5:])
            talk.clock.advance(1.0)


async def test_messages_and_headers_that_do_not_become_whole_are_given_up() -> None:
    talk = Talk()
    await talk.greet()
    await talk.say(talk.headers(1, GRPC, ends=False), frame(DATA, 0, 1, b"\0\0\0\0\x09part"))
    passes(talk, SERVER.unfinished_s)
    assert not talk.heard(HEADERS, 1)
    passes(talk, 2 * SERVER.keepalive_s)
    assert talk.heard(HEADERS, 1) and await talk.still_answers() and not talk.server._tasks
    await talk.say(frame(HEADERS, 0, 3, b"\x00"))
    talk.clock.advance(SERVER.keepalive_s)
    assert not talk.wire.is_closed, "not yet"
    talk.connection._keepalive.was_heard = True
    talk.connection._keepalive.headers_since_s = talk.clock.now_s - SERVER.unfinished_s
    talk.clock.advance(SERVER.keepalive_s)
    assert talk.is_connection_error(CALM)


async def test_a_peer_that_accepts_nothing_is_given_up() -> None:
    talk = Talk()
    await talk.greet()
    talk.connection.pause_writing()
    passes(talk, SERVER.stalled_s - 5)
    assert not talk.wire.is_closed
    passes(talk, 5 + 2 * SERVER.keepalive_s)
    assert talk.goaway is CALM and not talk.server.connections


async def test_a_connection_without_calls_is_said_goodbye_to() -> None:
    talk = Talk()
    await talk.greet()
    passes(talk, SERVER.idle_s)
    await talk.say(talk.headers(1, GRPC), b"")
    passes(talk, SERVER.idle_s - SERVER.keepalive_s)
    assert not talk.wire.is_closed, "there was a call"
    passes(talk, 5 * SERVER.keepalive_s)
    assert talk.is_connection_error(ErrorCode.NO_ERROR)
    assert len(talk.heard(frames.GOAWAY)) == 2, "first a warning, so that no call is lost"


async def test_who_says_nothing_is_given_up_and_blamed_a_little() -> None:
    talk = Talk()
    talk.clock.advance(SERVER.handshake_s)
    assert talk.wire.is_closed and not len(talk.server.arrivals)


def test_no_more_connections_come_in_than_there_may_be_of_all_and_of_one_address() -> None:
    arrivals: Arrivals[int] = Arrivals(replace(SERVER, connections=5, connections_per_address=3))
    for number in range(3):
        assert not arrivals.refusal("a", 0.0)
        arrivals.enter(number, "a")
    assert "3 connections from a" in arrivals.refusal("a", 0.0)
    arrivals.enter(3, "b")
    arrivals.enter(4, "c")
    assert "5 connections" in arrivals.refusal("d", 0.0)
    arrivals.leave(1)
    assert not arrivals.refusal("a", 0.0) and len(arrivals) == 4


def test_that_some_were_not_let_in_is_said_now_and_then_with_how_many() -> None:
    arrivals: Arrivals[int] = Arrivals(SERVER)
    said = [arrivals.turned_away(now_s) for now_s in (0.0, 1.0, 2.0, 9.9, 10.0, 10.1, 20.0)]
    assert said == [1, 0, 0, 0, 4, 0, 2]


async def test_who_is_not_let_in_is_said_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    talk = Talk(replace(SERVER, connections=1))
    wire = Wire()
    Entrance(talk.server, None).connection_made(cast(Any, wire))
    assert wire.is_closed
    (said,) = caplog.messages
    assert said.startswith("connections not let in count=1") and "1 connections already" in said


def test_of_those_that_say_nothing_the_oldest_gives_way() -> None:
    arrivals: Arrivals[int] = Arrivals(replace(SERVER, pending=2))
    assert arrivals.enter(1, "a") is None
    arrivals.greeted(1)
    assert arrivals.enter(2, "a") is None and arrivals.enter(3, "a") is None
    assert arrivals.enter(4, "a") == 2, "1 has spoken"


def test_who_breaks_the_protocol_often_is_not_let_in_for_a_while() -> None:
    arrivals: Arrivals[int] = Arrivals(SERVER)
    for now_s in range(SERVER.blame.burst // BROKEN):
        assert not arrivals.refusal("a", float(now_s))
        arrivals.blame("a", BROKEN, float(now_s))
    assert "too often" in arrivals.refusal("a", 3.0) and not arrivals.refusal("b", 3.0)
    assert not arrivals.refusal("a", 3.0 + SERVER.blame.burst / SERVER.blame.per_s)
    for _ in range(100_000):
        arrivals.blame("b", FAILED, 3.0)
    assert arrivals.refusal("b", 3.0)


async def test_a_socket_that_is_not_let_in_is_closed_and_forgotten() -> None:
    talk = Talk(replace(SERVER, connections=1))
    await talk.greet()
    wire = Wire()
    Entrance(talk.server, None).connection_made(cast(Any, wire))
    assert wire.is_closed and len(talk.server.arrivals) == 1 and not wire.written
    talk.connection.connection_lost(None)
    assert len(talk.server.arrivals) == 0 and not talk.server.connections


async def test_a_call_with_one_request_takes_no_second_one() -> None:
    """So whoever lets a call lie open cannot fill its window."""
    talk = Talk()
    await talk.greet()
    await talk.say(settings({frames.INITIAL_WINDOW_SIZE: 0}))
    await talk.say(talk.headers(1, ONCE, ends=False), frame(DATA, 0, 1, b"\0\0\0\0\x02hi"))
    assert not talk.heard(HEADERS, 1) or not talk.heard(HEADERS, 1)[-1].flags & frames.END_STREAM
    await talk.say(frame(DATA, 0, 1, b"\0\0\0\x10"))
    assert talk.heard(HEADERS, 1)[-1].flags & frames.END_STREAM
    assert talk.server.held_bytes == 0 and not talk.server._tasks
    assert await talk.still_answers()


async def test_a_connection_with_many_calls_is_lost_in_turns() -> None:
    talk = Talk()
    await talk.greet()
    for number in range(1, 200, 2):
        await talk.say(talk.headers(number, GRPC, ends=False))
    talk.connection.connection_lost(None)
    assert len(talk.connection.streams) == 100 - SERVER.frames_per_turn // SERVER.frames_per_call
    await talk.say()
    assert not talk.connection.streams and not talk.server._tasks


@pytest.mark.parametrize("size", [1, 16_000])
async def test_who_goes_on_sending_on_a_stream_that_was_reset_is_hung_up_on(size: int) -> None:
    """What was on its way is passed over, and that is at most a window."""
    talk = Talk()
    await talk.greet()
    await talk.say(talk.headers(1, POST, ends=False), frame(DATA, 0, 1, b"x"))
    assert talk.resets() == [ErrorCode.NO_ERROR]
    sent = 0
    while not talk.wire.is_closed:
        talk.connection.data_received(frame(DATA, 0, 1, bytes(size)))
        sent += size
        assert sent <= SERVER.stream_window_bytes + size
    assert talk.goaway is ErrorCode.FLOW_CONTROL_ERROR and sent > 1000 * size // 16


async def test_who_sends_more_than_the_connection_was_granted_is_hung_up_on() -> None:
    talk = Talk(replace(SERVER, connection_window_bytes=70_000))
    await talk.greet()
    await talk.say(talk.headers(1, GRPC, ends=False), frame(DATA, 0, 1, bytes(70_001)))
    assert talk.is_connection_error(ErrorCode.FLOW_CONTROL_ERROR)
