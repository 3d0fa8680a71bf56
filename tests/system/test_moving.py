"""Load moves in a real cluster: by the operator's commands, and by the load monitor alone. No program
notices: what is watched all the while comes once, and what was stored is found wherever it lies."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any
from uuid import uuid4

import pytest

import utuple
from tests.system.cluster import Cluster, free_port, running_cluster
from tests.waiting import until
from utuple.admin.moves import ShownMove
from utuple.admin.snapshot import snapshot_of
from utuple.local.processes import start_of
from utuple.model.key import key_of

pytestmark = pytest.mark.slow
LIMIT_S = 90.0
FAMILIES, EVENTS = 40, 10
"""Stored before anything moves: enough keys in every section to split it."""
SILENT_S = 3.0
"""After so long nothing more is expected."""
DEVICES = [f"room-{number}" for number in range(8)]
BOLD = {
    # Two busy cores stand for a large cluster: little load is much.
    "processing_start": 0.25,
    "stay_on_s": 10,
    "stay_off_s": 5,
    "settle_s": 5,
    "calm_s": 3,
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster("--servers", "2", "--managers", "1") as running:
        asyncio.run(store_some(running))
        yield running


@pytest.fixture(scope="module")
def pair() -> Iterator[Cluster]:
    """Another, for what helps lines that the dice choose, and drains."""
    with running_cluster("--servers", "2", "--managers", "1") as running:
        yield running


async def store_some(cluster: Cluster, subject: str = "family") -> None:
    async with utuple.connect(cluster.at, timeout_s=LIMIT_S) as space:
        await space.emit_many(
            {"subject": f"{subject}-{f}", "type": "t", "address": "a", "data": {"n": n}}
            for f in range(FAMILIES)
            for n in range(EVENTS)
        )


async def missing(cluster: Cluster, subject: str = "family") -> dict[int, Counter[int]]:
    """Families of which not every event is found exactly once."""
    async with utuple.connect(cluster.at, timeout_s=LIMIT_S) as space:

        async def found(family: int) -> Counter[int]:
            events = space.read(subject=f"{subject}-{family}", type="t")
            return Counter([event.data["n"] async for event in events])

        counts = await asyncio.gather(*map(found, range(FAMILIES)))
    whole = Counter(range(EVENTS))
    return {family: count for family, count in enumerate(counts) if count != whole}


def members(line: dict[str, Any]) -> dict[str, bool]:
    return {member["name"]: member["accumulatable"] for member in line["members"]}


def lines(cluster: Cluster) -> list[dict[str, Any]]:
    table = cluster.run("table", "--json").json()
    assert table["whole"]
    return list(table["lines"])


# --- the operator's commands


def test_an_added_server_takes_over_part_of_a_section_and_is_remembered(cluster: Cluster) -> None:
    added = cluster.run("server", "add", "--json")
    assert added.code == 0, added.err
    name, move = added.json()["name"], added.json()["move"]
    assert move["kind"] == "split" and move["helper"] == name
    start, key, end = (int(move[edge], 16) for edge in ("start", "key", "end"))
    assert start < key < end
    given = next(line for line in lines(cluster) if line["start"] == move["key"])
    assert members(given)[name] is True and members(given)[move["member"]] is False
    assert asyncio.run(missing(cluster)) == {}

    before = lines(cluster)
    assert cluster.run("down").code == 0
    again = cluster.run("up", "--detach")
    assert again.code == 0, again.err
    assert name in cluster.servers()
    assert [members(line).keys() for line in lines(cluster)] == [
        members(line).keys() for line in before
    ]
    assert asyncio.run(missing(cluster)) == {}


def said_between(cluster: Cluster) -> int:
    """Calls that any server has had from another since it started."""
    return sum(server["from_servers"] for server in cluster.servers().values())


def test_servers_talk_while_load_moves_and_say_nothing_to_each_other_afterwards(
    cluster: Cluster,
) -> None:
    before = said_between(cluster)
    helped = cluster.run("server", "help", "server-1", "--helper", "server-2", "--json")
    assert helped.code == 0, helped.err
    move = helped.json()["move"]["id"]
    until(lambda: move in ended_moves(cluster), "the move is over")
    after = said_between(cluster)
    assert after > before
    asyncio.run(store_some(cluster, "steady"))
    assert asyncio.run(missing(cluster, "steady")) == {}
    assert said_between(cluster) == after


def moves_of(cluster: Cluster) -> Sequence[ShownMove]:
    """Asked in this process: a command a time takes most of a second of processor."""
    return asyncio.run(snapshot_of([cluster.at])).moves


def ended_moves(cluster: Cluster) -> list[str]:
    return [move.id for move in moves_of(cluster) if move.step == "done"]


def test_help_by_hand_adds_a_member_and_shows_the_line_before_and_after(cluster: Cluster) -> None:
    homes = [line for line in lines(cluster) if line["home"] == "server-2"]
    start = ["--section", next(one["start"] for one in homes if "server-1" not in members(one))]
    helped = cluster.run("server", "help", "server-2", "--helper", "server-1", *start, "--json")
    assert helped.code == 0, helped.err
    said = helped.json()
    (after,) = said["after"]
    assert "server-1" not in members(said["before"])
    assert members(after) == {**members(said["before"]), "server-1": True}
    assert after["epoch"] == said["before"]["epoch"] + 1
    assert said["move"]["kind"] == "help-processing" and said["move"]["step"] != "learning"
    recorded = cluster.run("moves", "--json").json()
    assert said["move"]["id"] in [move["id"] for move in recorded]

    again = cluster.run("server", "help", "server-2", "--helper", "server-1", *start)
    assert again.code == 1 and "is on in" in again.err
    assert asyncio.run(missing(cluster)) == {}


def test_a_drained_server_leaves_with_everything_brought_elsewhere(cluster: Cluster) -> None:
    extra = cluster.run("server", "add", "--no-wait", "--json").json()["name"]
    until(lambda: cluster.servers().get(extra, {}).get("state") == "serving", f"{extra} serves")
    pid = cluster.pid("server-1")
    drained = cluster.run("server", "drain", "server-1", "--json")
    assert drained.code == 0, drained.err
    assert drained.json()["stopped"] is True and drained.json()["rows"] > 0
    assert "server-1: in no line" in drained.err
    assert start_of(pid) is None
    assert "server-1" not in cluster.servers()
    assert all("server-1" not in members(line) for line in lines(cluster))
    assert cluster.run("status", "--json").code == 0, "nobody misses it"
    kinds = {m["kind"] for m in cluster.run("moves", "--json").json() if m["member"] == "server-1"}
    assert "drain" in kinds, "the event log outlives the server"
    assert asyncio.run(missing(cluster)) == {}

    assert cluster.run("down").code == 0
    assert cluster.run("up", "--detach").code == 0
    assert "server-1" not in cluster.servers(), "it does not come back"


async def every_fleeting_event_comes(cluster: Cluster) -> None:
    """Events of lifetime 0 are never stored: only who is connected gets them, wherever the load moves."""
    subject = f"fleeting-{uuid4()}"
    moved = asyncio.Event()
    async with utuple.connect(cluster.at, timeout_s=LIMIT_S) as space:

        async def emit() -> int:
            number = 0
            while not moved.is_set():
                data = {"n": number}
                await space.emit(subject=subject, type="t", address="a", data=data, lifetime_s=0)
                number += 1
            return number

        async with space.watch(subject=subject, type="t") as events:
            emitting = asyncio.create_task(emit())
            home = await asyncio.to_thread(home_of, cluster, subject)
            helper = next(name for name in cluster.servers() if name != home)
            move = ("server", "help", home, "--helper", helper, "--json")
            helped = await asyncio.to_thread(cluster.run, *move)
            assert helped.code == 0, helped.err
            moved.set()
            count = await emitting
            async with asyncio.timeout(LIMIT_S):
                got = [(await anext(events)).data["n"] for _ in range(count)]
    assert sorted(got) == list(range(count))


def line_of(cluster: Cluster, subject: str) -> dict[str, Any]:
    key = key_of(subject, "t")
    return next(one for one in lines(cluster) if key in range_of(one))


def home_of(cluster: Cluster, subject: str) -> str:
    return str(line_of(cluster, subject)["members"][0]["name"])


def test_events_that_are_never_stored_reach_a_watcher_while_help_comes(pair: Cluster) -> None:
    asyncio.run(every_fleeting_event_comes(pair))


async def acknowledged_by_all(cluster: Cluster, subject: str, *, wanted: int) -> list[str]:
    """Each of the devices comes, in a program that remembers nothing; who was given the command, so many."""
    async with utuple.connect(cluster.at, timeout_s=LIMIT_S) as space:

        async def serve(name: str) -> list[str]:
            about: dict[str, Any] = {"subject": subject, "type": "t", "address": name}
            async with space.serve(**about, reader=name) as commands:
                came = await commands.take(10, timeout_s=LIMIT_S if wanted else SILENT_S)
                for command in came:
                    await command.ack()
            return [name for _ in came]

        return [name for given in await asyncio.gather(*map(serve, DEVICES)) for name in given]


def unhelped_subject(cluster: Cluster) -> str:
    """Of a section that one server has alone: what was tried before may have brought help to the other."""
    alone = [range_of(line) for line in lines(cluster) if len(line["members"]) == 1]
    tried = (f"aircon-{number}" for number in count())
    return next(name for name in tried if any(key_of(name, "t") in keys for keys in alone))


def range_of(line: dict[str, Any]) -> range:
    return range(int(line["start"], 16), int(line["end"], 16))


async def no_command_comes_twice(cluster: Cluster) -> None:
    subject = unhelped_subject(cluster)
    async with utuple.connect(cluster.at, timeout_s=LIMIT_S) as space:
        asked = space.command(
            subject=subject, type="t", data={"on": False}, everywhere=True, lifetime_s=3600
        )
        receipt = await asked
    assert await acknowledged_by_all(cluster, subject, wanted=1) == DEVICES
    home = home_of(cluster, subject)
    other = "server-2" if home == "server-1" else "server-1"
    section = ["--section", line_of(cluster, subject)["start"]]
    helped = cluster.run("server", "help", home, "--helper", other, *section)
    assert helped.code == 0, helped.err
    assert await acknowledged_by_all(cluster, subject, wanted=0) == [], "half of them at another"
    drained = cluster.run("server", "drain", home)
    assert drained.code == 0, drained.err
    assert await acknowledged_by_all(cluster, subject, wanted=0) == []
    said = cluster.run("commands", str(receipt.id), "--json").json()
    assert (said["matched"], said["acknowledged"]) == (len(DEVICES), len(DEVICES))


def test_a_command_that_was_acknowledged_does_not_come_again_wherever_load_moves(
    pair: Cluster,
) -> None:
    asyncio.run(no_command_comes_twice(pair))


def test_the_last_server_cannot_be_drained(pair: Cluster) -> None:
    last, *others = pair.servers()
    for name in others:
        assert pair.run("server", "drain", name).code == 0
    refused = pair.run("server", "drain", last)
    assert refused.code == 1
    assert "last server" in refused.err and "utuple server add" in refused.err
    assert pair.servers()[last]["leaving"] is False


# --- the load monitor alone


async def test_a_hot_key_gets_help_by_itself_and_gives_it_back_and_nothing_is_missed(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    hot = Cluster(tmp_path_factory.mktemp("hot") / "cluster", free_port())
    knobs = [f"--policy={name}={value}" for name, value in BOLD.items()]
    await asyncio.to_thread(hot.up, "--servers", "3", "--managers", "1", *knobs)
    try:
        await one_hot_key(hot)
    finally:
        assert hot.run("down").code == 0


async def one_hot_key(cluster: Cluster) -> None:
    subject, stop, emitted, got = f"hot-{uuid4().hex[:8]}", asyncio.Event(), 0, Counter[int]()

    async def watch(space: Any, ready: asyncio.Event) -> None:
        async with space.watch(subject=subject, type="t") as events:
            ready.set()
            async for event in events:
                got[event.data["n"]] += 1

    async def emit(space: Any) -> None:
        nonlocal emitted
        while not stop.is_set():
            numbers = range(emitted, emitted + 500)
            emitted += 500
            await space.emit_many(
                {
                    "subject": subject,
                    "type": "t",
                    "address": "a",
                    "data": {"n": n},
                    "lifetime_s": 20,
                }
                for n in numbers
            )

    async with utuple.connect(cluster.at, timeout_s=LIMIT_S) as space:
        ready = asyncio.Event()
        watching = asyncio.create_task(watch(space, ready))
        await ready.wait()
        emitters = [asyncio.create_task(emit(space)) for _ in range(4)]
        try:
            await eventually(cluster, "help-processing")
            # A monitor that dies changes nothing; the next one knows what was done.
            os.kill(cluster.pid("monitor-1"), signal.SIGKILL)
            await asyncio.sleep(2)
        finally:
            stop.set()
            await asyncio.gather(*emitters)
        async with asyncio.timeout(LIMIT_S):
            while len(got) < emitted:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        await eventually(cluster, "flip-off")
        await eventually(cluster, "release")
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    assert emitted > 0
    assert got == Counter(range(emitted)), "nothing missed, nothing twice"


async def eventually(cluster: Cluster, kind: str) -> None:
    """The monitor has had such a move made."""

    def is_made() -> bool:
        made = ("committed", "done")
        return any(move.kind == kind and move.step in made for move in moves_of(cluster))

    await asyncio.to_thread(until, is_made, f"a {kind}", LIMIT_S)
