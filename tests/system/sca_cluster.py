"""A real sCA server process, with assignment managers and uTupleServers played by this process over real
gRPC. What takes time is waited for by reading the process's log or by asking, never by sleeping."""

from __future__ import annotations

import asyncio
import signal
import sys
from array import array
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from utuple.cluster.line import Line, Member, ServerInfo
from utuple.model.columns import Columns
from utuple.model.identity import uuid7
from utuple.model.key import HASH_SPACE, key_of
from utuple.model.section import Section
from utuple.model.utuple import Family
from utuple.runtime.channel import new_server, open_channel
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_to_wire, server_to_wire
from utuple.wire.codec import columns_to_wire
from utuple.wire.utuple_pb2_grpc import ScaStub

ROOT = Path(__file__).parents[2]
LIMIT_S = 60.0
HALF = HASH_SPACE // 2
LOW = next(f for n in range(99) if key_of(*(f := Family(f"low-{n}", "power"))) < HALF)
HIGH = next(f for n in range(99) if key_of(*(f := Family(f"high-{n}", "power"))) >= HALF)
DAY_US = 86_400_000_000
SECOND_US = 1_000_000

Context = Any  # grpc's own is generic in what these handlers do not name


def device_id(number: int) -> bytes:
    return number.to_bytes(16)


def command_id(number: int) -> bytes:
    return uuid7(1_800_000_000_000_000, number)


def devices(
    *rows: tuple[int, str],
    family: Family = LOW,
    where: bytes = b"{}",
    lifetime_us: int = DAY_US,
) -> Columns:
    """CFs: (number, address) each."""
    count = len(rows)
    nowhere = array("d", [float("nan")] * count)
    return Columns(
        (family,),
        array("I", [0] * count),
        b"".join(device_id(number) for number, _ in rows),
        array("q", [0] * count),
        nowhere,
        nowhere,
        array("q", [lifetime_us] * count),
        [address for _, address in rows],
        [where] * count,
        ["reader"] * count,
    )


def two_lines(first: str = "server-1", second: str = "server-2") -> list[Line]:
    return [
        Line(Section(0, HALF), 1, (Member(first),)),
        Line(Section(HALF, HASH_SPACE), 1, (Member(second),)),
    ]


def _service(name: str, **calls: Callable[..., object]) -> grpc.GenericRpcHandler:
    described = pb.DESCRIPTOR.services_by_name[name]
    handlers = {}
    for call, behave in calls.items():
        method = described.methods_by_name[call]
        request = getattr(pb, method.input_type.name)
        kind: Any = (
            grpc.unary_stream_rpc_method_handler
            if method.server_streaming
            else grpc.unary_unary_rpc_method_handler
        )
        handlers[call] = kind(
            behave,
            request_deserializer=request.FromString,
            response_serializer=lambda message: message.SerializeToString(),
        )
    return grpc.method_handlers_generic_handler(described.full_name, handlers)


@dataclass
class Played:
    """A uTupleServer as an sCA server sees it."""

    name: str
    columns: list[Columns] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    says_it_is: str = ""
    breaks_off: int = 0
    """So many reads break off after the first batch."""
    is_up: asyncio.Event = field(default_factory=asyncio.Event)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    address: str = ""

    async def status(self, _request: pb.StatusRequest, context: Context) -> pb.ServerStatus:
        self.asked.set()
        if not self.is_up.is_set():
            await context.abort(grpc.StatusCode.UNAVAILABLE, "down, says the test")
        own = [line for line in self.lines if line.member(self.name)]
        return pb.ServerStatus(name=self.says_it_is or self.name, lines=map(line_to_wire, own))

    async def devices(
        self, _request: pb.DevicesRequest, context: Context
    ) -> AsyncIterator[pb.Columns]:
        for columns in self.columns:
            yield columns_to_wire(columns)
            if self.breaks_off:
                self.breaks_off -= 1
                await context.abort(grpc.StatusCode.UNAVAILABLE, "broke off, says the test")


class Cluster:
    """The played part: one manager, some servers."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.played: dict[str, Played] = {}
        self.announced: asyncio.Queue[pb.ServerInfo] = asyncio.Queue()
        self.address = ""
        self._table_asked = asyncio.Event()
        self._servers: list[grpc.aio.Server] = []

    async def start(self) -> None:
        service = _service("Assignment", Table=self.table, Announce=self.announce)
        self.address = await self._serve(service)

    async def add(self, name: str, *columns: Columns, is_up: bool = True) -> Played:
        played = Played(name, list(columns), self.lines)
        if is_up:
            played.is_up.set()
        service = _service("Server", Status=played.status, Devices=played.devices)
        played.address = await self._serve(service)
        self.played[name] = played
        return played

    async def _serve(self, service: grpc.GenericRpcHandler) -> str:
        server = new_server()
        server.add_generic_rpc_handlers((service,))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        self._servers.append(server)
        return f"127.0.0.1:{port}"

    async def table(self, _request: pb.TableRequest, _context: Context) -> pb.TableAnswer:
        self._table_asked.set()
        servers = [ServerInfo(played.name, played.address) for played in self.played.values()]
        return pb.TableAnswer(
            lines=map(line_to_wire, self.lines), servers=map(server_to_wire, servers)
        )

    async def table_was_asked_again(self, times: int) -> None:
        for _ in range(times):
            self._table_asked.clear()
            async with asyncio.timeout(LIMIT_S):
                await self._table_asked.wait()

    async def announce(self, request: pb.Announcement, _context: Context) -> pb.Heard:
        self.announced.put_nowait(request.server)
        return pb.Heard()

    async def stop(self) -> None:
        await asyncio.gather(*(server.stop(None) for server in self._servers))


class Sca:
    """The process. Its log is read as it comes; `said` waits for a phrase in it."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.log: list[str] = []
        self._more = asyncio.Condition()
        self._reading = asyncio.create_task(self._read())
        self.address = ""

    async def listening(self) -> None:
        line = await self.said("listening address=")
        self.address = line.partition("address=")[2].split()[0]
        self.channel = open_channel(self.address)
        self.stub: Any = ScaStub(self.channel)

    async def _read(self) -> None:
        assert self.process.stderr is not None
        while line := await self.process.stderr.readline():
            async with self._more:
                self.log.append(line.decode().rstrip())
                self._more.notify_all()
        async with self._more:
            self.log.append("(end of the log)")
            self._more.notify_all()

    async def said(self, phrase: str) -> str:
        def found() -> str | None:
            return next((line for line in self.log if phrase in line), None)

        async with asyncio.timeout(LIMIT_S), self._more:
            await self._more.wait_for(lambda: found() or self.log[-1:] == ["(end of the log)"])
        line = found()
        assert line is not None, "\n".join([f"the process never said {phrase!r}", *self.log])
        return line

    async def ended(self, sign: signal.Signals = signal.SIGTERM) -> int:
        if self.process.returncode is None:
            self.process.send_signal(sign)
        async with asyncio.timeout(LIMIT_S):
            code = await self.process.wait()
            await self._reading
        return code

    # --- calls ----------------------------------------------------------------------------------------

    async def raw(self, call: str, request: bytes) -> bytes:
        method: Any = self.channel.unary_unary(f"/utuple.v1.Sca/{call}")
        answer: bytes = await method(request, timeout=LIMIT_S)
        return answer

    async def status(self) -> pb.ScaStatus:
        answer: pb.ScaStatus = await self.stub.Status(pb.StatusRequest(), timeout=LIMIT_S)
        return answer

    async def register(
        self, columns: Columns | None = None, cancels: Iterable[bytes] = ()
    ) -> list[pb.Refusal]:
        sent = columns_to_wire(columns) if columns is not None else None
        request = pb.ScaRegisterRequest(devices=sent, cancels=list(cancels))
        answer = await self.stub.Register(request, timeout=LIMIT_S)
        return list(answer.refusals)

    async def command(
        self,
        number: int,
        address: str,
        data: bytes = b"{}",
        family: Family = LOW,
        confirm_s: float = 0.0,
    ) -> list[str]:
        """What became of it: one word for each device it met. Sent again while its device may be on its way, as the SDK
        does."""
        request = pb.SimpleCommands(
            families=[pb.Family(subject=family.subject, type=family.type)],
            ids=command_id(number),
            addresses=[address],
            payloads=[data],
            confirm_us=int(confirm_s * SECOND_US),
        )
        answer: pb.SimpleReceipts = await self.stub.Command(request, timeout=LIMIT_S)
        while answer.moving:
            await asyncio.sleep(0.01)
            answer = await self.stub.Command(request, timeout=LIMIT_S)
        assert list(answer.rows) == [0] * len(answer.handed)
        assert len(answer.ids) == 16 * len(answer.handed)
        return [pb.Handed.Name(pb.Handed.ValueType(handed)) for handed in answer.handed]

    async def open_stream(self) -> Reader:
        return Reader(self.stub.Deliver())


class Reader:
    """An actuator program's side of a Deliver stream."""

    def __init__(self, call: Any) -> None:
        self.call = call

    async def say(self, **message: Any) -> None:
        await self.call.write(pb.FromReader(**message))

    async def hear(self) -> pb.ToReader:
        """What the stream says next, but for who the sCA servers are."""
        while True:
            async with asyncio.timeout(LIMIT_S):
                message = await self.call.read()
            assert isinstance(message, pb.ToReader), f"the stream has ended: {message}"
            if not message.HasField("changed"):
                return message

    async def end(self) -> grpc.StatusCode:
        """Read on to the end of the stream; its status."""
        async with asyncio.timeout(LIMIT_S):
            code: grpc.StatusCode = await self.call.code()
        return code

    async def attach(self, number: int, registration: Columns | None = None) -> pb.Attached:
        sent = columns_to_wire(registration) if registration is not None else None
        attach = pb.Attach(id=device_id(number), device=True, reader="reader", registration=sent)
        await self.say(attach=attach)
        return (await self.hear()).attached

    async def confirm(self, deliveries: pb.Deliveries, number: int) -> None:
        """Every command of this message, for the one device it is for."""
        ids = deliveries.columns.ids
        formals = device_id(number) * (len(ids) // 16)
        await self.say(confirm=pb.Confirm(formals=formals, commands=ids))


Start = Callable[..., Awaitable[Sca]]


async def start_sca(managers: str, *options: str, listen: str = "127.0.0.1:0") -> Sca:
    command = [sys.executable, "-P", "-m", "sca_server", "--name", "sca-1", "--listen", listen]
    command += ["--managers", managers, "--table-every-s", "0.05", "--first-retry-s", "0.05"]
    command += ["--meet-every-s", "0.02", "--settle-s", "0.01", "--settle-pause-s", "0.01"]
    process = await asyncio.create_subprocess_exec(
        *command, *options, cwd=ROOT, stderr=PIPE, limit=1 << 20, env={"PYTHONPATH": str(ROOT)}
    )
    return Sca(process)
