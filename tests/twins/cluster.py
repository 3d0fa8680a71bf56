"""A cluster in a few lines: the client's Transport, answered in this process by plain lists.

It keeps the protocol's promises the slow and obvious way (every match by `matches`), and breaks the network
on purpose: servers that are cut off, answers that are lost after the server acted, calls that are held.
"""

from __future__ import annotations

import asyncio
from array import array
from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass, field

from tests.twins.server import TwinSca, TwinServer, TwinStream
from utuple.cluster.line import Line, Member, ServerInfo
from utuple.errors import OutcomeUnknown, Overloaded, Unavailable, UnknownHost
from utuple.model.key import HASH_SPACE
from utuple.model.section import Section
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_to_wire, server_to_wire
from utuple.wire.codec import unpack

MANAGER = "manager:1"


def one_line(epoch: int, *members: Member | str) -> Line:
    """The whole hash space as one section."""
    named = tuple(member if isinstance(member, Member) else Member(member) for member in members)
    return Line(Section(0, HASH_SPACE), epoch, named)


@dataclass
class TwinCluster:
    """`cluster.line` is what the manager says; each server has its own idea of it."""

    line: Line
    managers_up: bool = True
    nameless: bool = False
    """While the managers are down: their names cannot be resolved."""
    lookups: int = 0
    connects: Counter[str] = field(default_factory=Counter)
    """Streams asked for, by server."""
    calls: list[tuple[str, pb.RegisterRequest]] = field(default_factory=list)
    timeouts_s: list[float] = field(default_factory=list)
    """Of each of these."""
    servers: dict[str, TwinServer] = field(default_factory=dict)
    sca: dict[str, TwinSca] = field(default_factory=lambda: {"sca-1": TwinSca("sca-1")})
    moving: dict[str, int] = field(default_factory=dict)
    """Devices whose next so many commands are given back, because they are on their way to another sCA server."""
    down: set[str] = field(default_factory=set)
    unreached: Counter[str] = field(default_factory=Counter)
    """Calls and streams to servers that are down."""
    losing: dict[str, int] = field(default_factory=dict)
    """How many of a server's next answers are lost."""
    choking: bool = False
    """Reading breaks whenever rows are to come."""
    held: dict[str, asyncio.Event] = field(default_factory=dict)
    stalls: dict[str, tuple[int, asyncio.Event]] = field(default_factory=dict)
    """Servers that give so many rows of a reading, and then nothing until the event is set."""
    pace_s: float = 0.0
    """What a server takes for each chunk of a reading."""
    readings: int = 0
    """Searches that go on at the servers."""
    slow_calls: dict[str, float] = field(default_factory=dict)
    """Seconds a registration is on its way to a server; its streams are as fast as ever."""
    full: set[str] = field(default_factory=set)
    """Servers that take nothing for now."""
    hold_lookups: asyncio.Event | None = None
    hidden: set[str] = field(default_factory=set)
    """Servers whose addresses nobody tells."""
    speeds: dict[str, float] = field(default_factory=dict)
    """Rows a server works off in a second, one call after another; without a speed it takes no time."""
    free_at_s: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for member in self.line.members:
            self.servers[member.name] = TwinServer(member.name, self.line)

    # --- what a test does ----------------------------------------------------------------------

    def add_server(self, name: str, line: Line | None) -> TwinServer:
        self.servers[name] = TwinServer(name, line)
        return self.servers[name]

    def change(self, line: Line, *, told: Iterable[str] = ()) -> None:
        """A new epoch at these servers; the rest and the manager have not heard."""
        for name in told:
            self.servers[name].line = line

    def move(self, line: Line) -> None:
        """A new epoch that everyone knows, new members too, and connected readers are told."""
        for member in line.members:
            if member.name not in self.servers:
                self.add_server(member.name, line)
        self.line = line
        self.change(line, told=self.servers)
        self.announce(line)

    def drain(self, name: str, heir: str, line: Line) -> None:
        """The epoch in which this server is gone, and its rows are with its heir."""
        self.change(line, told=self.servers)
        self.servers[heir].take_from(self.servers[name])
        self.move(line)

    def announce(self, line: Line) -> None:
        """The servers tell their connected readers."""
        changed = self.lines_on_the_wire(line)
        for server in self.servers.values():
            for stream in list(server.streams):
                stream.put(pb.ToReader(changed=changed))

    def lines_on_the_wire(self, line: Line) -> pb.Changed:
        return pb.Changed(lines=[line_to_wire(line)], servers=self.infos)

    def cut(self, name: str) -> None:
        """Unreachable from now on, and its streams break."""
        self.down.add(name)
        held = self.servers.get(name) or self.sca[name]
        for stream in list(held.streams):
            stream.break_off()

    def mend(self, name: str) -> None:
        self.down.discard(name)

    def hold(self, name: str) -> asyncio.Event:
        """Calls to it wait until the event is set."""
        self.held[name] = asyncio.Event()
        return self.held[name]

    def stall(self, name: str, rows: int = 0) -> asyncio.Event:
        """It accepts readings, gives so many rows, and no more until the event is set."""
        self.stalls[name] = rows, asyncio.Event()
        return self.stalls[name][1]

    def calls_to(self, name: str) -> list[pb.RegisterRequest]:
        return [request for server, request in self.calls if server == name]

    @property
    def infos(self) -> list[pb.ServerInfo]:
        servers = [ServerInfo(name, name) for name in self.servers if name not in self.hidden]
        scas = [ServerInfo(name, name, "sca") for name in self.sca]
        return [server_to_wire(info) for info in (*servers, *scas)]

    # --- the Transport -------------------------------------------------------------------------

    def expect(self, address: str, name: str) -> None:
        """Nobody shows a certificate here."""

    async def lookup(
        self, address: str, request: pb.LookupRequest, timeout_s: float
    ) -> pb.LookupAnswer:
        self.lookups += 1
        await asyncio.sleep(0)
        if self.hold_lookups is not None:
            await self.hold_lookups.wait()
        if not self.managers_up:
            raise (
                UnknownHost(address)
                if self.nameless
                else Unavailable(f"nothing listens at {address}")
            )
        known = not request.keys or any(key in self.line.section for key in request.keys)
        lines = [line_to_wire(self.line)] if known else []
        return pb.LookupAnswer(lines=lines, line=[1] * len(request.keys), servers=self.infos)

    async def register(
        self, address: str, request: pb.RegisterRequest, timeout_s: float
    ) -> pb.RegisterAnswer:
        self.calls.append((address, request))
        self.timeouts_s.append(timeout_s)
        await self._travel(address, timeout_s)
        await asyncio.sleep(self.slow_calls.get(address, 0.0))
        if address in self.full:
            raise Overloaded("too much waits already", retry_after_s=0.5)
        await self._work(address, len(request.events.ids) // 16)
        answer = self.servers[address].register(request)
        answer.servers.extend(self.infos)
        self._say_load(address, answer)
        await self._travel_back(address)
        return answer

    async def command(
        self, address: str, request: pb.CommandRequest, timeout_s: float
    ) -> pb.CommandAnswer:
        await self._travel(address)
        answer = await self.servers[address].command(request)
        await self._travel_back(address)
        return answer

    async def commanded(
        self, address: str, request: pb.CommandedRequest, timeout_s: float
    ) -> pb.CommandedAnswer:
        await self._travel(address)
        return pb.CommandedAnswer()  # this twin keeps no command that one could look at

    async def read(
        self, address: str, request: pb.ReadRequest
    ) -> AsyncGenerator[pb.ReadChunk, None]:
        await self._travel(address)
        rows = 0
        self.readings += 1
        try:
            for chunk in self.servers[address].read(request):
                if self.choking and chunk.columns.ids:
                    raise OutcomeUnknown("a chunk that never gets through")
                yield chunk
                rows += len(chunk.columns.ids) // 16
                await self._travel_back(address)
                await self._take_time(address, rows)
                if address in self.down:
                    raise OutcomeUnknown("the stream broke")
        finally:
            self.readings -= 1

    async def sca_register(
        self, address: str, request: pb.ScaRegisterRequest, timeout_s: float
    ) -> pb.ScaRegisterAnswer:
        await self._travel(address, timeout_s)
        if request.devices.ids:
            await asyncio.sleep(self.slow_calls.get(address, 0.0))
        self.sca[address].keep(request.devices)
        for id_ in request.cancels:
            self.sca[address].devices.pop(id_, None)
        await self._travel_back(address)
        return pb.ScaRegisterAnswer()

    async def sca_command(
        self, address: str, request: pb.SimpleCommands, timeout_s: float
    ) -> pb.SimpleReceipts:
        await self._travel(address)
        self.sca[address].calls += 1
        which: array[int] = unpack("I", request.family, len(request.addresses), "family")
        answer = pb.SimpleReceipts()
        for row, address_ in enumerate(request.addresses):
            family = request.families[which[row]]
            id_ = request.ids[row * 16 : row * 16 + 16]
            payload = request.payloads[row]
            if self.moving.get(address_, 0) > 0:
                self.moving[address_] -= 1
                answer.moving.append(row)
                answer.reason = "on its way, says the test"
                continue
            for handover in await self.sca[address].hand(family, id_, address_, payload):
                answer.rows.append(row)
                answer.ids += handover.id
                answer.handed += bytes([handover.handed])
        await self._travel_back(address)
        return answer

    async def deliver(self, address: str, *, sca: bool) -> TwinStream:
        self.connects[address] += 1
        await self._travel(address)
        return TwinStream(self.sca[address] if sca else self.servers[address])

    async def close(self) -> None:
        return

    async def _travel(self, address: str, timeout_s: float = 1e9) -> None:
        await asyncio.sleep(0)
        if address in self.down:
            self.unreached[address] += 1
            raise Unavailable(f"nothing listens at {address}")
        if address in self.held:
            try:
                async with asyncio.timeout(timeout_s):
                    await self.held[address].wait()
            except TimeoutError:
                raise OutcomeUnknown(f"{address} did not answer") from None

    async def _take_time(self, address: str, rows: int) -> None:
        if self.pace_s:
            await asyncio.sleep(self.pace_s)
        most, goes_on = self.stalls.get(address, (0, None))
        if goes_on is not None and rows >= most:
            await goes_on.wait()

    async def _work(self, address: str, rows: int) -> None:
        if address in self.speeds:
            now_s = asyncio.get_running_loop().time()
            done_s = max(now_s, self.free_at_s.get(address, 0.0)) + rows / self.speeds[address]
            self.free_at_s[address] = done_s
            await asyncio.sleep(done_s - now_s)

    def _say_load(self, address: str, answer: pb.RegisterAnswer) -> None:
        if address in self.speeds:
            left_s = self.free_at_s[address] - asyncio.get_running_loop().time()
            answer.load.service_per_s = self.speeds[address]
            answer.load.queued = max(0.0, left_s) * self.speeds[address]
        answer.load.templates = len(self.servers[address].templates)

    async def _travel_back(self, address: str) -> None:
        await asyncio.sleep(0)
        if self.losing.get(address, 0) > 0:
            self.losing[address] -= 1
            raise OutcomeUnknown(f"{address} did not answer")
