"""The shell: takes calls, steps the machine, carries out what it says, and beats."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from math import inf
from random import Random
from typing import TypeVar

import grpc
from google.protobuf.message import Message

from assignment_manager.answers import Answers
from assignment_manager.config import Config
from assignment_manager.directory import Found, PassOn
from assignment_manager.gossip import Health
from assignment_manager.manager import Manager, Rumour
from assignment_manager.ring import COPIES
from assignment_manager.transport import Managers
from assignment_manager.wire import Reader, parsed, passed_on_to_wire, portions, rumour_to_wire
from utuple.cluster.line import NO_TABLE, ServerInfo
from utuple.cluster.table import Table
from utuple.errors import UTupleError
from utuple.runtime.clock import monotonic_s
from utuple.runtime.logs import Log
from utuple.runtime.tasks import Tasks
from utuple.runtime.trust.exchange import GrantsExchange
from utuple.wire import utuple_pb2 as pb
from utuple.wire.status import abort

_log = Log("assignment_manager.service")
_ANY_NUMBER = 1 << 62
"""Of a manager that has not said which grants it holds: it is offered none."""

M = TypeVar("M", bound=Message)


class Service:
    def __init__(
        self,
        config: Config,
        own: ServerInfo,
        dice: Random,
        grants: GrantsExchange | None = None,
    ) -> None:
        """`grants`: of a secured cluster."""
        self._config = config
        self._grants = grants
        self._grants_numbers: dict[str, int] = {}
        """Of the grants that other managers hold, by address, as they last said."""
        self._manager = Manager(own, config.seeds, config.timeouts, config.tokens)
        self._directory = self._manager.directory
        self._read = Reader(config)
        self._answers = Answers(self._directory)
        self._managers = Managers(config)
        self._dice = dice
        self._tasks = Tasks()
        self._outbox: dict[str, list[PassOn]] = {}
        self._health = {own.name: Health.ALIVE}
        self._unfounded_since_s = inf
        """When servers without a table were first heard of; 0: it was said."""

    def handlers(self) -> grpc.GenericRpcHandler:
        """Requests come as bytes, so that unreadable ones are refused in our words, not gRPC's."""
        return grpc.method_handlers_generic_handler(
            pb.DESCRIPTOR.services_by_name["Assignment"].full_name,
            {
                "Lookup": _handler(pb.LookupRequest, self.lookup),
                "Announce": _handler(pb.Announcement, self.announce),
                "Gossip": _handler(pb.Rumour, self.gossip),
                "Table": _handler(pb.TableRequest, self.table),
            },
        )

    # --- calls -----------------------------------------------------------------------------------

    async def lookup(self, request: pb.LookupRequest) -> pb.LookupAnswer:
        keys = self._read.keys(request)
        found = self._manager.lookup(keys)
        if found.elsewhere and not request.forwarded:
            await self._ask_elsewhere(keys, found)
            if not all(found.line):
                self._manager.forget_announced()
        return self._answers.lookup(found)

    async def announce(self, request: pb.Announcement) -> pb.Heard:
        server, lines, others = self._read.announcement(request)
        self._read.room_for(len(self._directory.peers), len(self._directory.servers))
        wanted = False
        if request.forwarded:
            self._manager.hear_passed_on(lines, others)
        elif request.opening:
            self._directory.hear_servers(others)
            wanted = self._manager.wants_lines(server, request.lines_token)
        else:
            self._directory.hear_servers(others)
            self._post(self._manager.hear_announcement(server, lines))
            if request.lines_token:
                self._manager.has_announced(server, request.lines_token)
        living = self._manager.gossip.living(monotonic_s())
        managers = [alive.manager for alive in living]
        heard = self._answers.heard(managers, wanted, request)
        await self._exchange_grants(request, heard, request.grants_number)
        return heard

    async def gossip(self, request: pb.Rumour) -> pb.Rumour:
        rumour = self._read.rumour(request)
        self._read.room_for(len(self._directory.peers), len(self._directory.servers))
        now_s = monotonic_s()
        self._post(self._manager.hear_rumour(rumour, now_s))
        answer = rumour_to_wire(self._manager.rumour(now_s, rumour.speaker, rumour))
        await self._exchange_grants(request, answer, request.grants_number)
        return answer

    async def table(self, request: pb.TableRequest) -> pb.TableAnswer:
        table = Table(self._directory.lines)
        missing = self._directory.missing()
        for at in range(0, len(missing), self._config.max_keys):
            keys = missing[at : at + self._config.max_keys]
            found = self._manager.lookup(keys)
            await self._ask_elsewhere(keys, found)
            for line in found.lines:
                table.hear(line)
        return self._answers.table(table, self._manager.manager_states(monotonic_s()))

    # --- one hop ---------------------------------------------------------------------------------

    async def _ask_elsewhere(self, keys: Sequence[int], found: Found) -> None:
        """Every key from its host; if that does not answer, or does not know, from the next holder."""
        orders = [
            (self._manager.in_asking_order(holders, monotonic_s()), positions)
            for holders, positions in found.elsewhere.items()
        ]
        for turn in range(COPIES + 1):
            asked: dict[str, list[int]] = {}
            for order, positions in orders:
                open_ = [position for position in positions if not found.line[position]]
                if open_ and turn < len(order):
                    asked.setdefault(order[turn], []).extend(open_)
            if not asked:
                return
            await asyncio.gather(
                *(self._ask(name, keys, positions, found) for name, positions in asked.items())
            )

    async def _ask(
        self, name: str, keys: Sequence[int], positions: list[int], found: Found
    ) -> None:
        address = self._manager.gossip.address(name)
        if address is None:
            return
        answer = await self._managers.lookup(address, [keys[position] for position in positions])
        if answer is None or len(answer.line) != len(positions):
            return
        try:
            lines = self._read.lines(answer.lines)
            self._directory.hear_servers(self._read.servers(answer.servers, "servers"))
        except UTupleError as error:
            _log.warning("answer of a manager refused", manager=name, reason=error)
            return
        slots = [0]
        for line in lines:
            accepted = self._directory.accept(line)
            if accepted:
                found.lines.append(line)
            slots.append(len(found.lines) if accepted else 0)
        for position, index in zip(positions, answer.line, strict=True):
            slot = slots[index] if index < len(slots) else 0
            if slot and keys[position] in found.lines[slot - 1].section:
                found.line[position] = slot

    # --- what the machine asks for ---------------------------------------------------------------

    async def run(self) -> None:
        """Beat, gossip and hand over until cancelled."""
        try:
            while True:
                now_s = monotonic_s()
                round_ = self._manager.tick(now_s, self._dice.randrange)
                self._post(round_.pass_on)
                for address in round_.gossip_with:
                    self._tasks.start(self._gossip_with(address), f"gossip with {address}")
                self._log_changes(now_s)
                known = (info.address for info in self._manager.gossip.known())
                await self._managers.keep_only([*known, *self._config.seeds])
                await asyncio.sleep(self._config.gossip_s)
        finally:
            await self._tasks.close()
            await self._managers.close()

    async def _gossip_with(self, address: str) -> None:
        heard = await self._exchange(
            address, self._manager.rumour(monotonic_s(), self._name_at(address))
        )
        if heard is None:
            return
        more = self._manager.rumour(monotonic_s(), heard.speaker, heard)
        if more.tells and heard.speaker != self._manager.gossip.own.name:
            await self._exchange(address, more)

    async def _exchange(self, address: str, rumour: Rumour) -> Rumour | None:
        message = rumour_to_wire(rumour)
        await self._exchange_grants(None, message, self._grants_numbers.get(address, _ANY_NUMBER))
        answer = await self._managers.gossip(address, message)
        if answer is None:
            return None
        if self._grants is not None:
            self._grants_numbers[address] = answer.grants_number
            await self._grants.hear_if_any(answer)
        try:
            heard = self._read.rumour(answer)
        except UTupleError as error:
            _log.warning("rumour refused", address=address, reason=error)
            return None
        self._post(self._manager.hear_rumour(heard, monotonic_s(), at=address))
        return heard

    async def _exchange_grants(
        self,
        came: pb.Announcement | pb.Rumour | None,
        goes: pb.Heard | pb.Rumour,
        their_number: int,
    ) -> None:
        """Grants ride along with what is said anyway: newer ones are taken, and given to who has older ones."""
        if self._grants is None:
            return
        if came is not None:
            await self._grants.hear_if_any(came)
        goes.grants_number = self._grants.number
        if offered := self._grants.offer(their_number):
            goes.grants.CopyFrom(offered)

    def _name_at(self, address: str) -> str | None:
        known = self._manager.gossip.known()
        return next((info.name for info in known if info.address == address), None)

    def _post(self, owed: list[PassOn]) -> None:
        """One batch at a time to each manager; the others wait their turn."""
        for batch in owed:
            waiting = self._outbox.get(batch.to)
            if waiting is None:
                self._outbox[batch.to] = [batch]
                self._tasks.start(self._deliver(batch.to), f"lines to {batch.to}")
            elif len(waiting) < self._config.max_waiting:
                waiting.append(batch)

    async def _deliver(self, to: str) -> None:
        waiting = self._outbox[to]
        try:
            while waiting:
                for batch in portions(waiting[0], self._config.max_lines):
                    address = self._manager.gossip.address(to)
                    message = passed_on_to_wire(self._manager.gossip.own, batch)
                    if address is None or not await self._managers.pass_on(address, message):
                        return  # owed again at the next gossip
                    self._directory.passed_on(batch)
                waiting.pop(0)
        finally:
            del self._outbox[to]

    def _log_changes(self, now_s: float) -> None:
        for info in self._manager.gossip.known():
            health = self._manager.gossip.health(info.name, now_s)
            if self._health.get(info.name) is not health:
                self._health[info.name] = health
                say = _log.info if health is Health.ALIVE else _log.warning
                say(f"manager {health.value}", manager=info.name, address=info.address)
        self._say_if_not_founded(now_s)
        namesake, self._manager.gossip.namesake = self._manager.gossip.namesake, None
        if namesake is not None:
            _log.warning("another manager has this name", address=namesake)

    def _say_if_not_founded(self, now_s: float) -> None:
        """Once: servers have come, and nobody has given them a table for a while."""
        names = [name for name, info in self._directory.servers.items() if info.role == "server"]
        if not names or len(self._directory.peers):
            self._unfounded_since_s = inf
        elif self._unfounded_since_s == inf:
            self._unfounded_since_s = now_s
        elif 0 < self._unfounded_since_s <= now_s - self._config.unfounded_s:
            self._unfounded_since_s = 0.0
            _log.warning("waiting", servers=",".join(sorted(names)), reason=NO_TABLE)


def _handler(
    kind: type[M], answer: Callable[[M], Awaitable[Message]]
) -> grpc.RpcMethodHandler[bytes, bytes]:
    async def behave(raw: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        try:
            return (await answer(parsed(kind, raw))).SerializeToString()
        except UTupleError as error:
            await abort(context, error)
            raise  # abort has raised already

    return grpc.unary_unary_rpc_method_handler(behave)
