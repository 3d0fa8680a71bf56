"""Calls to the sCA servers: devices made known there, and simple commands, gathered into calls.

One command and many go the same way: a slice of columns, which shares a call with what else is waiting.

With several sCA servers each has its share of the devices, and shares move when one comes, leaves or dies. A server hands over
what it is sure of; what it cannot speak for it gives back as *moving*, with the servers it knows, and that is sent again, to
whom it belongs by then. An answer that was lost may have been a hand-over, so what follows it never denies that: a device that
is not connected at the next attempt may have got the command at the first.
"""

from __future__ import annotations

import asyncio
import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from utuple.client.parts import Parts
from utuple.client.routing.outcome import raise_refusals, refused
from utuple.client.routing.retry import Tries
from utuple.client.sending.cut_short import CutShort
from utuple.client.sending.outages import Outages
from utuple.client.sending.receipt import Handovers
from utuple.client.sending.rows import Commands
from utuple.client.sending.send_queue import SendBatch, SendQueue
from utuple.cluster.line import NO_SCA
from utuple.cluster.shares import Shares
from utuple.errors import Closed, NotRegistered, OutcomeUnknown, Refused, Unavailable, UTupleError
from utuple.model.columns import MICROSECONDS, columns_of
from utuple.model.condition import Equal
from utuple.model.key import key_of
from utuple.model.utuple import Exact, Family, UTuple
from utuple.model.value import encode_data
from utuple.runtime.logs import Log
from utuple.runtime.tasks import Tasks
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import columns_to_wire, family_to_wire, pack

_log = Log("utuple.client.sending.simple_commands")
_COMMAND_BYTES = 100
_NOT_CONNECTED, _NOT_CONFIRMED = bytes([pb.NOT_CONNECTED]), bytes([pb.NOT_CONFIRMED])
_IMMEDIATE = 3
"""Times in a row that commands follow newer servers at once; if those change faster, they are given time."""


@dataclass(frozen=True, slots=True)
class CommandsOutcome:
    """What became of a slice: whom its commands met, and who was refused."""

    handovers: Handovers
    refused: Mapping[int, Refused]
    moving: Sequence[int] = ()
    """Rows that were not handed over, and are to be sent again."""
    reason: str = ""
    """Why."""

    def denying_nothing(self) -> CommandsOutcome:
        """After an answer was lost: who is not connected now may have it nevertheless."""
        met = self.handovers
        handed = met.handed.replace(_NOT_CONNECTED, _NOT_CONFIRMED)
        return replace(self, handovers=replace(met, handed=handed))


@dataclass(slots=True, eq=False)
class Slice:
    """Simple commands on their way to one sCA server."""

    commands: Commands
    sent: bool = False
    may_go_elsewhere: bool = False
    send_by_s: float = math.inf
    answer: asyncio.Future[CommandsOutcome] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    @property
    def rows(self) -> int:
        return len(self.commands.addresses)

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.commands.payloads)) + _COMMAND_BYTES * self.rows

    def joins(self, shared: dict[object, object]) -> bool:
        return True


class ScaCalls:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._queues: dict[str, SendQueue[Slice]] = {}
        self._registering = Tasks()
        self._cut = CutShort()
        self._outages = Outages(parts.config.stuck_s)
        parts.lines.listen_to_scas(self._outages.end_all)
        self._closed = False

    async def shares(self, family: Family, deadline_s: float) -> Shares:
        """Of the sCA servers there are."""
        lines = self._parts.lines
        if not lines.scas.names:
            await lines.look_up(key_of(*family), deadline_s)
        if not lines.scas.names:
            raise Unavailable(NO_SCA)
        return lines.scas

    def owner(self, device: UTuple) -> str | None:
        """The sCA server this CF belongs to, as far as is known."""
        assert isinstance(device.metadata, Exact)
        scas = self._parts.lines.scas
        return scas.owner(device.family, device.metadata.address) if scas.names else None

    async def register(self, device: UTuple, tries: Tries, visited: set[str]) -> str:
        """Make this CF known; the sCA server that has it. One that does not only checks it, and says whose it is. `visited`
        hears of every sCA server that may have it."""
        request = pb.ScaRegisterRequest(devices=columns_to_wire(columns_of([device])))
        while True:
            try:
                await self.shares(device.family, tries.deadline_s)
                name = self.owner(device)
                assert name is not None
                left_s = max(0.0, tries.deadline_s - asyncio.get_running_loop().time())
                visited.add(name)
                answer = await self._register_at(name, device, request, left_s)
                raise_refusals(list(answer.refusals))
                self._parts.lines.hear((), answer.servers)
                if not answer.servers:
                    return name
                raise Unavailable("the sCA servers do not agree yet whose the device is")
            except (NotRegistered, OutcomeUnknown, Closed) as error:
                if not tries.failed:
                    _log.warning("waiting for an sCA server", reason=error)
                self._parts.lines.refresh(key_of(*device.family))
                tries = await self._parts.retrier.next_attempt(tries, error, {})

    async def _register_at(
        self, name: str, device: UTuple, request: pb.ScaRegisterRequest, limit_s: float
    ) -> pb.ScaRegisterAnswer:
        """The call goes on though its caller is cancelled: `forget` has to know when it is over."""
        call = self._registering.start(self._answer(name, request, limit_s), "a device's CF")
        try:
            found = await asyncio.shield(call)
        except asyncio.CancelledError:
            self._cut.note([device.id], call)
            raise
        if isinstance(found, UTupleError):
            raise found
        return found

    async def _answer(
        self, name: str, request: pb.ScaRegisterRequest, limit_s: float
    ) -> pb.ScaRegisterAnswer | UTupleError:
        try:
            address = self._parts.lines.address_of(name)
            return await self._parts.transport.sca_register(address, request, limit_s)
        except UTupleError as error:
            return error

    async def settled(self, device: UTuple, limit_s: float) -> None:
        """Until every registration of this CF that was cut short has been answered or has failed, or for so long."""
        await self._cut.settled(device.id, limit_s)

    async def forget(self, device: UTuple, servers: Iterable[str]) -> None:
        """These sCA servers may have the CF, and nobody serves it."""
        request = pb.ScaRegisterRequest(cancels=[device.id])
        limit_s = self._parts.config.detach_s
        for name in servers:
            found = await self._answer(name, request, limit_s)
            if isinstance(found, UTupleError):
                _log.warning("a device is not forgotten", server=name, reason=found)

    async def command(
        self, command: UTuple, tries: Tries, pending: object
    ) -> Sequence[pb.Handover]:
        """The devices it met."""
        commands = one_command(command)
        met = await self.carry(commands, tries, pending)
        for refusal in met.refused.values():
            raise refusal
        return met.handovers.of(0, commands.addresses[0])

    async def carry(self, commands: Commands, tries: Tries, pending: object) -> CommandsOutcome:
        """All of them, each to the sCA server its device belongs to: looked at anew with every attempt. Sent
        again until the time is over; a device drops what it has."""
        own = object()
        try:
            return await self._carry(commands, tries, pending, own)
        finally:
            self._outages.leave(own)

    async def _carry(
        self, commands: Commands, tries: Tries, pending: object, own: object
    ) -> CommandsOutcome:
        lines, followed = self._parts.lines, 0
        found: CommandsOutcome | None = None
        parts: Mapping[str, list[int]] = {}
        while True:
            try:
                shares = await self.shares(commands.families[0], tries.deadline_s)
                parts = by_server(commands, shares)
                if len(parts) > 1:
                    found = None
                    break
                server = next(iter(parts))
                if await self._outages.others_knock(server, own, tries.deadline_s):
                    continue
                with self._outages.attempt(server, own):
                    found = await self._sent(self._queue(server), commands, tries)
                if not found.moving:
                    return found
                if len(found.moving) < len(commands.addresses):
                    break
                if lines.scas != shares and followed < _IMMEDIATE:
                    followed += 1
                    continue
                raise Unavailable(found.reason)
            except (NotRegistered, OutcomeUnknown, Closed) as error:
                lines.refresh(key_of(*commands.families[0]))
                tries = await self._parts.retrier.next_attempt(tries, error, {}, pending=pending)
        if found is not None:
            return await self._carry_rest(commands, found, tries, pending)
        return await self._carry_parts(commands, list(parts.values()), tries, pending)

    async def _sent(
        self, queue: SendQueue[Slice], commands: Commands, tries: Tries
    ) -> CommandsOutcome:
        found: CommandsOutcome = await queue.send(Slice(commands), tries.deadline_s)
        return found.denying_nothing() if tries.retry else found

    async def _carry_parts(
        self, commands: Commands, split: Sequence[Sequence[int]], tries: Tries, pending: object
    ) -> CommandsOutcome:
        parts = (self.carry(commands.take(rows), tries, pending) for rows in split)
        met = await asyncio.gather(*parts, return_exceptions=True)
        failed = [one for one in met if isinstance(one, BaseException)]
        if failed:
            raise _verdict(failed, everything=len(failed) == len(met), pending=pending)
        return joined(split, [one for one in met if isinstance(one, CommandsOutcome)])

    async def _carry_rest(
        self, commands: Commands, found: CommandsOutcome, tries: Tries, pending: object
    ) -> CommandsOutcome:
        """Some were answered, the others are moving."""
        rest = found.moving
        try:
            error = Unavailable(found.reason)
            tries = await self._parts.retrier.next_attempt(tries, error, {}, pending=pending)
            met = await self.carry(commands.take(rest), tries, pending)
        except UTupleError as error:
            raise _verdict([error], everything=False, pending=pending) from None
        return joined([range(len(commands.addresses)), rest], [found, met])

    def _queue(self, server: str) -> SendQueue[Slice]:
        if self._closed:
            raise Closed("this space is closed")
        queue = self._queues.get(server)
        if queue is None:
            config = self._parts.config
            queue = self._queues[server] = SendQueue(
                server, self._call_to(server), config, config.command_calls_in_flight
            )
        return queue

    def _call_to(self, server: str) -> SendBatch[Slice]:
        async def carry(slices: Sequence[Slice]) -> None:
            config = self._parts.config
            request = request_of(slices, round(config.confirm_s * MICROSECONDS))
            answer = await self._parts.transport.sca_command(
                self._parts.lines.address_of(server), request, config.command_s
            )
            self._parts.lines.hear((), answer.servers)
            distribute(slices, answer)

        return carry

    async def close(self) -> None:
        self._closed = True
        await asyncio.gather(*(queue.close() for queue in self._queues.values()))
        if self._registering:  # an answer is better to have than that nobody knows
            await asyncio.wait(list(self._registering), timeout=self._parts.config.detach_s)
        await self._registering.close()


def by_server(commands: Commands, shares: Shares) -> dict[str, list[int]]:
    """The rows of each sCA server; no rows named: all are its."""
    if len(shares.names) == 1:
        return {shares.names[0]: []}
    found: dict[str, list[int]] = {}
    for row, address in enumerate(commands.addresses):
        found.setdefault(shares.owner(_family(commands, row), address), []).append(row)
    return found


def _verdict(
    failed: Sequence[BaseException], *, everything: bool, pending: object
) -> BaseException:
    """One error for a slice whose parts fared differently: what was handed over must not be called "not registered"."""
    for error in failed:
        if not isinstance(error, NotRegistered):
            return error
    if everything:
        return failed[0]
    said = f"some of the commands may have been handed over: {failed[0]}"
    return OutcomeUnknown(said, pending=pending)


def joined(split: Sequence[Sequence[int]], met: Sequence[CommandsOutcome]) -> CommandsOutcome:
    """What the parts of a slice met, in the rows of the slice."""
    pairs = list(zip(split, met, strict=True))
    found = sorted(
        (rows[row], id_, handed) for rows, one in pairs for row, id_, handed in one.handovers
    )
    return CommandsOutcome(
        Handovers(
            [row for row, _, _ in found],
            b"".join([id_ for _, id_, _ in found]),
            bytes([handed for _, _, handed in found]),
        ),
        {rows[row]: error for rows, one in pairs for row, error in one.refused.items()},
    )


def request_of(slices: Sequence[Slice], confirm_us: int) -> pb.SimpleCommands:
    numbers: dict[Family, int] = {}
    which = array("I")
    for one in slices:
        own = [numbers.setdefault(family, len(numbers)) for family in one.commands.families]
        which.extend(map(own.__getitem__, one.commands.family))
    return pb.SimpleCommands(
        families=[family_to_wire(family) for family in numbers],
        family=pack(which),
        ids=b"".join([one.commands.ids for one in slices]),
        addresses=[address for one in slices for address in one.commands.addresses],
        payloads=[payload for one in slices for payload in one.commands.payloads],
        confirm_us=confirm_us,
    )


def distribute(slices: Sequence[Slice], answer: pb.SimpleReceipts) -> None:
    """Each slice its own. The server answers row by row in their order."""
    met = Handovers(list(answer.rows), answer.ids, answer.handed)
    wrong = {row: refused(refusal) for refusal in answer.refusals for row in refusal.rows}
    moving = sorted(answer.moving)
    first = 0
    for one in slices:
        end = first + one.rows
        if not one.answer.done():
            own_wrong = {row - first: error for row, error in wrong.items() if first <= row < end}
            begin, stop = bisect_left(moving, first), bisect_left(moving, end)
            own_moving = [row - first for row in moving[begin:stop]]
            outcome = CommandsOutcome(met.between(first, end), own_wrong, own_moving, answer.reason)
            one.answer.set_result(outcome)
        first = end


def one_command(command: UTuple) -> Commands:
    address = getattr(command.metadata, "address", None)
    assert isinstance(address, Equal)
    return Commands(
        (command.family,),
        array("I", [0]),
        command.id,
        [address.value],
        [encode_data(command.data or {})],
    )


def _family(commands: Commands, row: int) -> Family:
    return commands.families[commands.family[row]]
