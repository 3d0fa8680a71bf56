"""The sCA server on gRPC: parse, ask the core, carry out, answer.

Calls come as bytes and are parsed here, so that what cannot be parsed is answered as any other invalid
input is.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import cast

import grpc

from sca_server import messages
from sca_server.commands import Commands, admit
from sca_server.config import Config
from sca_server.core import Core
from sca_server.filling.refill import Refills
from sca_server.judging import ScaJudge
from sca_server.readers import Round, Stream
from sca_server.session import Session
from sca_server.sharing.sorting import Sorted, sort
from utuple.cluster.line import ServerInfo
from utuple.errors import Conflict, InvalidInput, NotAllowed, Unavailable, UTupleError
from utuple.model.columns import MICROSECONDS
from utuple.model.utuple import ID_BYTES, check_id
from utuple.runtime import clock
from utuple.runtime.trust.guard import identity_of
from utuple.security.identity import Identity
from utuple.security.owners import may_use
from utuple.transport.duplex import MessageSink
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import server_to_wire
from utuple.wire.codec import columns_from_wire
from utuple.wire.status import abort

_SERVICE = pb.DESCRIPTOR.services_by_name["Sca"].full_name
_SHORTEST_WAIT_S = 0.001

Context = grpc.aio.ServicerContext[bytes, bytes]
Answer = pb.ScaRegisterAnswer | pb.SimpleReceipts | pb.ScaStatus | pb.ScaServers
Refused = tuple[int, InvalidInput | NotAllowed]
Met = Callable[[str, list[ServerInfo]], list[ServerInfo]]
"""Another sCA server has told what it knows of them all; what it is told."""


class ScaService:
    def __init__(
        self,
        config: Config,
        core: Core,
        refills: Refills,
        own: ServerInfo,
        judge: ScaJudge | None = None,
    ) -> None:
        """`judge`: of a secured cluster."""
        self._config = config
        self._judge = judge
        self._own = own
        self._core = core
        self._refills = refills
        self._met: Met = _nobody_is_met
        self._work = asyncio.Lock()
        """Artificial work is done one after the other."""
        self._sessions: dict[Stream, Session] = {}
        self._waiting: dict[Round, asyncio.Event] = {}
        self._stopping = False

    def add_to(self, server: grpc.aio.Server) -> None:
        unary = grpc.unary_unary_rpc_method_handler
        handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            "Register": unary(self._guarded(self._register)),
            "Command": unary(self._guarded(self._command)),
            "Status": unary(self._guarded(self._status)),
            "Meet": unary(self._guarded(self._meet)),
            "Deliver": grpc.stream_stream_rpc_method_handler(self._deliver),
        }
        generic = grpc.method_handlers_generic_handler(_SERVICE, handlers)
        server.add_generic_rpc_handlers((generic,))

    def _guarded(
        self, act: Callable[[bytes, Identity | None], Awaitable[Answer]]
    ) -> Callable[[bytes, Context], Awaitable[bytes]]:
        async def call(raw: bytes, context: Context) -> bytes:
            try:
                return (await act(raw, identity_of(context))).SerializeToString()
            except UTupleError as error:
                await abort(context, error)
                raise AssertionError("abort raises") from error

        return call

    def when_met(self, met: Met) -> None:
        self._met = met

    def stop(self) -> None:
        """Streams end, and with them every wait for a confirmation."""
        self._stopping = True
        for session in self._sessions.values():
            session.close()

    async def keep_up(self) -> None:
        """For ever: collect what has expired, and the calls whose caller went away."""
        pause_s = self._config.upkeep_every_s
        most = self._config.max_expired_at_once
        while True:
            await asyncio.sleep(pause_s)
            self._answer(self._core.readers.overdue(clock.monotonic_s()))
            many = self._core.index.expire(clock.now_us(), most) == most
            pause_s = 0.0 if many else self._config.upkeep_every_s

    def judge_again(self) -> None:
        """Other grants are in force."""
        for session in list(self._sessions.values()):
            session.judge_again()

    # --- the calls ------------------------------------------------------------------------------------

    async def _register(self, raw: bytes, caller: Identity | None = None) -> pb.ScaRegisterAnswer:
        request = messages.parse(pb.ScaRegisterRequest, raw)
        columns, _ = columns_from_wire(request.devices)
        most = self._config.max_devices_per_call
        if len(columns) > most or len(request.cancels) > most:
            raise InvalidInput("devices", f"{len(columns)} rows", f"a call carries at most {most}")
        for id_ in request.cancels:
            check_id(id_)
        wrong: list[tuple[int, InvalidInput | Conflict | NotAllowed]] = []
        if self._judge is not None and caller is not None:
            new = self._core.count_new(columns)
            rows = len(columns) + len(request.cancels)
            self._judge.shares.register(caller.name, rows, new, clock.monotonic_s())
            columns, refused = self._judge.devices(columns, caller)
            wrong += refused
            self._check_own(request.cancels, caller)
        self._core.make_room(columns, range(len(columns)))
        bad = {row for row, _ in wrong}
        for start in range(0, len(columns), self._config.slice_rows):
            part = range(start, min(start + self._config.slice_rows, len(columns)))
            good = [row for row in part if row not in bad] if bad else part
            wrong += self._core.register(columns, good, clock.now_us())
            if part.stop < len(columns):
                await asyncio.sleep(0)  # commands go on between slices
        for id_ in request.cancels:
            self._wake(self._core.cancel(id_, "" if caller is None else caller.name))
        answer = pb.ScaRegisterAnswer(refusals=messages.refusals_to_wire(wrong, pb.DEVICES))
        if self._core.has_strays(columns):
            answer.servers.extend(map(server_to_wire, self._core.servers.infos))
        return answer

    def _check_own(self, ids: Iterable[bytes], caller: Identity) -> None:
        """A CF is cancelled by the identity that registered it."""
        for id_ in ids:
            device = self._core.index.get(id_, clock.now_us())
            if device is not None and (reason := may_use(caller, device.reader).reason):
                raise NotAllowed(reason)

    async def _command(self, raw: bytes, caller: Identity | None = None) -> pb.SimpleReceipts:
        request = messages.parse(pb.SimpleCommands, raw)
        wait_s = messages.confirm_s(request, self._config.max_confirm_s)
        with self._share_of(caller, len(request.ids) // ID_BYTES):  # before they are looked at
            batch = messages.commands_from_wire(request, self._config.max_commands_per_call)
            return await self._commanded(batch, wait_s, caller)

    def _share_of(self, caller: Identity | None, commands: int) -> AbstractContextManager[None]:
        """Of the caller, for as long as its commands wait for their devices."""
        if self._judge is None or caller is None:
            return nullcontext()
        return self._judge.shares.commands(caller.name, commands, clock.monotonic_s())

    async def _commanded(
        self, batch: Commands, wait_s: float, caller: Identity | None
    ) -> pb.SimpleReceipts:
        if self._config.service_us:
            async with self._work:
                await asyncio.sleep(len(batch) * self._config.service_us / MICROSECONDS)
        if self._stopping:
            raise Unavailable("this sCA server stops")
        commands, places, invalid = admit(batch)
        wrong: list[Refused] = [*invalid]
        if self._judge is not None and caller is not None:
            commands, places, wrong = self._without_refused(commands, places, wrong, caller)
        found = self._sorted(commands)
        if found.moving:
            commands = commands.take(found.here)
        now_s = clock.monotonic_s()
        round_, rows, formals, awake = self._core.hand_over(
            commands, now_us=clock.now_us(), now_s=now_s, deadline_s=now_s + wait_s
        )
        for stream in awake:
            self._wake(stream)
        await self._wait_for(round_)
        if wrong or found.moving:
            rows = [places[found.here[row]] for row in rows]
        receipts = messages.receipts_to_wire(rows, formals, round_.handed, wrong)
        messages.add_moving(receipts, found, places, self._core.servers.infos)
        return receipts

    def _without_refused(
        self, commands: Commands, places: Sequence[int], wrong: Sequence[Refused], caller: Identity
    ) -> tuple[Commands, Sequence[int], list[Refused]]:
        assert self._judge is not None
        refused = dict(self._judge.commands(commands, caller))
        if not refused:
            return commands, places, list(wrong)
        good = [row for row in range(len(commands)) if row not in refused]
        told: list[Refused] = [*wrong, *((places[row], said) for row, said in refused.items())]
        return commands.take(good), [places[row] for row in good], told

    def _sorted(self, commands: Commands) -> Sorted:
        """Fail closed: "no such device" may only be said by who has heard of every device."""
        found = sort(
            commands,
            tenure=self._core.tenure,
            refills=self._refills,
            index=self._core.index,
            attached=self._core.readers.attached,
            now_us=clock.now_us(),
            now_s=self._core.awake.at(clock.monotonic_s()),
            late=self._core.awake.is_late(clock.monotonic_s()),
        )
        if found.filling and not found.here:
            raise Unavailable(found.reason)
        return found

    async def _meet(self, raw: bytes, caller: Identity | None = None) -> pb.ScaServers:
        name, infos = messages.met_from_wire(messages.parse(pb.ScaServers, raw))
        told = self._met(name, infos)
        return pb.ScaServers(name=self._config.name, servers=map(server_to_wire, told))

    async def _status(self, raw: bytes, caller: Identity | None) -> pb.ScaStatus:
        messages.parse(pb.StatusRequest, raw)
        return pb.ScaStatus(
            name=self._config.name,
            state="serving" if self._refills.reading.is_complete else "filling",
            devices=len(self._core.index),
            waiting_for=self._refills.reading.waiting_for,
            commands=self._core.commands,
            handed_over=self._core.readers.handed_over,
            pid=os.getpid(),
            since_us=self._own.since_us,
            address=self._own.address,
            connected=len(self._core.readers.attached.holders),
            scas=self._core.tenure.shares.names,
            settled=self._core.tenure.is_settled,
        )

    async def _deliver(self, said: AsyncIterator[bytes], context: Context) -> None:
        caller = identity_of(context)
        try:
            if self._judge is None or caller is None:
                await self._delivering(said, context, caller)
            else:
                with self._judge.shares.stream(caller.name):
                    await self._delivering(said, context, caller)
        except UTupleError as error:
            await abort(context, error)

    async def _delivering(
        self, said: AsyncIterator[bytes], context: Context, caller: Identity | None
    ) -> None:
        if self._stopping:
            raise Unavailable("this sCA server stops")
        stream = self._core.open()
        try:
            session = Session(
                self._config,
                self._core,
                stream,
                cast(MessageSink, context),
                wake=self._wake,
                answer=self._answer,
                judge=self._judge,
                caller=caller,
            )
            self._sessions[stream] = session
            session.wake()
            await session.run(said)
        finally:
            self._sessions.pop(stream, None)
            self._answer(self._core.close(stream, clock.now_us()))

    # --- waiting --------------------------------------------------------------------------------------

    def wake(self, stream: Stream) -> None:
        self._wake(stream)

    def _wake(self, stream: Stream | None) -> None:
        if stream is not None and (session := self._sessions.get(stream)) is not None:
            session.wake()

    def _answer(self, rounds: Iterable[Round]) -> None:
        for round_ in rounds:
            if (event := self._waiting.get(round_)) is not None:
                event.set()

    async def _wait_for(self, round_: Round) -> None:
        """Until nothing is open, or its deadline."""
        if not round_.open:
            return
        event = self._waiting[round_] = asyncio.Event()
        try:
            while round_.open:
                left_s = round_.deadline_s - clock.monotonic_s()
                try:
                    async with asyncio.timeout(max(left_s, _SHORTEST_WAIT_S)):
                        await event.wait()
                except TimeoutError:
                    self._answer(self._core.readers.overdue(clock.monotonic_s()))
        finally:
            del self._waiting[round_]


def _nobody_is_met(name: str, infos: list[ServerInfo]) -> list[ServerInfo]:
    """Not sharing with anybody yet."""
    raise Unavailable("this sCA server is starting")
