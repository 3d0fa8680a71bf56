"""Readers opened twice, and openings that are cancelled: one name has one reader, and nobody is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.twins.cluster import TwinCluster, one_line
from tests.twins.server import TwinServer, TwinStream
from tests.twins.virtual_time import in_virtual_time
from tests.unit.client.trucks import TRUCKS, emit, nothing_comes, put, rest, space_of, take
from utuple.client.receiving.deliveries import Deliveries
from utuple.client.receiving.progress import Unflushed
from utuple.client.space import Space
from utuple.cluster.line import Member
from utuple.errors import Closed, InvalidInput, ReaderReplaced
from utuple.wire import utuple_pb2 as pb

ROOM: dict[str, Any] = {"subject": "aircon", "type": "power", "address": "room-101"}


def watch(space: Space) -> Deliveries:
    return space.watch(**TRUCKS, reader="dispatch")


def serve(space: Space) -> Deliveries:
    return space.serve(**ROOM, reader="janitor")


async def switch(space: Space, number: int) -> None:
    await space.command(**ROOM, data={"kg": number})


OPENINGS: dict[str, tuple[Callable[[Space], Deliveries], Callable[[Space, int], Awaitable[None]]]]
OPENINGS = {"watch": (watch, emit), "serve": (serve, switch)}


# --- law 2: the same reader opened twice -----------------------------------------------------------------


@pytest.mark.parametrize("verb", OPENINGS)
@in_virtual_time
async def test_the_second_of_a_reader_goes_on_after_the_first_was_closed(verb: str) -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await space_of(cluster).open()
    new_one, send = OPENINGS[verb]
    old = await new_one(space).open()
    new = await new_one(space).open()
    await old.close()
    await send(space, 1)
    assert await take(new, 1) == [1]
    await new.close()
    await space.close()


@pytest.mark.parametrize("verb", OPENINGS)
@in_virtual_time
async def test_the_first_of_a_reader_is_told_at_once_that_it_was_replaced(verb: str) -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await space_of(cluster).open()
    new_one, send = OPENINGS[verb]
    old = await new_one(space).open()
    await send(space, 1)
    waiting = asyncio.create_task(anext(old))
    assert (await waiting).data == {"kg": 1}
    waiting = asyncio.create_task(anext(old))
    await asyncio.sleep(0)
    new = await new_one(space).open()
    with pytest.raises(ReaderReplaced):
        await asyncio.wait_for(waiting, 1)
    await old.cancel()  # has no say any more
    await send(space, 2)
    assert 2 in await take(new, 2 if verb == "watch" else 1)
    await space.close()


@in_virtual_time
async def test_what_the_first_has_acknowledged_does_not_come_to_the_second() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    old = await watch(space).open()
    await emit(space, 1, 2, 3)
    for _ in range(2):
        await (await anext(old)).ack()
    new = await watch(space).open()
    assert await take(new, 1) == [3]
    assert await nothing_comes(new)
    await space.close()


@pytest.mark.parametrize("by", ["close", "another"])
@in_virtual_time
async def test_acknowledging_after_the_end_of_its_watch_is_refused_and_it_comes_again(
    by: str,
) -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    old = await watch(space).open()
    await emit(space, 1, 2, 3)
    first, second, _ = [await anext(old) for _ in range(3)]
    await first.ack()
    if by == "close":
        await old.close()
    new = await watch(space).open()
    for word in (second.ack, second.ack):
        with pytest.raises(Closed if by == "close" else ReaderReplaced, match=str(second.id)):
            await word()
    assert await rest(new) == [2, 3]
    await space.close()


@in_virtual_time
async def test_of_many_that_open_one_reader_at_once_one_has_it() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await space_of(cluster).open()
    many = [watch(space) for _ in range(5)]
    found = await asyncio.gather(*(one.open() for one in many), return_exceptions=True)
    living = [one for one in many if one._opened and not one._formal.is_over]
    assert len(living) == 1, found
    await emit(space, 1)
    assert await take(living[0], 1) == [1]
    await space.close()


@in_virtual_time
async def test_of_two_programs_under_one_name_the_later_has_every_server_whatever_its_clock() -> (
    None
):
    cluster = TwinCluster(one_line(1, "a", "b"))
    first, second = await space_of(cluster).open(), await space_of(cluster, seed=8).open()
    second._parts.sessions._now_us = lambda: 0  # its clock is years behind
    old = await watch(first).open()
    for stream in list(cluster.servers["a"].streams):
        stream.break_off()  # the first comes back there after the second
    new = await watch(second).open()
    with pytest.raises(ReaderReplaced):
        await asyncio.wait_for(anext(old), 10)
    await emit(first, *range(10))
    assert sorted(await take(new, 10)) == list(range(10))
    await first.close()
    await emit(second, 10)
    assert await take(new, 1) == [10]
    await second.close()


@in_virtual_time
async def test_two_programs_that_outbid_the_same_generation_do_not_bid_the_same() -> None:
    """Seed 1200017: with equal generations neither is told that it was replaced."""
    cluster = TwinCluster(one_line(1, "a"))
    first, second = space_of(cluster, seed=7), space_of(cluster, seed=8)
    heard = first._parts.sessions.new_generation() << 1
    bids = [space._parts.sessions.new_generation(heard) for space in (first, second)]
    assert min(bids) > heard and bids[0] != bids[1]


# --- law 3: what was acknowledged in a space does not come again in it ------------------------------------


@in_virtual_time
async def test_what_was_acknowledged_before_a_close_that_its_server_did_not_hear_does_not_come_again() -> (
    None
):
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await space_of(cluster).open()
    put(cluster.servers["a"], 1, 2, 3)
    put(cluster.servers["b"], 4, 5)
    old = await watch(space).open()
    for event in [await anext(old) for _ in range(5)]:
        if event.data["kg"] != 3:
            await event.ack()
    cluster.cut("a")
    await old.close()
    cluster.mend("a")
    new = await watch(space).open()
    put(cluster.servers["a"], 6)
    assert sorted(await rest(new)) == [3, 6]
    await new.close()  # the server has heard of it by now: another program need not know
    other = await space_of(cluster, seed=8).open()
    assert sorted(await rest(await watch(other).open())) == [3, 6]
    await other.close()
    await space.close()


@in_virtual_time
async def test_what_was_acknowledged_is_remembered_through_openings_that_are_cancelled() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    put(cluster.servers["a"], 1, 2)
    old = await watch(space).open()
    await take(old, 1, ack=True)
    cluster.cut("a")
    await old.close()
    for steps in range(10):
        opening = asyncio.create_task(watch(space).open())
        for _ in range(steps):
            await asyncio.sleep(0)
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
    cluster.mend("a")
    assert await rest(await watch(space).open()) == [2]
    await space.close()


@in_virtual_time
async def test_a_reader_that_was_cancelled_begins_anew_whatever_it_had_acknowledged() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    put(cluster.servers["a"], 1, 2)
    old = await watch(space).open()
    await take(old, 1, ack=True)
    cluster.cut("a")
    await old.cancel()
    cluster.mend("a")
    assert await rest(await watch(space).open()) == [1, 2]
    await space.close()


@in_virtual_time
async def test_a_device_too_is_not_given_again_what_it_acknowledged() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    old = await serve(space).open()
    await space.command(**ROOM, data={"kg": 1}, lifetime_s=60)
    await take(old, 1, ack=True)
    cluster.cut("a")
    await old.close()
    cluster.mend("a")
    assert await nothing_comes(await serve(space).open())
    await space.close()


def test_of_what_could_not_be_flushed_the_oldest_is_forgotten() -> None:
    unflushed = Unflushed(limit=2)
    for reader in (b"x", b"y", b"x", b"z"):
        unflushed.keep(reader, {"a": 1})
    unflushed.keep(b"nothing to remember", {})
    assert unflushed.pop(b"y") == {}
    assert unflushed.pop(b"x") == unflushed.pop(b"z") == {"a": 1}
    assert unflushed.pop(b"x") == {}


# --- an opening that is cancelled undoes itself ----------------------------------------------------------


def left_behind(cluster: TwinCluster, space: Space) -> list[Any]:
    """What is attached at the servers, and what the client still holds."""
    servers = (*cluster.servers.values(), *cluster.sca.values())
    attached = [server.device_streams for server in servers if server.device_streams]
    cursors = [server.cursors for server in cluster.servers.values() if server.cursors]
    sessions = space._parts.sessions
    held = [held for held in (space._open, sessions.open, sessions._sessions) if held]
    return [*attached, *cursors, *held]


@pytest.mark.parametrize("verb", ["watch", "serve", "unnamed watch", "unnamed serve"])
@in_virtual_time
async def test_an_opening_that_is_cancelled_anywhere_undoes_itself(verb: str) -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await space_of(cluster).open()
    asked = {**TRUCKS} if "watch" in verb else {**ROOM}
    reader = None if "unnamed" in verb else "someone"
    was_opened = False
    steps = 0
    while not was_opened:
        steps += 1
        deliveries = getattr(space, verb.rpartition(" ")[2])(**asked, reader=reader)
        opening = asyncio.create_task(deliveries.open())
        for _ in range(steps):
            await asyncio.sleep(0)
        was_opened = not opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        if was_opened:
            await deliveries.close()
        await asyncio.sleep(3)
        assert left_behind(cluster, space) == [], f"cancelled after {steps} steps"
        if reader is None:
            assert kept(cluster) == [], f"cancelled after {steps} steps"
    assert steps > 5
    await space.close()


def kept(cluster: TwinCluster) -> list[bytes]:
    """At the uTupleServers and at the sCA servers."""
    at_servers = [id_ for one in cluster.servers.values() for id_ in (*one.templates, *one.devices)]
    return at_servers + [id_ for one in cluster.sca.values() for id_ in one.devices]


@pytest.mark.parametrize(
    ("verb", "slow"), [("watch", ("a", "b")), ("serve", ("a", "b")), ("serve", ("sca-1",))]
)
@in_virtual_time
async def test_a_registration_that_arrives_after_its_opening_was_cancelled_is_undone(
    verb: str, slow: tuple[str, ...]
) -> None:
    """Registrations and goodbyes travel by streams of their own: a goodbye that overtakes says nothing."""
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await space_of(cluster).open()
    await emit(space, *range(8))  # lines are known
    cluster.slow_calls |= dict.fromkeys(slow, 1.0)
    asked = TRUCKS if verb == "watch" else ROOM
    opening = asyncio.create_task(getattr(space, verb)(**asked).open())
    await asyncio.sleep(0.5)
    assert len(kept(cluster)) == (0 if "a" in slow else 1)
    opening.cancel()
    await asyncio.gather(opening, return_exceptions=True)
    await asyncio.sleep(5)
    assert kept(cluster) == [] and left_behind(cluster, space) == []
    await space.close()


@pytest.mark.parametrize("closes", ["space", "deliveries"])
@pytest.mark.parametrize("verb", ["watch", "serve"])
@in_virtual_time
async def test_what_is_closed_anywhere_in_its_opening_is_registered_nowhere(
    verb: str, closes: str
) -> None:
    """By another task than the one that opens it, which is told."""
    was_opened, steps = False, 0
    while not was_opened:
        steps += 1
        cluster = TwinCluster(one_line(1, "a", "b"))
        space = await space_of(cluster).open()
        deliveries = getattr(space, verb)(**(TRUCKS if verb == "watch" else ROOM))
        opening = asyncio.create_task(deliveries.open())
        for _ in range(steps):
            await asyncio.sleep(0)
        was_opened = opening.done()
        await (space if closes == "space" else deliveries).close()
        assert kept(cluster) == [], f"closed after {steps} steps"
        said = (await asyncio.gather(opening, return_exceptions=True))[0]
        assert said is deliveries or isinstance(said, Closed), f"closed after {steps} steps"
        assert left_behind(cluster, space) == [], f"closed after {steps} steps"
        await space.close()
    assert steps > 5


@pytest.mark.parametrize("verb", OPENINGS)
@in_virtual_time
async def test_openings_of_one_reader_that_left_in_one_call_may_all_be_cancelled(verb: str) -> None:
    """Each of them waits for the call's end before it says goodbye, and is told of it (seed 2000892)."""
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster, few_calls_in_flight=1, calls_in_flight=1).open()
    await emit(space, 1)  # lines are known
    cluster.slow_calls["a"] = 1.0
    before = asyncio.create_task(emit(space, 2))  # what comes meanwhile leaves together
    new_one, _ = OPENINGS[verb]
    openings = [asyncio.create_task(new_one(space).open()) for _ in range(3)]
    await asyncio.sleep(1.5)
    assert len(cluster.calls_to("a")) == 3
    for opening in openings:
        opening.cancel()
    await asyncio.gather(before, *openings, return_exceptions=True)
    await asyncio.sleep(5)
    assert left_behind(cluster, space) == []
    await space.close()


@in_virtual_time
async def test_a_watch_that_is_closed_while_it_follows_its_line_is_not_registered_afterwards() -> (
    None
):
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    events = await space.watch(**TRUCKS).open()
    cluster.slow_calls |= {"a": 1.0, "b": 1.0}
    cluster.move(one_line(2, "a", "b"))
    await asyncio.sleep(0.5)
    await events.close()
    await asyncio.sleep(5)
    assert kept(cluster) == [] and left_behind(cluster, space) == []
    await space.close()


class Tardy(TwinServer):
    """The first goodbye is answered when something else is asked, in one breath with that."""

    owed: pb.Detach | None = None
    has_owed = False

    def hear(self, stream: TwinStream, message: pb.FromReader) -> None:
        if message.HasField("detach") and not self.has_owed:
            self.detach_device(stream, message.detach)
            self.owed, self.has_owed = message.detach, True
            return
        if self.owed is not None:
            said = pb.Detached(id=self.owed.id, generation=self.owed.generation)
            stream.put(pb.ToReader(detached=said))
            self.owed = None
        super().hear(stream, message)


@in_virtual_time
async def test_the_answer_to_an_earlier_goodbye_is_not_taken_for_the_last_one_s() -> None:
    """A device left a server that was suspended, and knocks there once more to be forgotten (seed 3104377): it stayed
    attached there, and nobody served it."""
    cluster = TwinCluster(one_line(1, "a", "b"))
    for name in ("a", "b"):
        cluster.servers[name] = Tardy(name, cluster.line)
    space = await space_of(cluster).open()
    room = await space.serve(**ROOM).open()
    (left,) = [name for name, one in cluster.servers.items() if one.device_streams]
    members = [Member(name, name != left, suspended=name == left) for name in ("a", "b")]
    cluster.move(one_line(2, *members))
    await asyncio.sleep(0.5)
    assert not cluster.servers[left].device_streams
    await room.close()
    await asyncio.sleep(5)
    assert left_behind(cluster, space) == [] and kept(cluster) == []
    await space.close()


@in_virtual_time
async def test_one_whose_opening_was_cancelled_may_be_opened_again() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    events = space.watch(**TRUCKS)
    for steps in range(1, 40):
        opening = asyncio.create_task(events.open())
        for _ in range(steps):
            await asyncio.sleep(0)
        if not opening.cancel():
            break
        await asyncio.gather(opening, return_exceptions=True)
    await events.open()
    await emit(space, 1)
    assert await take(events, 1) == [1]
    await space.close()
    with pytest.raises(Closed):
        await anext(events)


@in_virtual_time
async def test_a_watch_that_was_never_opened_is_not_held() -> None:
    space = await space_of(TwinCluster(one_line(1, "a"))).open()
    for _ in range(100):
        space.watch(**TRUCKS)
    assert not space._open
    await space.close()


# --- lifetimes of readers --------------------------------------------------------------------------------


@pytest.mark.parametrize("lifetime_s", [0, -1, float("nan"), 0.01, "a day", True])
@in_virtual_time
async def test_a_reader_s_lifetime_that_cannot_work_is_refused(lifetime_s: Any) -> None:
    """With 0 a watch registered itself for ever, and was given nothing."""
    space = await space_of(TwinCluster(one_line(1, "a"))).open()
    with pytest.raises(InvalidInput, match="lifetime_s"):
        space.watch(**TRUCKS, reader="dispatch", lifetime_s=lifetime_s)
    with pytest.raises(InvalidInput, match="lifetime_s"):
        space.serve(**ROOM, reader="janitor", lifetime_s=lifetime_s)
    space.watch(**TRUCKS, reader="dispatch", lifetime_s=0.1)
    await space.close()
