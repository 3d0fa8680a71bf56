"""Law 8 on a real cluster, made from the protocol: every call by whoever may not make it is refused, with the right status."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import pytest

import utuple
from tests.system.cluster import Cluster, running_cluster
from tests.waiting import until
from utuple.admin.trusting import publish
from utuple.model.identity import uuid7
from utuple.runtime.channel import open_channel
from utuple.runtime.trust.tls import calling
from utuple.security.authority import new_authority
from utuple.security.calls import CALLS
from utuple.security.credentials import Credentials, write_credentials
from utuple.security.folder import AuthorityFolder
from utuple.security.grants import Action, FamilyPattern, Grant
from utuple.security.identity import Identity, Role
from utuple.security.own import OWN, OwnCredentials
from utuple.transport.peer import Tls
from utuple.wire import utuple_pb2 as pb
from utuple.wire.utuple_pb2_grpc import ScaStub, ServerStub

LIMIT_S = 10.0
DAY_US = 86_400_000_000
METHODS = [
    (service, method)
    for service in pb.DESCRIPTOR.services_by_name.values()
    for method in service.methods
]
NAMES = [f"{service.name}/{method.name}" for service, method in METHODS]
PLACES = {"Server": 11, "Sca": 21, "Assignment": 0, "Monitor": 22, "Trust": 11}
"""How far above the first port each is served."""
TRUCKS = (FamilyPattern("truck", "load"),)


class Ground(NamedTuple):
    cluster: Cluster
    folder: Path
    authority: AuthorityFolder

    def own(self, name: str, credentials: Credentials) -> OwnCredentials:
        path = self.folder / f"{name}.creds"
        write_credentials(path, credentials)
        return OwnCredentials(path)

    def granted(self, grant: Grant) -> OwnCredentials:
        credentials, document = self.authority.grant(grant, 1)
        self.publish(document)
        return self.own(grant.name, credentials)

    def publish(self, document: Any) -> None:
        async def work() -> Sequence[object]:
            OWN.set(OwnCredentials(self.cluster.folder / "operator.creds"))
            return await publish(map(self.address, PLACES), document)

        assert None not in asyncio.run(work())

    def address(self, service: str) -> str:
        return f"127.0.0.1:{self.cluster.port + PLACES[service]}"


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with running_cluster("--secure", "--servers", "1", "--managers", "1") as cluster:
        folder = tmp_path_factory.mktemp("creds")
        yield Ground(cluster, folder, AuthorityFolder(cluster.folder / "authority"))


async def called(address: str, tls: Tls, service: Any, method: Any) -> grpc.StatusCode:
    """How this call ends, asked with an empty message."""
    path = f"/{service.full_name}/{method.name}"
    request = b""
    async with asyncio.timeout(LIMIT_S), open_channel(address, tls) as channel:
        ways: dict[tuple[bool, bool], Callable[..., Any]] = {
            (False, False): channel.unary_unary,
            (False, True): channel.unary_stream,
            (True, True): channel.stream_stream,
        }
        asks = ways[method.client_streaming, method.server_streaming](path, bytes, bytes)
        call = asks([request]) if method.client_streaming else asks(request)
        try:
            if method.server_streaming:
                async for _ in call:
                    pass
            else:
                await call
        except grpc.aio.AioRpcError as error:
            said.append(error.details() or "")
            return error.code()
    return grpc.StatusCode.OK


said: list[str] = []
"""What the last refusals said."""


def outcome(ground: Ground, at: int, tls: Tls) -> grpc.StatusCode:
    service, method = METHODS[at]
    said.clear()
    return asyncio.run(called(ground.address(service.name), tls, service, method))


@pytest.fixture(scope="module")
def revoked(ground: Ground) -> dict[Role, Tls]:
    made: dict[Role, Tls] = {}
    for role in (Role.DEVICE, Role.APPLICATION, Role.OPERATOR):
        own = ground.granted(Grant(f"gone-{role}", role, {Action.EMIT: TRUCKS}))
        ground.publish(ground.authority.revoke(f"gone-{role}"))
        made[role] = calling(own)
    return made


@pytest.mark.parametrize("at", range(len(METHODS)), ids=NAMES)
def test_whoever_is_revoked_is_refused(ground: Ground, revoked: dict[Role, Tls], at: int) -> None:
    for role, tls in revoked.items():
        assert outcome(ground, at, tls) is grpc.StatusCode.PERMISSION_DENIED, role
        assert "were revoked" in said[-1], said


@pytest.fixture(scope="module")
def everybody(ground: Ground) -> dict[Role, Tls]:
    made = {
        role: calling(ground.granted(Grant(f"some-{role}", role, {Action.EMIT: TRUCKS})))
        for role in (Role.DEVICE, Role.APPLICATION)
    }
    for role in (Role.OPERATOR, Role.PROGRAM):
        issued = ground.authority.issue(role, f"some-{role}", 1)
        made[role] = calling(ground.own(f"some-{role}", issued))
    return made


@pytest.mark.parametrize("at", range(len(METHODS)), ids=NAMES)
def test_another_role_is_refused_and_the_right_one_is_heard(
    ground: Ground, everybody: dict[Role, Tls], at: int
) -> None:
    for role, tls in everybody.items():
        refused = role not in CALLS[NAMES[at]].roles
        code = outcome(ground, at, tls)
        assert (code is grpc.StatusCode.PERMISSION_DENIED) == refused, (role, code, said)


@pytest.fixture(scope="module")
def without_grant(ground: Ground) -> dict[Role, Tls]:
    roles = (Role.DEVICE, Role.APPLICATION)
    issued = {role: ground.authority.issue(role, f"bare-{role}", 1) for role in roles}
    return {role: calling(ground.own(f"bare-{role}", one)) for role, one in issued.items()}


@pytest.mark.parametrize("at", range(len(METHODS)), ids=NAMES)
def test_without_a_grant_the_right_role_is_refused(
    ground: Ground, without_grant: dict[Role, Tls], at: int
) -> None:
    for role, tls in without_grant.items():
        assert outcome(ground, at, tls) is grpc.StatusCode.PERMISSION_DENIED, role
        assert "has no grant" in said[-1], said


# --- another's reader --------------------------------------------------------------------------------


def formal(id_: bytes, reader: str) -> pb.Templates:
    return pb.Templates(
        families=[pb.Family(subject="truck", type="load", epoch=1)],
        ids=id_,
        lifetimes_s=b"\0\0\0\0\0\0\x4e\x40",  # 60
        metadata=[b'{"address":["any"],"since_us":null,"until_us":null,"area":null}'],
        payloads=[b"{}"],
        readers=[reader],
    )


async def attached(stub: ServerStub | ScaStub, attach: pb.Attach) -> pb.ToReader:
    """The first answer that is about the formal."""

    call: Any = stub.Deliver()  # type: ignore[call-arg]  # ours is written to later
    await call.write(pb.FromReader(attach=attach))
    async for message in call:
        if message.WhichOneof("message") != "changed":
            call.cancel()
            found: pb.ToReader = message
            return found
    raise AssertionError("the stream ended")


def test_a_reader_s_name_belongs_to_the_identity_that_made_it(ground: Ground) -> None:
    both = {Action.WATCH: TRUCKS, Action.SERVE: TRUCKS}
    owner = ground.granted(Grant("owner", Role.APPLICATION, both))
    thief = ground.granted(Grant("thief", Role.APPLICATION, both))
    id_ = uuid7(time.time_ns() // 1_000, 5)
    request = pb.RegisterRequest(templates=formal(id_, "orders"))

    async def by(own: OwnCredentials) -> tuple[list[int], str | None]:
        async with open_channel(ground.address("Server"), calling(own)) as channel:
            stub = ServerStub(channel)
            answer = await stub.Register(request)
            told = await attached(stub, pb.Attach(id=id_, reader="orders", window=1))
            return [one.reason for one in answer.refusals], told.WhichOneof("message")

    async def cancelled_by(own: OwnCredentials) -> list[int]:
        async with open_channel(ground.address("Server"), calling(own)) as channel:
            family = pb.Family(subject="truck", type="load", epoch=1)
            cancels = [pb.Cancel(id=id_, family=family)]
            answer = await ServerStub(channel).Register(pb.RegisterRequest(cancels=cancels))
            return [one.reason for one in answer.refusals]

    assert asyncio.run(by(owner)) == ([], "attached")
    assert asyncio.run(by(thief)) == ([pb.NOT_ALLOWED], "not_allowed")
    assert asyncio.run(cancelled_by(thief)) == [pb.NOT_ALLOWED]
    assert asyncio.run(cancelled_by(owner)) == []


def test_two_identities_have_readers_of_the_same_name(ground: Ground) -> None:
    """Each its own, for the same reading, by our SDK."""
    paths = []
    for name in ("day", "night"):
        ground.granted(Grant(name, Role.APPLICATION, {Action.WATCH: TRUCKS, Action.EMIT: TRUCKS}))
        paths.append(ground.folder / f"{name}.creds")

    async def work() -> None:
        family = {"subject": "truck", "type": "load"}
        spaces = [utuple.connect(ground.address("Assignment"), credentials=one) for one in paths]
        async with spaces[0] as day, spaces[1] as night, asyncio.timeout(LIMIT_S):
            watches = [one.watch(**family, reader="shift") for one in (day, night)]  # type: ignore[arg-type]
            async with watches[0] as first, watches[1] as second:
                await day.emit(**family, address="truck-1", data={"kg": 7}, lifetime_s=1)  # type: ignore[arg-type]
                got = [await anext(aiter(one)) for one in (first, second)]
                assert [one.data for one in got] == [{"kg": 7}] * 2

    asyncio.run(work())


@pytest.mark.parametrize("said_by_the_thief", ["acknowledge", "detach"])
def test_what_another_says_of_a_reader_ends_his_stream(
    ground: Ground, said_by_the_thief: str
) -> None:
    owner = ground.granted(Grant("owner", Role.APPLICATION, {Action.WATCH: TRUCKS}))
    thief = ground.granted(Grant("thief", Role.APPLICATION, {Action.WATCH: TRUCKS}))
    id_ = uuid7(time.time_ns() // 1_000, 6)
    messages = {
        "acknowledge": pb.FromReader(
            acknowledge=pb.Acknowledge(formals=id_, seqs=(7).to_bytes(8, "little"))
        ),
        "detach": pb.FromReader(detach=pb.Detach(id=id_, cancel=True)),
    }

    async def work() -> grpc.StatusCode:
        async with open_channel(ground.address("Server"), calling(owner)) as channel:
            await ServerStub(channel).Register(pb.RegisterRequest(templates=formal(id_, "mine")))
        async with open_channel(ground.address("Server"), calling(thief)) as channel:
            call: Any = ServerStub(channel).Deliver()
            await call.write(messages[said_by_the_thief])
            code: grpc.StatusCode = await call.code()
            return code

    assert asyncio.run(work()) is grpc.StatusCode.PERMISSION_DENIED


def device(id_: bytes, reader: str) -> pb.Columns:
    return pb.Columns(
        families=[pb.Family(subject="truck", type="load", epoch=1)],
        ids=id_,
        times_us=(time.time_ns() // 1_000).to_bytes(8, "little"),
        lifetimes_us=(60_000_000).to_bytes(8, "little"),
        addresses=["truck-1"],
        payloads=[b"{}"],
        readers=[reader],
    )


def test_a_device_at_the_sca_server_belongs_to_the_identity_that_registered_it(
    ground: Ground,
) -> None:
    serve = {Action.SERVE: TRUCKS}
    owner = ground.granted(Grant("owner", Role.APPLICATION, serve))
    thief = ground.granted(Grant("thief", Role.APPLICATION, serve))
    id_ = uuid7(time.time_ns() // 1_000, 7)

    async def by(own: OwnCredentials) -> str | None:
        async with open_channel(ground.address("Sca"), calling(own)) as channel:
            attach = pb.Attach(id=id_, device=True, reader="dev", registration=device(id_, "dev"))
            return (await attached(ScaStub(channel), attach)).WhichOneof("message")

    async def cancel_by(own: OwnCredentials) -> None:
        async with open_channel(ground.address("Sca"), calling(own)) as channel:
            await ScaStub(channel).Register(pb.ScaRegisterRequest(cancels=[id_]))

    assert asyncio.run(by(owner)) == "attached"
    assert asyncio.run(by(thief)) == "not_allowed"
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        asyncio.run(cancel_by(thief))
    assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
    asyncio.run(cancel_by(owner))


def test_what_is_stored_belongs_to_who_registered_it_after_a_restart_too(ground: Ground) -> None:
    """A CF is in the store alone then, until its device comes back."""
    both = {Action.SERVE: TRUCKS, Action.COMMAND: TRUCKS}
    owner = ground.granted(Grant("owner", Role.APPLICATION, both))
    thief = ground.granted(Grant("thief", Role.APPLICATION, both))
    served, command = (uuid7(time.time_ns() // 1_000, n) for n in (8, 9))
    family = pb.Family(subject="truck", type="load", epoch=1)
    ca = pb.Templates(
        families=[family],
        ids=command,
        commands=b"\1",
        lifetimes_s=struct.pack("<d", 60.0),
        metadata=[b'{"address":["any"],"since_us":null,"until_us":null,"area":null}'],
        payloads=[b"{}"],
        readers=[""],
    )
    registration = pb.RegisterRequest(devices=device(served, "dev"))
    cancels = pb.RegisterRequest(
        cancels=[pb.Cancel(id=i, family=family) for i in (served, command)]
    )

    async def by(own: OwnCredentials, request: pb.RegisterRequest) -> list[int]:
        async with open_channel(ground.address("Server"), calling(own)) as channel:
            answer = await ServerStub(channel).Register(request)
            return [one.reason for one in answer.refusals]

    async def commanded(own: OwnCredentials) -> pb.CommandedAnswer:
        async with open_channel(ground.address("Server"), calling(own)) as channel:
            return await ServerStub(channel).Commanded(pb.CommandedRequest(id=command))

    async def give(own: OwnCredentials) -> list[int]:
        async with open_channel(ground.address("Server"), calling(own)) as channel:
            answer = await ServerStub(channel).Command(pb.CommandRequest(command=ca))
            return [one.reason for one in answer.refusals]

    assert asyncio.run(by(owner, registration)) == asyncio.run(give(owner)) == []
    before = ground.cluster.pid("server-1")
    os.kill(before, signal.SIGKILL)

    def is_back() -> bool:
        is_another = ground.cluster.pids().get("server-1") not in (None, before)
        operator = str(ground.cluster.folder / "operator.creds")
        return is_another and ground.cluster.run("status", "--credentials", operator).code == 0

    until(is_back, "the server serves again, as another process")
    assert asyncio.run(by(thief, cancels)) == [pb.NOT_ALLOWED] * 2
    assert asyncio.run(by(thief, registration)) == [pb.NOT_ALLOWED]
    assert asyncio.run(give(thief)) == [pb.NOT_ALLOWED]
    with pytest.raises(grpc.aio.AioRpcError, match="belongs to owner"):
        asyncio.run(commanded(thief))
    [told] = asyncio.run(commanded(owner)).devices
    assert told.id == served
    assert asyncio.run(by(owner, cancels)) == []
    assert not asyncio.run(commanded(owner)).known


# --- strangers: last, since whoever fails so many handshakes is not listened to for a while ------------


@pytest.fixture(scope="module")
def strangers(ground: Ground) -> dict[str, Tls]:
    """Those who are refused in the handshake."""
    known, now_us = ground.authority.read(), time.time_ns() // 1_000
    identity = Identity(known.authority.cluster, Role.OPERATOR, "somebody")
    other = new_authority(known.authority.cluster, now_us).issue(identity, 1, now_us=now_us)
    other = other.trusting(*known.authorities_pem)
    bare = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    bare.check_hostname = False
    bare.load_verify_locations(cadata="".join(known.authorities_pem))
    bare.set_alpn_protocols(["h2"])
    expired = known.authority.issue(identity, 1, now_us=now_us - 3 * DAY_US)
    early = known.authority.issue(identity, 1, now_us=now_us + 2 * DAY_US)
    return {
        "no certificate": Tls(lambda: bare),
        "another authority's": Tls(lambda: other.client_context()),
        "an expired one": Tls(lambda: expired.client_context()),
        "one that holds tomorrow": Tls(lambda: early.client_context()),
    }


@pytest.mark.parametrize("at", range(len(METHODS)), ids=NAMES)
def test_strangers_are_refused_in_the_handshake(
    ground: Ground, strangers: dict[str, Tls], at: int
) -> None:
    for who, tls in strangers.items():
        assert outcome(ground, at, tls) is grpc.StatusCode.UNAVAILABLE, who
        # The alert says why; a reset that overtakes it, because we had sent more, does not.
        assert any(word in said[-1] for word in ("SSL", "closed", "reset")), (who, said)
