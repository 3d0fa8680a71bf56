"""Fair shares on real processes: beyond each limit one identity hears the limit's name and when to come again; another does not notice."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from utuple.local.running import Cluster, Extras
from utuple.local.temporary import cluster
from utuple.model.identity import uuid7
from utuple.runtime.channel import open_channel
from utuple.runtime.trust.tls import calling
from utuple.security.credentials import write_credentials
from utuple.security.grants import Action, FamilyPattern, Grant
from utuple.security.identity import Role
from utuple.security.own import OwnCredentials
from utuple.wire import utuple_pb2 as pb
from utuple.wire.utuple_pb2_grpc import ScaStub, ServerStub

LIMIT_S = 60.0
CONNECTIONS = 40
SERVER = (
    *("--share-registrations-per-s", "5", "--share-efs", "2", "--share-cfs", "2"),
    *("--share-streams", "2", "--share-stored-bytes", "1200", "--share-payload-bytes", "100"),
    *("--share-batch-rows", "8", "--share-lifetime-s", "600", "--share-conditions", "1"),
    *("--connections-per-address", str(CONNECTIONS)),
)
SCA = (
    *("--share-commands-per-s", "5", "--share-unconfirmed", "4", "--share-cfs", "2"),
    *("--share-streams", "1", "--share-registrations-per-s", "4"),
)
FAMILY = pb.Family(subject="truck", type="load", epoch=1)
_numbers = iter(range(1, 1_000))


def ids(count: int) -> bytes:
    return b"".join(uuid7(time.time_ns() // 1_000, next(_numbers)) for _ in range(count))


def rows(count: int, payload: bytes = b"{}", lifetime_s: int = 60, reader: str = "") -> pb.Columns:
    return pb.Columns(
        families=[FAMILY],
        ids=ids(count),
        times_us=(time.time_ns() // 1_000).to_bytes(8, "little") * count,
        lifetimes_us=(lifetime_s * 1_000_000).to_bytes(8, "little") * count,
        addresses=[f"truck-{number}" for number in range(count)],
        payloads=[payload] * count,
        readers=[reader] * count if reader else [],
    )


def formals(count: int, where: bytes = b"{}") -> pb.Templates:
    return pb.Templates(
        families=[FAMILY],
        ids=ids(count),
        lifetimes_s=b"\0\0\0\0\0\0\x4e\x40" * count,  # 60
        metadata=[b'{"address":["any"],"since_us":null,"until_us":null,"area":null}'] * count,
        payloads=[where] * count,
        readers=["me"] * count,
    )


def commands(count: int, address: str = "truck-0", confirm_s: float = 0.0) -> pb.SimpleCommands:
    return pb.SimpleCommands(
        families=[FAMILY],
        ids=ids(count),
        addresses=[address] * count,
        payloads=[b"{}"] * count,
        confirm_us=int(confirm_s * 1e6),
    )


class Ground:
    """A secured cluster with small shares."""

    def __init__(self, running: Cluster, folder: Path) -> None:
        self._running = running
        self._folder = folder
        self._stack = AsyncExitStack()

    async def known(self, *names: str) -> None:
        families = (FamilyPattern("truck", "load"),)
        for name in names:
            grant = Grant(name, Role.APPLICATION, dict.fromkeys(Action, families))
            credentials, _ = self._running.folder.trust.authority.grant(grant, 1)
            write_credentials(self._folder / f"{name}.creds", credentials)
        await self._running.publish_grants()

    def address(self, program: str) -> str:
        return self._running.address_of(program)

    @asynccontextmanager
    async def by(self, name: str) -> AsyncIterator[tuple[Any, Any]]:
        """The two servers, as this identity calls them."""
        tls = calling(OwnCredentials(self._folder / f"{name}.creds"))
        async with (
            open_channel(self.address("server-1"), tls) as server,
            open_channel(self.address("sca-1"), tls) as sca,
        ):
            yield ServerStub(server), ScaStub(sca)


@pytest.fixture
async def ground(tmp_path: Path) -> AsyncIterator[Ground]:
    extras = Extras(options={"server-1": SERVER, "sca-1": SCA})
    async with cluster(1, secure=True, monitor=False, extras=extras) as running:
        yield Ground(running, tmp_path)


async def refused(call: Any) -> str:
    """What it is refused with; empty if it is not."""
    try:
        async with asyncio.timeout(LIMIT_S):
            await call
    except grpc.aio.AioRpcError as error:
        return f"{error.code().name}: {error.details()}"
    return ""


def over(said: str, name: str) -> None:
    assert said.startswith("RESOURCE_EXHAUSTED"), (name, said)
    assert name in said and "try again after" in said, (name, said)


async def test_each_limit_has_its_name_and_is_one_identity_s_alone(ground: Ground) -> None:
    await ground.known("greedy", "other", "heavy", "serving", "holder")
    async with (
        ground.by("greedy") as (server, sca),
        ground.by("other") as (other_server, other_sca),
        ground.by("heavy") as (heavy, heavy_sca),
        ground.by("serving") as (serving, serving_sca),
        ground.by("holder") as (_, holder_sca),
    ):
        await _of_one_request(server)
        await _of_a_server(server, heavy, serving)
        await _of_an_sca_server(sca, heavy_sca, serving_sca, holder_sca)
        assert not await refused(other_server.Register(pb.RegisterRequest(events=rows(2))))
        assert not await refused(other_server.Register(pb.RegisterRequest(templates=formals(2))))
        assert not await refused(other_sca.Command(commands(4)))
    await _of_an_address(ground.address("server-1"))


async def _of_one_request(server: Any) -> None:
    """What is too large for anybody is refused for good."""
    too_large = {
        "share_batch_rows": pb.RegisterRequest(events=rows(9)),
        "share_payload_bytes": pb.RegisterRequest(events=rows(1, b'{"a":"' + b"x" * 100 + b'"}')),
        "share_lifetime_s": pb.RegisterRequest(events=rows(1, lifetime_s=601)),
        "share_conditions": pb.RegisterRequest(
            templates=formals(1, b'{"a":["equal",1],"b":["equal",1]}')
        ),
    }
    for name, request in too_large.items():
        said = await refused(server.Register(request))
        assert said.startswith("INVALID_ARGUMENT"), (name, said)
        assert name in said and "must be at most" in said, (name, said)


async def _of_a_server(server: Any, heavy: Any, serving: Any) -> None:
    large = pb.RegisterRequest(events=rows(1, b'{"a":"' + b"x" * 80 + b'"}'))
    said = [await refused(heavy.Register(large)) for _ in range(4)]
    assert not said[0]
    over(said[-1], "share_stored_bytes")
    assert not await refused(server.Register(pb.RegisterRequest(templates=formals(2))))
    over(await refused(server.Register(pb.RegisterRequest(templates=formals(1)))), "share_efs")
    assert not await refused(serving.Register(pb.RegisterRequest(devices=rows(2, reader="me"))))
    over(
        await refused(serving.Register(pb.RegisterRequest(devices=rows(1, reader="me")))),
        "share_cfs",
    )
    said = [await refused(server.Register(pb.RegisterRequest(events=rows(4)))) for _ in range(3)]
    assert not said[0]
    over(said[-1], "share_registrations_per_s")
    async with _streams(server, 2):
        over(await _ended(server.Deliver()), "share_streams")


async def _of_an_sca_server(sca: Any, heavy: Any, serving: Any, holder: Any) -> None:
    assert not await refused(serving.Register(pb.ScaRegisterRequest(devices=rows(2, reader="me"))))
    more = pb.ScaRegisterRequest(devices=rows(1, reader="me"))
    over(await refused(serving.Register(more)), "share_cfs")
    again = pb.ScaRegisterRequest(devices=rows(2, reader="me", lifetime_s=0))
    said = [await refused(heavy.Register(again)) for _ in range(6)]
    assert not said[0]
    over(said[-1], "share_registrations_per_s")
    said = [await refused(heavy.Command(commands(4))) for _ in range(4)]
    assert not said[0]
    over(said[-1], "share_commands_per_s")
    device = rows(1, reader="held")
    attach = pb.Attach(id=device.ids, device=True, reader="held", registration=device)
    async with _streams(holder, 1, pb.FromReader(attach=attach)) as (held,):
        over(await _ended(holder.Deliver()), "share_streams")
        await _had_time(holder)
        waiting = asyncio.ensure_future(sca.Command(commands(3, confirm_s=20.0)))
        await _until(held, "deliveries")  # the three are counted before the next two come
        over(await refused(sca.Command(commands(2))), "share_unconfirmed")
        waiting.cancel()


async def _had_time(holder: Any) -> None:
    """An sCA server that is new answers "send it again" for a device that is known and not connected, until all had time to come."""
    async with asyncio.timeout(LIMIT_S):
        while (await holder.Command(commands(1, "truck-1"))).moving:  # noqa: ASYNC110
            await asyncio.sleep(0.25)  # within share_commands_per_s


@asynccontextmanager
async def _streams(
    stub: Any, count: int, message: pb.FromReader | None = None
) -> AsyncIterator[list[Any]]:
    """So many, opened before whatever follows on their connection; with a message, until it is answered."""
    calls = [stub.Deliver() for _ in range(count)]
    try:
        for call in calls if message is not None else ():
            await call.write(message)
            await _until(call, "attached")
        yield calls
    finally:
        for call in calls:
            call.cancel()


async def _until(call: Any, message: str) -> None:
    async with asyncio.timeout(LIMIT_S):
        while (await call.read()).WhichOneof("message") != message:
            pass


async def _ended(call: Any) -> str:
    async with asyncio.timeout(LIMIT_S):
        return f"{(await call.code()).name}: {await call.details()}"


async def _of_an_address(address: str) -> None:
    """Before anybody is known: the kernel accepts it, and it is closed before anything is said."""
    host, _, port = address.rpartition(":")
    loop = asyncio.get_running_loop()
    with_room = []
    for _ in range(CONNECTIONS + 1):
        one = socket.socket()
        one.setblocking(False)
        one.bind(("127.0.9.9", 0))
        await loop.sock_connect(one, (host, int(port)))
        with_room.append(one)
    try:
        async with asyncio.timeout(LIMIT_S):
            try:
                said = await loop.sock_recv(with_room[-1], 1)
            except ConnectionResetError:
                said = b""
        assert said == b""
        with pytest.raises(BlockingIOError):
            with_room[0].recv(1)
    finally:
        for one in with_room:
            one.close()
