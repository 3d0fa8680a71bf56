"""Readers that come and go on a real cluster: drops that are declared, deliveries that come again, work that is shared."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import utuple
import utuple.blocking
from tests.system.cluster import Cluster, running_cluster
from utuple import Drop, DropPolicy, expire, keep, latest_per_address, newest, oldest, prefix

pytestmark = pytest.mark.slow
LIMIT_S = 60
SILENT_S = 3.0
"""After so long nothing more is expected."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as running:
        yield running


@pytest.fixture
async def space(cluster: Cluster) -> AsyncIterator[Any]:
    async with utuple.connect(cluster.at, timeout_s=LIMIT_S) as connected:
        yield connected


@pytest.fixture
def subject() -> str:
    return f"truck-{uuid4().hex[:12]}"


async def emit(space: Any, subject: str, *numbers: int) -> None:
    for n in numbers:
        await space.emit(subject=subject, type="load", address=f"a{n % 2}", data={"n": n})


async def all_of(events: Any, *, acks: bool = True) -> list[int]:
    got = []
    while some := await events.take(1_000, timeout_s=SILENT_S):
        for event in some:
            got.append(event.data["n"])
            if acks:
                await event.ack()
    return got


@pytest.mark.parametrize(
    ("policy", "given"),
    [
        (keep(), [*range(10)]),
        (newest(3), [7, 8, 9]),
        (oldest(2), [0, 1]),
        (latest_per_address(), [8, 9]),
        (expire(3600), [*range(10)]),
        (expire(1e-6), []),
    ],
    ids=str,
)
async def test_what_is_dropped_while_a_reader_is_away_is_declared_and_can_be_read(
    space: Any, subject: str, policy: DropPolicy, given: list[int]
) -> None:
    told: list[Drop] = []
    asked: dict[str, Any] = {
        "subject": subject,
        "type": "load",
        "reader": subject,
        "absent": policy,
    }
    async with space.watch(**asked):
        await emit(space, subject)
    await emit(space, subject, *range(10))
    async with space.watch(**asked, on_dropped=told.append) as events:
        await emit(space, subject, 99)
        assert await all_of(events) == [*given, 99]
        assert list(events.dropped) == told
    assert sum(drop.count for drop in told) == 10 - len(given)
    for drop in told:
        found = {event.data["n"] async for event in space.read(**drop.read)}
        assert set(range(10)) - set(given) <= found
    async with space.watch(**asked) as events:
        assert await all_of(events) == [] and events.dropped == ()


async def test_the_same_subset_comes_when_the_server_is_killed_during_the_return(
    cluster: Cluster, subject: str
) -> None:
    """Killed with -9 before the return, and again when half of what stays was taken."""

    async def kill() -> None:
        servers = await asyncio.to_thread(cluster.servers)
        for server in servers.values():
            os.kill(server["pid"], signal.SIGKILL)

    told: list[Drop] = []
    asked: dict[str, Any] = {
        "subject": subject,
        "type": "load",
        "reader": subject,
        "absent": oldest(40),
    }
    async with utuple.connect(cluster.at, timeout_s=LIMIT_S) as space:
        async with space.watch(**asked, on_dropped=told.append):
            pass
        await emit(space, subject, *range(100))
        await kill()
    async with utuple.connect(cluster.at, timeout_s=LIMIT_S) as space:
        async with space.watch(**asked, on_dropped=told.append) as events:
            half = [event.data["n"] for event in await events.take(20, timeout_s=LIMIT_S)]
            while len(half) < 20:
                half += [e.data["n"] for e in await events.take(20 - len(half), timeout_s=LIMIT_S)]
            await kill()
    async with utuple.connect(cluster.at, timeout_s=LIMIT_S) as space:
        async with space.watch(**asked, on_dropped=told.append) as events:
            rest: list[int] = []
            async with asyncio.timeout(LIMIT_S):
                while len(rest) < 40:
                    rest += await all_of(events)
    assert half == list(range(20)) and rest == list(range(40))
    assert {drop.count for drop in told} == {60}, "told once more at most, and the same"


async def test_another_policy_sharing_or_condition_under_a_known_name_is_refused_and_nothing_is_lost(
    space: Any, subject: str
) -> None:
    asked: dict[str, Any] = {"subject": subject, "type": "load", "reader": subject}
    async with space.watch(**asked, absent=newest(3)):
        pass
    others: list[dict[str, Any]] = [
        {},
        {"absent": newest(4)},
        {"absent": newest(3), "share": True},
    ]
    for other in others:
        with pytest.raises(utuple.Conflict, match="is known with the terms"):
            await space.watch(**asked, **other).open()
    for conditions in ({"address": "a"}, {"where": {"n": 1}}):
        with pytest.raises(utuple.Conflict, match="by other conditions"):
            await space.watch(**asked, **conditions, absent=newest(3)).open()
    await space.emit(subject=subject, type="load", address="a", data={"n": 1})
    async with space.watch(**asked, absent=newest(3)) as events:
        assert [event.data["n"] for event in await events.take(1, timeout_s=LIMIT_S)] == [1]
    terms: list[dict[str, Any]] = [{"absent": newest(3)}, {"share": True}, {"attempts": 2}]
    for bad in terms:
        with pytest.raises(utuple.InvalidInput, match="reader"):
            space.watch(subject=subject, type="load", **bad)


async def test_work_is_shared_comes_again_is_parked_and_released(
    cluster: Cluster, space: Any, subject: str
) -> None:
    asked: dict[str, Any] = {
        "subject": subject,
        "type": "load",
        "reader": subject,
        "attempts": 2,
        "share": True,
    }
    async with utuple.connect(cluster.at, timeout_s=LIMIT_S) as other:
        one, two = await space.watch(**asked).open(), await other.watch(**asked).open()
        await emit(space, subject, *range(20))
        got = [*await one.take(20, timeout_s=LIMIT_S), *await two.take(20, timeout_s=LIMIT_S)]
        while len(got) < 20:
            got += await one.take(20, timeout_s=0.2) + await two.take(20, timeout_s=0.2)
        assert sorted(event.data["n"] for event in got) == list(range(20))
        for event in got:
            if event.data["n"] in (4, 7):
                await event.nack()
            else:
                await event.ack()
        with pytest.raises(utuple.InvalidInput, match="already"):
            got[0].nack()
        again: list[Any] = []
        while len(again) < 2:
            again += await one.take(9, timeout_s=0.2) + await two.take(9, timeout_s=0.2)
        assert sorted((event.data["n"], event.attempts) for event in again) == [(4, 1), (7, 1)]
        for event in again:
            await event.nack()
        await two.close()
        await emit(space, subject, 50)
        assert await all_of(one) == [50], "what is parked blocks nobody"

        async def parked(*more: str) -> list[dict[str, Any]]:
            said = await asyncio.to_thread(
                cluster.run, "readers", "parked", subject, *more, "--json"
            )
            assert said.code == 0, said.err
            found: list[dict[str, Any]] = said.json()
            return sorted(found, key=lambda event: event["data"]["n"])

        waiting = await parked()
        assert [(w["data"]["n"], w["attempts"]) for w in waiting] == [(4, 2), (7, 2)]
        assert len(await parked(waiting[0]["id"], "--drop")) == 1
        assert len(await parked("--release")) == 1
        assert await all_of(one) == [7] and await parked() == []
        await one.close()


async def test_what_a_program_had_that_was_killed_goes_to_another(
    cluster: Cluster, space: Any, subject: str
) -> None:
    program = (
        "import asyncio, sys, utuple\n"
        "async def main(at, subject):\n"
        "    async with utuple.connect(at) as space:\n"
        "        watch = space.watch(subject=subject, type='load', reader=subject, share=True)\n"
        "        async with watch as events:\n"
        "            print('ready', flush=True)\n"
        "            async for event in events:\n"
        "                print(event.data['n'], flush=True)\n"
        "asyncio.run(main(*sys.argv[1:]))\n"
    )
    victim = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program, cluster.at, subject), stdout=asyncio.subprocess.PIPE
    )
    assert victim.stdout is not None
    assert await victim.stdout.readline() == b"ready\n"
    await emit(space, subject, *range(10))
    for _ in range(3):
        await victim.stdout.readline()
    victim.kill()
    await victim.wait()
    asked: dict[str, Any] = {"subject": subject, "type": "load", "reader": subject, "share": True}
    async with space.watch(**asked) as events:
        assert sorted(await all_of(events)) == list(range(10))


async def test_a_command_waits_for_devices_that_are_away_and_says_how_it_stands(
    cluster: Cluster, space: Any, subject: str
) -> None:
    def device(name: str) -> Any:
        return space.serve(subject=subject, type="power", address=name, reader=f"{subject}-{name}")

    async with device("away"):
        pass
    here = await device("here").open()
    asked: dict[str, Any] = {"subject": subject, "type": "power", "data": {"on": False}}
    receipt = await space.command(**asked, everywhere=True, lifetime_s=60)
    states = {one.address: (one.handed_over, one.reason) for one in receipt.devices}
    assert states == {"here": (True, ""), "away": (False, "not connected")}
    await (await anext(here)).ack()
    await here.close()

    async def standing() -> dict[str, Any]:
        said = await asyncio.to_thread(cluster.run, "commands", str(receipt.id), "--json")
        assert said.code == 0, said.err
        found: dict[str, Any] = said.json()
        return found

    before = await standing()
    assert (before["matched"], before["handed_over"], before["acknowledged"]) == (2, 1, 1)
    waiting = asyncio.create_task(receipt.wait(LIMIT_S))
    async with device("away") as away:
        command = await asyncio.wait_for(anext(away), LIMIT_S)
        assert command.data == {"on": False}
        done = await waiting
        assert done.is_done and {one.address for one in done.devices} == {"here", "away"}
        await command.ack()
    async with device("here") as again, device("later") as later:
        assert (await asyncio.wait_for(anext(later), LIMIT_S)).data == {"on": False}
        assert await again.take(1, timeout_s=SILENT_S) == [], "it had acknowledged it"
        refreshed = await receipt.refresh()
        assert refreshed.matched == 3 and refreshed.handed_over == 3
    brief = await space.command(
        **asked | {"data": {"on": True}}, address=prefix("no"), lifetime_s=0.5
    )
    assert not brief and not await brief.wait(5)
    async with device("nobody") as late:
        first = await asyncio.wait_for(anext(late), LIMIT_S)
        assert first.data == {"on": False}, "the one that goes everywhere, for a minute"
        assert await late.take(1, timeout_s=SILENT_S) == [], "the other's lifetime was over"


@pytest.mark.parametrize("by", ["sdk", "blocking", "cli"])
async def test_who_wants_to_know_is_told_which_devices_never_got_a_command(
    cluster: Cluster, space: Any, subject: str, by: str
) -> None:
    def device(name: str) -> Any:
        return space.serve(subject=subject, type="power", address=name, reader=f"{subject}-{name}")

    async with device("away"):
        pass
    asked: dict[str, Any] = {"subject": subject, "type": "power", "data": {"on": False}}
    asked |= {"everywhere": True, "lifetime_s": 3, "notify": "expired"}
    told = await space.watch(subject=subject, type="power", where={"expired": True}).open()
    async with device("here") as here:
        if by == "sdk":
            sent = asyncio.create_task(space.command(**asked))
        elif by == "blocking":
            sent = asyncio.create_task(asyncio.to_thread(commanded_and_followed, cluster, asked))
        else:
            options = ["--data", '{"on": false}', "--everywhere", "--lifetime", "3", "--json"]
            options += ["--subject", subject, "--type", "power"]
            words = ["command", *options, "--notify", "expired"]
            sent = asyncio.create_task(asyncio.to_thread(cluster.run, *words))
        await (await asyncio.wait_for(anext(here), LIMIT_S)).ack()
        receipt = await sent
        if by == "sdk":
            receipt = await receipt.end()
        if by == "cli":
            assert receipt.code == 0, receipt.err
            states = {one["address"]: one["reason"] for one in receipt.json()["devices"]}
        else:
            states = {one.address: one.reason for one in receipt.devices}
        assert states == {"here": "", "away": "expired"}
    event = await asyncio.wait_for(anext(told), LIMIT_S)
    assert event.address == "away" and event.data["expired"] is True
    if by != "cli":
        assert event.data["command"] == str(receipt.id)
    assert await told.take(1, timeout_s=SILENT_S) == [], "the other has it"
    said = await asyncio.to_thread(cluster.run, "commands", event.data["command"], "--json")
    found = {one["address"]: one["reason"] for one in said.json()["devices"]}
    assert found == {"here": "", "away": "expired"}, "for a minute after its end"
    await told.close()


def commanded_and_followed(cluster: Cluster, asked: dict[str, Any]) -> Any:
    with utuple.blocking.connect(cluster.at, timeout_s=LIMIT_S) as space:
        return space.end(space.command(**asked))


@pytest.mark.parametrize("share", [False, True], ids=["alone", "shared"])
@pytest.mark.parametrize(
    ("kills", "matches"), [(8, 2_000), pytest.param(200, 100_000, marks=pytest.mark.long)]
)
async def test_a_reader_that_is_killed_again_and_again_is_given_everything(
    cluster: Cluster,
    space: Any,
    subject: str,
    tmp_path: Path,
    share: bool,
    kills: int,
    matches: int,
) -> None:
    """Every match is handed over, and none twice to a process that has noted that it acknowledged it."""
    program = (
        "import asyncio, sys, utuple\n"
        "async def main(at, subject, share, out):\n"
        "    async with utuple.connect(at) as space:\n"
        "        watch = space.watch(subject=subject, type='load', reader=subject, share=share == 'True')\n"
        "        with open(out, 'a') as got:\n"
        "            async with watch as events:\n"
        "                async for event in events:\n"
        "                    print(event.data['n'], file=got, flush=True)\n"
        "                    await event.ack()\n"
        "                    await asyncio.sleep(0)\n"
        "asyncio.run(main(*sys.argv[1:]))\n"
    )
    dice = random.Random(len(subject))
    async with space.watch(subject=subject, type="load", reader=subject, share=share):
        pass
    emitting = asyncio.create_task(
        space.emit_many(
            {"subject": subject, "type": "load", "address": "a", "data": {"n": n}}
            for n in range(matches)
        )
    )
    seen: set[int] = set()
    for life in range(kills + 1):
        out = tmp_path / f"{life}.txt"
        arguments = (cluster.at, subject, str(share), str(out))
        reader = await asyncio.create_subprocess_exec(sys.executable, "-c", program, *arguments)
        until_s = asyncio.get_running_loop().time() + LIMIT_S
        enough = 1 + dice.randrange(matches // (kills + 1)) if life < kills else 2 * matches
        mine: list[int] = []
        while len(mine) < enough and asyncio.get_running_loop().time() < until_s:
            await asyncio.sleep(0.05)
            before = len(mine)
            if out.exists():
                mine = [int(line) for line in out.read_text().split("\n")[:-1]]
            if len(mine) > before:
                until_s = asyncio.get_running_loop().time() + LIMIT_S
            if life == kills and len(seen | set(mine)) == matches:
                break
        reader.kill()
        await reader.wait()
        mine = [int(line) for line in out.read_text().split("\n")[:-1]] if out.exists() else []
        assert len(mine) == len(set(mine)), "none twice to one process"
        seen |= set(mine)
    assert await emitting == matches
    assert seen == set(range(matches))
