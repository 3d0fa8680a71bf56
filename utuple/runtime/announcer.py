"""Announces a server and its lines to a few assignment managers, again and again, and learns from the
answers; the managers tell each other. Managers keep nothing on disk: this is how one that lost everything fills again.

    announcer = Announcer(["127.0.0.1:7400"], server_info, lambda: own_lines)
    async with announcer:
        announcer.now()              # a line has changed: do not wait for the next turn
        announcer.servers["sca-1"]   # what the managers know

Each manager is told by a task of its own, so a silent one delays nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Self

import grpc

from utuple.cluster.line import Line, ServerInfo
from utuple.runtime.channel import open_channel
from utuple.runtime.clock import monotonic_s
from utuple.runtime.logs import Log
from utuple.runtime.tasks import Tasks
from utuple.runtime.trust.exchange import GrantsExchange
from utuple.wire import utuple_pb2 as pb
from utuple.wire.announcing import Announcements, told
from utuple.wire.cluster import server_from_wire
from utuple.wire.utuple_pb2_grpc import AssignmentStub

ANNOUNCE_S = 2.0
"""Between two announcements: with this, a manager that lost everything is full again in seconds."""

ANSWER_S = 1.0
"""For one announcement, connecting included."""

SLOWEST_S = 4.0
"""Between two attempts at a manager that is gone: it is found again soon after it is back."""

FORGET_S = 60.0
"""A manager that was learned of, not given, and is silent for so long is no longer told."""

_log = Log("utuple.runtime.announcer")


@dataclass(slots=True, eq=False)
class _Target:
    address: str
    given: bool
    channel: grpc.aio.Channel
    silent_since_s: float
    name: str | None = None
    state: str = "new"
    failures: int = 0
    heard: pb.Heard = field(default_factory=pb.Heard)
    """Its last answer: the tokens in it say what it need not tell again."""
    grants_number: int = 1 << 62
    """Of the grants it holds; until it has said so, it is offered none."""
    retired: bool = False
    """The same manager is told under another address."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def pause_s(self) -> float:
        return min(2.0 ** max(self.failures - 1, 0), SLOWEST_S / ANNOUNCE_S)


class Announcer:
    def __init__(
        self,
        managers: Iterable[str],
        server: ServerInfo | Callable[[], ServerInfo],
        lines: Callable[[], Iterable[Line]],
        *,
        others: Callable[[], Iterable[ServerInfo]] = tuple,
        every_s: float = ANNOUNCE_S,
        grants: GrantsExchange | None = None,
    ) -> None:
        """`lines` gives the current ones each time; an sCA server has none, and says itself and of others whether they serve.
        `grants`: of a secured program."""
        self._given = list(dict.fromkeys(managers))
        self._grants = grants
        number = (lambda: grants.number) if grants is not None else (lambda: 0)
        own = server if callable(server) else lambda: server
        self._own = own
        self._announcements = Announcements(own, lines, others, number)
        self._every_s = every_s
        self._targets: dict[str, _Target] = {}
        self._servers: dict[str, ServerInfo] = {}
        self._managers: dict[str, ServerInfo] = {}
        self._told: frozenset[str] = frozenset()
        """Names of the managers to tell, once it is known who lives."""
        self._tasks = Tasks()

    async def __aenter__(self) -> Self:
        for address in self._given:
            self._add(address, given=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.close()
        for target in list(self._targets.values()):
            await self._forget(target)

    @property
    def servers(self) -> Mapping[str, ServerInfo]:
        """Every server the managers know, by name; the newest address of each."""
        return MappingProxyType(self._servers)

    @property
    def managers(self) -> Mapping[str, ServerInfo]:
        """Every manager heard of, by name."""
        return MappingProxyType(self._managers)

    def now(self) -> None:
        """Announce at once."""
        for target in self._targets.values():
            target.wake.set()

    async def tell(self) -> int:
        """Announce at once and wait for the answers; how many managers have heard."""
        told = [target for target in self._targets.values() if self._is_told(target)]
        return sum(await asyncio.gather(*map(self._tell, told)))

    # --- telling ---------------------------------------------------------------------------------

    async def _keep_telling(self, target: _Target) -> None:
        while not self._is_forgotten(target):
            target.wake.clear()
            if self._is_told(target):
                await self._tell(target)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every_s * target.pause_s):
                    await target.wake.wait()
        await self._forget(target)

    async def _forget(self, target: _Target) -> None:
        self._targets.pop(target.address, None)
        async with target.turn:
            target.retired = True
            await target.channel.close()

    async def _tell(self, target: _Target) -> bool:
        async with target.turn:
            if target.retired:
                return False
            try:
                await self._announce(target)
            except grpc.aio.AioRpcError as error:
                target.failures += 1
                refused = error.code() is grpc.StatusCode.INVALID_ARGUMENT
                reason = error.details() or error.code().name
                self._note(target, "refuses" if refused else "gone", reason)
                return False
            target.failures = 0
            target.silent_since_s = monotonic_s()
            self._note(target, "hears")
            return True

    async def _announce(self, target: _Target) -> None:
        opening = self._announcements.opening(target.heard)
        if self._grants is not None and (offered := self._grants.offer(target.grants_number)):
            opening.grants.CopyFrom(offered)
        heard = await self._say(target, opening)
        if heard.wanted:
            for portion in self._announcements.following(heard):
                await self._say(target, portion)

    async def _say(self, target: _Target, message: pb.Announcement) -> pb.Heard:
        stub = AssignmentStub(target.channel)
        heard = await stub.Announce(message, timeout=ANSWER_S, wait_for_ready=True)
        self._learn(target, heard)
        if self._grants is not None:
            target.grants_number = heard.grants_number
            self._tasks.start(self._grants.hear_if_any(heard), "grants")
        return heard

    def _note(self, target: _Target, state: str, reason: str = "") -> None:
        """One line when a manager goes and one when it is back, however long it takes."""
        before, target.state = target.state, state
        if before == state:
            return
        if state == "hears":
            _log.info("manager hears announcements", manager=target.name, address=target.address)
        else:
            _log.warning(f"manager {state}", address=target.address, reason=reason)

    # --- learning --------------------------------------------------------------------------------

    def _learn(self, target: _Target, heard: pb.Heard) -> None:
        for server in map(server_from_wire, heard.servers):
            known = self._servers.get(server.name)
            if known is None or server.since_us >= known.since_us:
                self._servers[server.name] = server
        managers = [server_from_wire(manager) for manager in heard.managers]
        if managers:
            target.name = managers[0].name  # the one that answers comes first
            self._managers.update((manager.name, manager) for manager in managers)
            self._told = told(self._own(), (manager.name for manager in managers))
            self._retire_doubles(target)
        target.heard = pb.Heard(
            servers_token=heard.servers_token, managers_token=heard.managers_token
        )
        for name in self._told:
            address = self._managers[name].address
            if address not in self._targets and not self._hears(name):
                self._add(address, given=False, name=name)

    def _hears(self, name: str) -> bool:
        return any(t.name == name and t.state == "hears" for t in self._targets.values())

    def _is_told(self, target: _Target) -> bool:
        """The few, whoever is not known yet, and as long as none of the few hears us everybody."""
        is_one_of_them = target.name is None or target.name in self._told
        return is_one_of_them or not any(map(self._hears, self._told))

    def _retire_doubles(self, target: _Target) -> None:
        """A manager may be given as localhost and be learned of as 127.0.0.1."""
        for other in self._targets.values():
            if other.name == target.name and target.given > other.given:
                other.retired = True
                other.wake.set()

    def _is_forgotten(self, target: _Target) -> bool:
        silent_s = monotonic_s() - target.silent_since_s
        return target.retired or (not target.given and silent_s > FORGET_S)

    def _add(self, address: str, *, given: bool, name: str | None = None) -> None:
        target = _Target(address, given, open_channel(address), monotonic_s(), name)
        self._targets[address] = target
        self._tasks.keep(lambda: self._keep_telling(target), f"announcing to {address}")
