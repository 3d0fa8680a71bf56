"""A secured virtual cluster: who calls is known, calls are authorised, and grants change while everything goes on (law 8).

In some seeds the cluster is secured. Its ordinary clients may do everything, and notice nothing. Beside them there is a guest, of whom
an operator thinks better and worse: grants come and go, by whichever programs the news reaches, and old documents are replayed. What is
checked at every server, at the moment it happens, by the documents that were durable there:

    registered   only what one of them allows that was in force since the call came: from when the server knows that it is durable
    delivered    only what one of them allows that was in force in the last seconds
    numbers      of what is durable never fall
    heard        everybody as who he is, whatever a door that was stolen shows (`at_doors`)
    cancelled    by another than who registered it: nothing (`rivals`)
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

from tests.virtual.coverage import FORGED, GUEST_REFUSED, GUEST_SILENCED, OLD_GRANTS, THROUGH_A_DOOR
from tests.virtual.programs.at_doors import AtDoors
from tests.virtual.programs.rivals import RIVAL, Rival
from tests.virtual.world.loop import START_US, Life
from tests.virtual.world.world import World
from utuple.errors import UTupleError
from utuple.model.packed import decode_metadata
from utuple.model.utuple import Exact, Family
from utuple.runtime.trust.auditing import Auditor
from utuple.runtime.trust.exchange import GrantsExchange, Keep
from utuple.runtime.trust.guard import Caller, Guard
from utuple.security.authority import new_authority
from utuple.security.calls import CALLS
from utuple.security.grants import Action, FamilyPattern, Grant, Grants
from utuple.security.identity import Identity, Role
from utuple.security.rights import allow
from utuple.security.signed import Signed, signed
from utuple.server.moving.notes import GRANTS, decode_grants
from utuple.wire import utuple_pb2 as pb

if TYPE_CHECKING:
    from tests.virtual.programs.cluster import Cluster

CLUSTER = "here"
OPERATOR, GUEST, HOST, CLIENTS, THIEF = "operator", "guest", "host", "clients", "thief"
VISITORS = (HOST, GUEST, THIEF, RIVAL)
SECURED = 0.4
"""Of all seeds."""
BY_DOOR = 0.5
"""Of these, in which the guest comes through a door, and another door is a thief's."""
LATE_S = 5.0
"""A revocation is in force at once where it is durable; what was decided before may still wait for the wire so long."""
IMPATIENT = 0.5
"""Of those who bring a document: they are gone before it is durable."""
FAMILY = Family("guest", "x")
_ANY = (FamilyPattern("*", "*"),)
_OWN = (FamilyPattern(*FAMILY),)
_FAR_US = 1 << 62
_PROGRAMS = ("server", "manager", "sca", "monitor")
_USER_CALLS = ("register", "command", "read", "deliver", "sca_register", "sca_command")


class _Own:
    """Credentials that nobody has to show here: the network knows who calls."""

    def __init__(self, identity: Identity, authorities_pem: tuple[str, ...]) -> None:
        self.identity = identity
        self.authorities_pem = authorities_pem

    def trust(self, choose: object) -> None:
        """All of them are trusted anyhow."""


class Trust:
    def __init__(self, world: World) -> None:
        self.world = world
        self.cluster: Cluster
        self._is_settled = False
        self._dice = world.dice("trust")
        self._authority = new_authority(CLUSTER, START_US)
        self._guards: dict[Life, Guard] = {}
        self._issued_us = 0
        """When the guest's credentials were."""
        self._numbers: dict[str, int] = {}
        """The highest that was durable, by server."""
        self._since: dict[str, list[tuple[float, int]]] = {}
        """By server, when which number came into force."""
        self.documents: dict[int, tuple[Grants, Signed]] = {}
        everything = dict.fromkeys(Action, _ANY)
        names = (HOST, OPERATOR, CLIENTS, RIVAL)
        grants = {name: Grant(name, self._role(name), everything) for name in names}
        self._doors: AtDoors | None = None
        if world.dice("doors").random() < BY_DOOR:
            rich, operator = (self._identity(name) for name in (CLIENTS, OPERATOR))
            self._doors = AtDoors(self._authority, rich, operator)
            grants[self._doors.door.name] = Grant(self._doors.door.name, Role.DOOR)
        self._publish(Grants(CLUSTER, 1, grants))

    # --- who -------------------------------------------------------------------------------------

    def _role(self, name: str) -> Role:
        if name == OPERATOR:
            return Role.OPERATOR
        is_program = name.partition("-")[0] in _PROGRAMS
        return Role.PROGRAM if is_program else Role.APPLICATION

    def identity(self, life: Life) -> Identity:
        """The clients are one: they share readers, whose names belong to the identity that made them."""
        return self._identity(CLIENTS if life.name.startswith("client-") else life.name)

    def _identity(self, name: str) -> Identity:
        issued_us = self._issued_us if name == GUEST else 0
        return Identity(CLUSTER, self._role(name), name, issued_us)

    def guarded(self, life: Life, keep: Keep | None = None) -> tuple[Guard, GrantsExchange]:
        """The guard of one life of a program."""
        own: Any = _Own(self.identity(life), (self._authority.certificate_pem.decode(),))
        guard = self._guards[life] = Guard(own, Auditor(None))
        return guard, GrantsExchange(guard, keep or _forget)

    def caller(self, place: Any, method: str, caller: Life) -> tuple[Identity, ...]:
        """What a handler is told of its caller. Raises the refusal."""
        guard, truly = self._guards[place.life], self.identity(caller)
        known, token, certificate = self._shown(caller, method, truly)
        heard = Caller(known, _FAR_US, "")
        if token or certificate:
            heard = guard.spoken_for(heard, token, certificate)
        try:
            guard.check(heard, f"/utuple.v1.{_called(place.life, method)}")
        finally:
            if caller.name == THIEF:
                self.world.count(FORGED)
        if heard.identity != (known if caller.name == THIEF and method == "lookup" else truly):
            self.world.bug(f"law 8: {place.life} hears {truly} as {heard.identity}")
        if heard.through is not None:
            self.world.count(THROUGH_A_DOOR)
        return (heard.identity,) if method in _USER_CALLS else ()

    def _shown(self, caller: Life, method: str, truly: Identity) -> tuple[Identity, str, str]:
        """Who has the connection, and what he shows on it."""
        if self._doors is not None and caller.name == THIEF:
            return self._doors.thief(method)
        if self._doors is not None and caller.name == GUEST and self._issued_us:
            return self._doors.guest()
        return truly, "", ""

    # --- documents -------------------------------------------------------------------------------

    @property
    def newest(self) -> int:
        return max(self.documents)

    def _publish(self, grants: Grants) -> None:
        self.documents[grants.number] = grants, signed(grants, self._authority)

    def _change_mind(self) -> None:
        """The guest may watch and emit; or nothing; or its credentials are void."""
        known, now_us = self.documents[self.newest][0], self.world.now_us
        mood = self._dice.choice(("all", "all", "nothing", "void"))
        if mood == "void":
            self._publish(known.revoked(GUEST, now_us))
            return
        self._issued_us = now_us
        if self._doors is not None:
            self._doors.guest_came(self._identity(GUEST))
        families = {Action.WATCH: _OWN, Action.EMIT: _OWN} if mood == "all" else {}
        self._publish(known.granted(Grant(GUEST, Role.APPLICATION, families)))

    async def operate(self) -> None:
        """Until it is settled."""
        while not self._is_settled:
            await asyncio.sleep(self._dice.uniform(2.0, 12.0))
            self._change_mind()
            await self._spread(self.newest, everywhere=self._dice.random() < 0.3)
            if self.newest > 2 and self._dice.random() < 0.5:
                self.world.count(OLD_GRANTS)
                await self._spread(self._dice.randrange(1, self.newest), everywhere=False)

    async def found(self) -> None:
        """The first document, to everybody; who misses it hears of it."""
        await self._spread(1, everywhere=True)

    def settle(self) -> None:
        """The visitors have gone, before everything else is looked at in the calm."""
        self._is_settled = True
        for name in VISITORS:
            self.cluster.processes[name].wanted = False
            self.cluster.crash(name)

    async def _spread(self, number: int, *, everywhere: bool) -> None:
        cluster = self.cluster
        names = [*cluster.servers, *cluster.managers, *cluster.scas]
        chosen = names if everywhere else self._dice.sample(names, 2)
        given = self.documents[number][1]
        message = pb.SignedGrants(content=given.content, signature=given.signature)
        self.world.trace("grants", number, "to", *chosen)
        for name in chosen:
            is_impatient = self._dice.random() < IMPATIENT
            limit_s = self._dice.uniform(0.0, 0.02) if is_impatient else 1.0
            try:
                await cluster.network.call(f"{name}:1", "publish", message, limit_s)
            except UTupleError:
                continue

    # --- what is checked -------------------------------------------------------------------------

    def durable(self, server: str) -> int:
        """The number that is durable there. It never falls."""
        disk = self.cluster.processes[server].disk
        assert disk is not None
        number = decode_grants(disk.notes.get(GRANTS))[0]
        known = self._numbers.get(server, 0)
        if number < known:
            self.world.bug(f"law 8: {server} has gone from grants {known} back to {number}")
        if number != known:
            self._numbers[server] = number
            self._since.setdefault(server, []).append((self.world.now_s, number))
        return number

    def in_force(self, server: str) -> int:
        """The number it has to judge by now: of one that is being committed it cannot know yet whether it is durable."""
        self.durable(server)
        disk = self.cluster.processes[server].disk
        assert disk is not None
        return decode_grants(disk.told.get(GRANTS))[0]

    def registered(
        self, server: str, caller: Identity, request: Any, answer: Any, numbers: Iterable[int]
    ) -> None:
        """What a server has taken from a caller, by the grants that were in force since it came."""
        refused = {row for one in answer.refusals if one.part == pb.EVENTS for row in one.rows}
        if caller.name == GUEST and refused:
            self.world.count(GUEST_REFUSED)
        for row, address in enumerate(request.events.addresses):
            if row not in refused and not answer.failure:
                family = request.events.families[0]
                asked = (Action.EMIT, Family(family.subject, family.type), Exact(address, 0))
                if not self._is_allowed(numbers, caller, *asked):
                    self.world.bug(f"law 8: {server} has registered for {caller} without a grant")

    def delivered(self, server: str, caller: Identity, message: Any) -> None:
        kind = message.WhichOneof("message")
        if kind == "not_allowed" and caller.name == GUEST:
            self.world.count(GUEST_SILENCED)
        is_server = server in self.cluster.servers
        engine = self.cluster.engine(server) if is_server else None
        if kind != "deliveries" or engine is None:
            return
        self.durable(server)
        lately = [
            number
            for number, until_s in self._in_force(server)
            if until_s >= self.world.now_s - LATE_S
        ]
        formals = message.deliveries.formals
        for at in range(0, len(formals), 16):
            stored = engine.writer.templates.get(formals[at : at + 16])
            if stored is None:
                continue
            half = stored.packed
            asked = (Action.WATCH, half.family, decode_metadata(half.metadata))
            if not self._is_allowed(lately, caller, *asked):
                self.world.bug(f"law 8: {server} delivers to {caller} without a grant")

    def _in_force(self, server: str) -> list[tuple[int, float]]:
        """Numbers, with until when."""
        since = self._since.get(server, [])
        ends = [at_s for at_s, _ in since[1:]] + [self.world.now_s]
        return [(number, end_s) for (_, number), end_s in zip(since, ends, strict=True)]

    def _is_allowed(self, numbers: Iterable[int], caller: Identity, *asked: Any) -> bool:
        documents = (self.documents[number][0] for number in numbers if number)
        return any(allow(grants, caller, *asked).is_allowed for grants in documents)


async def _forget(given: Signed, number: int) -> None:
    """Managers and sCA servers hear of them again."""


def _called(life: Life, method: str) -> str:
    """As the table of rights knows it."""
    kind = {"server": "Server", "manager": "Assignment", "sca": "Sca", "monitor": "Monitor"}
    name = "".join(part.capitalize() for part in method.removeprefix("sca_").split("_"))
    found = f"{kind[life.name.partition('-')[0]]}/{name}"
    return found if found in CALLS else f"Trust/{name}"


def trust_of(world: World) -> Trust | None:
    """In some seeds."""
    return Trust(world) if world.dice("secured").random() < SECURED else None


class Guest:
    """One who watches and emits as long as he may, and comes again when he may not; a host who keeps him busy; and a thief."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._numbers = count(1)
        cluster.add(GUEST, self._be_guest)
        cluster.add(HOST, self._be_host)
        cluster.add(THIEF, self._be_thief)
        Rival(cluster)

    def _space(self, life: Life) -> Any:
        from tests.virtual.programs.clients import CONFIG
        from tests.virtual.world.transport import VirtualTransport
        from utuple.client.parts import put_together
        from utuple.client.space import Space
        from utuple.runtime.clock import now_us

        network, dice = self._cluster.network, self._cluster.world.dice(str(life))
        managers = self._cluster.manager_addresses
        config = replace(CONFIG, timeout_s=8.0)
        transport = VirtualTransport(network)
        return Space(put_together(managers, config, transport, dice, now_us, life.name))

    async def _be_host(self, life: Life) -> None:
        await self._emit(self._space(life), "host")

    async def _be_thief(self, life: Life) -> None:
        """Where there is a door to steal; elsewhere he has nothing to show, and is one without a grant."""
        await self._emit(self._space(life), "thief")

    async def _be_guest(self, life: Life) -> None:
        space = self._space(life)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._emit(space, "guest"))
            tasks.create_task(self._watch(space))

    async def _emit(self, space: Any, address: str) -> None:
        while True:
            await asyncio.sleep(1.0)
            event = {"subject": FAMILY.subject, "type": FAMILY.type, "address": address}
            try:
                await space.emit(**event, data={"n": next(self._numbers)}, lifetime_s=30.0)
            except UTupleError:
                continue

    async def _watch(self, space: Any) -> None:
        while True:
            await asyncio.sleep(1.0)
            try:
                async with space.watch(subject=FAMILY.subject, type=FAMILY.type) as events:
                    async for _ in events:
                        pass
            except UTupleError:
                continue
