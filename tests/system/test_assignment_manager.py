"""Real assignment managers on loopback, killed and started again; the real announcer stands for servers."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeAlias

import grpc
import pytest

from utuple.cluster.changes import helped
from utuple.cluster.line import Line, ServerInfo, first_table
from utuple.cluster.table import Table
from utuple.errors import InvalidInput
from utuple.model.key import HASH_SPACE
from utuple.runtime.announcer import Announcer
from utuple.runtime.channel import open_channel
from utuple.wire import utuple_pb2 as pb
from utuple.wire.announcing import TOLD
from utuple.wire.cluster import line_from_wire
from utuple.wire.status import error_from
from utuple.wire.utuple_pb2_grpc import AssignmentStub

FULL_AGAIN_S = 10.0
"""The promise: after any managers die, every key is answered again within this."""

STARTED_S = 30.0
"""For processes to start on a loaded machine; no promise."""

SERVERS = [f"server-{number}" for number in range(1, 13)]


class Managers:
    """Some assignment managers as processes, each knowing the first two by address."""

    def __init__(self, count: int, folder: Path) -> None:
        self.addresses = {
            f"manager-{n + 1}": f"127.0.0.1:{port}" for n, port in enumerate(ports(count))
        }
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._folder = folder

    def start(self, name: str) -> None:
        seeds = [address for other, address in self.addresses.items() if other != name][:2]
        command = [sys.executable, "-m", "assignment_manager", "--name", name]
        command += ["--listen", self.addresses[name], "--peers", ",".join(seeds)]
        with (self._folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(command, stderr=log)

    def kill(self, name: str) -> None:
        self.processes[name].kill()
        self.processes.pop(name).wait()

    def log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text()

    def close(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()


def ports(count: int) -> list[int]:
    """Free ones, all different."""
    with listening_nowhere(count) as sockets:
        return [one.getsockname()[1] for one in sockets]


@contextmanager
def listening_nowhere(count: int) -> Iterator[list[socket.socket]]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        yield sockets
    finally:
        for one in sockets:
            one.close()


@asynccontextmanager
async def running(count: int, folder: Path) -> AsyncIterator[Managers]:
    managers = Managers(count, folder)
    try:
        for name in managers.addresses:
            managers.start(name)
        yield managers
    finally:
        managers.close()


class Cluster:
    """Lines as their homes announce them."""

    def __init__(self, managers: Managers, lines: list[Line]) -> None:
        self.managers = managers
        self.lines = lines
        self.announcers: list[Announcer] = []

    def own_lines(self, name: str) -> list[Line]:
        return [line for line in self.lines if line.home == name]


@asynccontextmanager
async def announced(managers: Managers, known: list[str] | None = None) -> AsyncIterator[Cluster]:
    cluster = Cluster(managers, first_table(SERVERS))
    async with AsyncExitStack() as stack:
        for number, name in enumerate(SERVERS):
            info = ServerInfo(name, f"127.0.0.1:{20_000 + number}", "server", 1)
            announcer = Announcer(
                known or list(managers.addresses.values()),
                info,
                lambda name=name: cluster.own_lines(name),  # type: ignore[misc]
            )
            cluster.announcers.append(await stack.enter_async_context(announcer))
        yield cluster


async def until(holds: Callable[[], Awaitable[bool]], within_s: float) -> float:
    """How long it took."""
    began_s = time.monotonic()
    while not await holds():
        assert time.monotonic() - began_s < within_s, f"not within {within_s} s"
        await asyncio.sleep(0.02)
    return time.monotonic() - began_s


async def ask_table(address: str) -> pb.TableAnswer | None:
    async with open_channel(address) as channel:
        try:
            return await AssignmentStub(channel).Table(pb.TableRequest(), timeout=2)
        except grpc.aio.AioRpcError:
            return None


async def look_up(address: str, keys: list[int]) -> list[Line | None]:
    async with open_channel(address) as channel:
        try:
            answer = await AssignmentStub(channel).Lookup(pb.LookupRequest(keys=keys), timeout=3)
        except grpc.aio.AioRpcError:
            return [None] * len(keys)
    lines = [None, *map(line_from_wire, answer.lines)]
    return [lines[index] for index in answer.line]


async def answers(address: str, lines: list[Line]) -> bool:
    """Does this manager give the right line for every key tried?"""
    keys = [key for line in lines for key in (line.section.start, line.section.end - 1)]
    keys += [random.randrange(HASH_SPACE) for _ in range(200)]
    table = Table(lines)
    return await look_up(address, keys) == [table.line_of(key) for key in keys]


async def all_answer(cluster: Cluster) -> bool:
    addresses = [cluster.managers.addresses[name] for name in cluster.managers.processes]
    return all(await asyncio.gather(*(answers(address, cluster.lines) for address in addresses)))


async def alive(cluster: Cluster) -> list[set[str]]:
    """Whom each manager takes to be alive."""
    addresses = [cluster.managers.addresses[name] for name in cluster.managers.processes]
    tables = await asyncio.gather(*map(ask_table, addresses))
    return [{m.manager.name for m in table.managers if m.alive} for table in tables if table]


async def settled(cluster: Cluster) -> bool:
    names = set(cluster.managers.processes)
    return await alive(cluster) == [names] * len(names) and await all_answer(cluster)


async def test_every_key_is_answered_after_kill_9_of_any_one_of_three(tmp_path: Path) -> None:
    async with running(3, tmp_path) as managers, announced(managers) as cluster:
        await until(lambda: settled(cluster), STARTED_S)
        for name in managers.addresses:
            managers.kill(name)
            await until(lambda: all_answer(cluster), FULL_AGAIN_S)
            await until(lambda: settled(cluster), FULL_AGAIN_S)
            managers.start(name)
            await until(lambda: settled(cluster), STARTED_S)


async def test_three_managers_that_start_again_empty_are_full_again_with_the_highest_epochs(
    tmp_path: Path,
) -> None:
    async with running(3, tmp_path) as managers, announced(managers) as cluster:
        await until(lambda: settled(cluster), STARTED_S)
        for name in managers.addresses:
            managers.kill(name)
        cluster.lines = [helped(line, line.home, "server-99") for line in cluster.lines]
        for name in managers.addresses:
            managers.start(name)
        serving = list(managers.addresses.values())
        await until(lambda: all_up(serving), STARTED_S)
        await until(lambda: all_answer(cluster), FULL_AGAIN_S)


async def all_managers_learned(cluster: Cluster, names: set[str]) -> bool:
    return all(set(announcer.managers) == names for announcer in cluster.announcers)


async def all_up(addresses: list[str]) -> bool:
    return all(await asyncio.gather(*map(ask_table, addresses)))


async def test_a_new_epoch_is_answered_as_soon_as_it_is_announced_and_an_old_one_never_again(
    tmp_path: Path,
) -> None:
    async with running(3, tmp_path) as managers, announced(managers) as cluster:
        await until(lambda: settled(cluster), STARTED_S)
        old = cluster.lines
        cluster.lines = [helped(line, line.home, "server-99") for line in old]
        told = await asyncio.gather(*(announcer.tell() for announcer in cluster.announcers))
        assert told == [3] * len(SERVERS)
        assert await all_answer(cluster)
        late = Announcer(managers.addresses.values(), ServerInfo("server-1", "h:1"), lambda: old)
        async with late:
            assert await late.tell() == 3
        assert await all_answer(cluster)


async def test_any_of_five_gives_the_whole_table_although_it_holds_a_part(tmp_path: Path) -> None:
    async with running(5, tmp_path) as managers:
        # The servers know one manager; the others they learn of.
        async with announced(managers, [managers.addresses["manager-1"]]) as cluster:
            await until(lambda: settled(cluster), STARTED_S)
            await until(lambda: parted(cluster), STARTED_S)
            await until(lambda: all_managers_learned(cluster, set(managers.addresses)), STARTED_S)
            assert await cluster.announcers[0].tell() == TOLD
            await until(lambda: all_servers_known(cluster), FULL_AGAIN_S)
            for address in managers.addresses.values():
                table = await ask_table(address)
                assert table is not None and table.whole
                assert [line_from_wire(line) for line in table.lines] == cluster.lines
                assert {server.name for server in table.servers} == set(SERVERS)
                assert sum(manager.peers for manager in table.managers) == len(cluster.lines)


async def all_servers_known(cluster: Cluster) -> bool:
    return all(set(announcer.servers) == set(SERVERS) for announcer in cluster.announcers)


async def parted(cluster: Cluster) -> bool:
    """Each line with three managers, and every manager knows what the others keep."""
    addresses = cluster.managers.addresses.values()
    tables = await asyncio.gather(*map(ask_table, addresses))
    kept = [table and [manager.kept for manager in table.managers] for table in tables]
    return all(counts and sum(counts) == 3 * len(SERVERS) for counts in kept)


async def test_a_manager_that_hangs_is_passed_over_in_a_lookup(tmp_path: Path) -> None:
    async with running(5, tmp_path) as managers, announced(managers) as cluster:
        await until(lambda: settled(cluster), STARTED_S)
        await until(lambda: parted(cluster), STARTED_S)
        hanging = managers.processes.pop("manager-3")
        os.kill(hanging.pid, signal.SIGSTOP)
        try:
            assert await all_answer(cluster)
        finally:
            os.kill(hanging.pid, signal.SIGCONT)
            managers.processes["manager-3"] = hanging


async def test_what_no_server_announced_is_not_known(tmp_path: Path) -> None:
    async with running(1, tmp_path) as managers:
        (address,) = managers.addresses.values()
        await until(lambda: all_up([address]), STARTED_S)
        table = await ask_table(address)
        assert table is not None and not table.whole
        assert await look_up(address, [0, HASH_SPACE - 1]) == [None, None]


async def test_the_announcer_says_once_that_a_manager_goes_and_once_that_it_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "utuple.runtime.announcer")
    info = ServerInfo("server-1", "127.0.0.1:1", "server", 1)
    async with running(1, tmp_path) as managers:
        (address,) = managers.addresses.values()
        await until(lambda: all_up([address]), STARTED_S)
        async with Announcer([address], info, list, every_s=0.05) as announcer:

            async def heard(count: int) -> bool:
                return await announcer.tell() == count

            await until(lambda: heard(1), STARTED_S)
            managers.kill("manager-1")
            for _ in range(3):
                assert await announcer.tell() == 0
            managers.start("manager-1")
            await until(lambda: heard(1), STARTED_S)
    said = [record.getMessage().split(" address")[0] for record in caplog.records]
    hears = "manager hears announcements manager=manager-1"
    assert said == [hears, "manager gone", hears]


async def test_a_line_that_changed_is_announced_at_once_when_asked(tmp_path: Path) -> None:
    lines = first_table(["server-1"])
    info = ServerInfo("server-1", "127.0.0.1:1", "server", 1)
    async with running(1, tmp_path) as managers:
        (address,) = managers.addresses.values()
        await until(lambda: all_up([address]), STARTED_S)
        # Next time on its own: in an hour.
        async with Announcer([address], info, lambda: lines, every_s=3600) as announcer:
            await until(lambda: answers(address, lines), STARTED_S)
            lines = [helped(lines[0], "server-1", "server-2")]
            announcer.now()
            await until(lambda: answers(address, lines), STARTED_S)


async def test_an_ordered_stop_ends_with_0_and_a_taken_port_with_1(tmp_path: Path) -> None:
    async with running(1, tmp_path) as managers:
        (address,) = managers.addresses.values()
        await until(lambda: all_up([address]), STARTED_S)
        second = await asyncio.to_thread(run_and_end, "--name", "x", "--listen", address)
        assert second.returncode == 1
        assert "is in use" in second.stderr and "Traceback" not in second.stderr
        first = managers.processes["manager-1"]
        first.terminate()
        assert first.wait(STARTED_S) == 0
        assert "Traceback" not in managers.log("manager-1")


def run_and_end(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "assignment_manager", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=STARTED_S, check=False)


def test_settings_that_cannot_work_are_named() -> None:
    done = run_and_end("--name", "m", "--listen", "nowhere")
    assert done.returncode == 2
    assert "listen: 'nowhere' is refused" in done.stderr


RawCall: TypeAlias = "grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]"


async def raw(address: str, method: str, request: bytes) -> InvalidInput | None:
    async with open_channel(address) as channel:
        try:
            call: RawCall = channel.unary_unary(f"/utuple.v1.Assignment/{method}")
            await call(request, timeout=5)
        except grpc.aio.AioRpcError as error:
            assert error.code() is grpc.StatusCode.INVALID_ARGUMENT, error
            refused = error_from(error, sent=method)
            assert isinstance(refused, InvalidInput)
            return refused
    return None


async def test_bad_input_is_refused_by_field_value_and_rule_and_the_manager_lives(
    tmp_path: Path,
) -> None:
    server = pb.ServerInfo(name="s", address="h:1", role="server")
    no_members = pb.Announcement(server=server, lines=[pb.Line(last=1, epoch=1)])
    many_keys = pb.LookupRequest(keys=range(100_001))
    async with running(1, tmp_path) as managers:
        (address,) = managers.addresses.values()
        await until(lambda: all_up([address]), STARTED_S)
        for method, request, field in (
            ("Lookup", b"\xff" * 40, "request"),
            ("Announce", b"\xff" * 40, "request"),
            ("Gossip", b"\xff" * 40, "request"),
            ("Table", b"\xff" * 40, "request"),
            ("Table", b"\x98\x06\x01", "TableRequest"),
            ("Lookup", many_keys.SerializeToString(), "keys"),
            ("Announce", no_members.SerializeToString(), "members"),
            ("Gossip", b"", "alive"),
        ):
            refused = await raw(address, method, request)
            assert refused is not None, method
            assert refused.field == field
            assert refused.rule
        dice = random.Random(1)
        for _ in range(200):
            await raw(address, dice.choice(["Lookup", "Announce", "Gossip"]), dice.randbytes(30))
        assert await ask_table(address) is not None
        assert "Traceback" not in managers.log("manager-1")


async def test_a_message_larger_than_any_batch_ends_the_call_and_not_the_manager(
    tmp_path: Path,
) -> None:
    async with running(1, tmp_path) as managers:
        (address,) = managers.addresses.values()
        await until(lambda: all_up([address]), STARTED_S)
        async with grpc.aio.insecure_channel(
            address, options=[("grpc.max_send_message_length", -1)]
        ) as channel:
            call: RawCall = channel.unary_unary("/utuple.v1.Assignment/Announce")
            with pytest.raises(grpc.aio.AioRpcError) as ended:
                await call(bytes(65 << 20), timeout=20)
            assert ended.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert await ask_table(address) is not None
