"""What another identity may do with an id that it knows: nothing (law 8). Two who may do everything, at one server."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from types import SimpleNamespace

import pytest

from sca_server.judging import ScaJudge
from sca_server.shares import ScaShareLimits, ScaShares
from tests.unit.server.calls.test_deliver_stream import Sink
from tests.unit.server.writing.test_engine import FAMILY, LIMIT_S, engine_on
from utuple.errors import Conflict, InvalidInput, NotAllowed, Overloaded
from utuple.model.columns import columns_of
from utuple.model.condition import Equal
from utuple.model.identity import named_id
from utuple.model.packed import packed
from utuple.model.terms import Terms, respond_within
from utuple.model.utuple import Exact, Template, UTuple
from utuple.security.grants import Action, FamilyPattern, Grant, Grants
from utuple.security.identity import Identity, Role
from utuple.server.calls.handlers import ServerCalls
from utuple.server.calls.intake import asked_rows
from utuple.server.judging import Judge
from utuple.server.sharing import FairShares, ShareLimits
from utuple.store.memory import MemoryStore
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import columns_to_wire, templates_to_wire

ALICE, BOB = (Identity("here", Role.APPLICATION, name) for name in ("alice", "bob"))
OPERATOR = Identity("here", Role.OPERATOR, "operator")
_ALL = dict.fromkeys(Action, (FamilyPattern("*", "*"),))
GRANTS = Grants("here").granted(Grant("operator", Role.OPERATOR, _ALL))
for one in (ALICE, BOB):
    GRANTS = GRANTS.granted(Grant(one.name, one.role, _ALL))
ID, OTHER = b"i" * 16, b"o" * 16
EPOCHS = {FAMILY: 1}


class Served:
    """One server, and its audit; started again, nothing is in memory that need not be."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.refused: Counter[tuple[str, str, str]] = Counter()

    async def start(self) -> None:
        self.engine = await engine_on(self.store)
        self.engine.judge = Judge(SimpleNamespace(grants=GRANTS), self._count)
        self.calls = ServerCalls(self.engine, "here")

    def _count(self, who: str, what: str, why: str) -> None:
        self.refused[who, what, why] += 1

    async def again(self) -> None:
        await self.engine.stop()
        await self.start()

    async def register(self, caller: Identity, **parts: object) -> list[str]:
        """Why what was refused was."""
        asked = pb.RegisterRequest(**parts)  # type: ignore[arg-type]
        async with asyncio.timeout(LIMIT_S):
            answer = await self.calls.register(asked, caller=caller)
        return [refusal.rule or pb.Reason.Name(refusal.reason) for refusal in answer.refusals]

    async def cancel(self, caller: Identity, id_: bytes = ID) -> list[str]:
        family = pb.Family(subject=FAMILY.subject, type=FAMILY.type, epoch=1)
        return await self.register(caller, cancels=[pb.Cancel(id=id_, family=family)])

    async def command(self, caller: Identity, sent: UTuple) -> pb.CommandAnswer:
        asked = pb.CommandRequest(command=templates_to_wire([packed(sent)], epochs=EPOCHS))
        async with asyncio.timeout(LIMIT_S):
            return await self.calls.command(asked, caller)

    async def say(self, caller: Identity, *said: pb.FromReader) -> list[pb.ToReader]:
        """On one stream, and goodbye; what was answered."""
        sink = Sink()

        async def messages() -> AsyncIterator[pb.FromReader]:
            for one in said:
                yield one

        async with asyncio.timeout(LIMIT_S):
            await self.calls.deliver(messages(), sink, caller)
        return sink.sent

    async def devices(self) -> dict[bytes, str]:
        """Stored CFs, with their addresses."""
        known = await self.store.known_devices([ID, OTHER])
        return {id_: one.address for id_, one in known.items()}


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    made = Served()
    await made.start()
    yield made
    await made.engine.stop()


def cf(address: str = "a", id_: bytes = ID) -> dict[str, pb.Columns]:
    device = UTuple(id_, FAMILY, Exact(address, 1), None, {}, 60, "r")
    return {"devices": columns_to_wire(columns_of([device]), EPOCHS)}


def ef(id_: bytes = ID, terms: Terms | None = None) -> dict[str, pb.Templates]:
    formal = UTuple(id_, FAMILY, Template(), None, {}, 60, "r", terms)
    return {"templates": templates_to_wire([packed(formal)], epochs=EPOCHS)}


def ca(data: str = "on", lifetime_s: float = 60.0, address: str = "") -> UTuple:
    place = Template(Equal(address)) if address else Template()
    return UTuple(ID, FAMILY, place, {"say": data}, None, lifetime_s)


async def test_a_stored_cf_is_cancelled_by_its_owner_and_by_operators_alone(served: Served) -> None:
    for by in (ALICE, OPERATOR):
        assert await served.register(ALICE, **cf()) == []
        await served.again()  # it is in the store alone
        why = "the reader alice/r belongs to alice, not to bob (application)"
        assert await served.cancel(BOB) == [why]
        assert await served.devices() == {ID: "a"}
        assert await served.cancel(by) == []
        assert await served.devices() == {}
    assert served.refused == {(BOB.uri, "cancels", "NotAllowed"): 2}


async def test_a_cf_is_not_replaced_by_one_that_another_registers_under_its_id(
    served: Served,
) -> None:
    assert await served.register(ALICE, **cf("a")) == []
    await served.again()
    [why] = await served.register(BOB, **cf("b"))
    assert "belongs to alice" in why
    assert await served.devices() == {ID: "a"}
    assert await served.register(ALICE, **cf("a2")) == []
    assert await served.devices() == {ID: "a2"}


async def test_nobody_comes_first_under_the_id_of_another_s_named_reader(served: Served) -> None:
    """Everybody can know it beforehand."""
    hers = named_id(UTuple(OTHER, FAMILY, Template(), None, {}, 60, "r"), ALICE.name)
    his = named_id(UTuple(OTHER, FAMILY, Template(), None, {}, 60, "r"), BOB.name)
    for what in (ef, cf):
        [why] = await served.register(BOB, **what(id_=hers))
        assert "of somebody else, not of bob (application)" in why
    with pytest.raises(NotAllowed, match="of somebody else"):
        await served.command(BOB, replace(ca(), id=hers))
    assert served.refused.total() == 3
    assert await served.register(ALICE, **ef(hers)) == []
    assert await served.register(BOB, **ef(his)) == [], "the same name and reading, of another"


def test_nor_at_an_sca_server() -> None:
    refused: list[str] = []
    shares = ScaShares(ScaShareLimits(), lambda _: 0)
    holder = SimpleNamespace(grants=GRANTS)
    judge = ScaJudge(holder, lambda who, what, why: refused.append(who), shares)
    device = UTuple(OTHER, FAMILY, Exact("a", 1), None, {}, 60, "r")
    hers, his = (replace(device, id=named_id(device, one.name)) for one in (ALICE, BOB))
    _, [(row, why)] = judge.devices(columns_of([his, hers, device]), BOB)
    assert row == 1 and "of somebody else" in str(why)
    assert refused == [BOB.uri]


def test_how_many_it_carries_is_known_before_a_request_is_decoded() -> None:
    family = pb.Family(subject=FAMILY.subject, type=FAMILY.type, epoch=1)
    cancels = [pb.Cancel(id=ID, family=family)] * 4
    devices, templates = cf()["devices"], ef()["templates"]
    request = pb.RegisterRequest(
        events=devices, devices=devices, templates=templates, cancels=cancels
    )
    assert asked_rows(request) == 1 + 1 + 1 + 4
    assert asked_rows(pb.RegisterRequest()) == 0


async def test_of_two_who_come_at_once_under_one_id_the_first_has_it(served: Served) -> None:
    calls = [served.register(who, **cf(who.name)) for who in (ALICE, BOB)]
    first, second = await asyncio.gather(*calls)
    assert (first, len(second)) == ([], 1)
    assert await served.devices() == {ID: "alice"}


async def test_an_id_has_one_owner_whatever_is_kept_under_it(served: Served) -> None:
    """Deliveries are kept by id: with a formal of another kind under it one could take the place of its reader."""
    assert await served.register(ALICE, **cf()) == []
    assert await served.register(ALICE, **ef(OTHER)) == []
    await served.again()
    [why] = await served.register(BOB, **ef(ID))
    assert "belongs to alice" in why
    [why] = await served.register(BOB, **cf("b", OTHER))
    assert "belongs to alice" in why
    answer = await served.command(BOB, ca())
    assert [one.reason for one in answer.refusals] == [pb.NOT_ALLOWED]
    assert served.refused[BOB.uri, "templates", "NotAllowed"] == 2


async def test_a_stored_ca_belongs_to_who_gave_it(served: Served) -> None:
    assert not (await served.command(ALICE, ca())).refusals
    await served.again()
    assert await served.cancel(BOB) == ["this command belongs to alice, not to bob (application)"]
    answer = await served.command(BOB, ca())  # the same, which would live on
    assert [one.reason for one in answer.refusals] == [pb.NOT_ALLOWED]
    with pytest.raises(NotAllowed, match="belongs to alice"):
        await served.calls.commanded(pb.CommandedRequest(id=ID), BOB)
    for who in (ALICE, OPERATOR):
        shown = await served.calls.commanded(pb.CommandedRequest(id=ID), who)
        assert shown.known and list(shown.command.readers) == [""]
    assert not (await served.command(ALICE, ca())).refusals
    assert await served.cancel(ALICE) == []
    assert not (await served.calls.commanded(pb.CommandedRequest(id=ID), ALICE)).known


async def test_a_command_from_before_commands_had_owners_is_known_again_by_what_it_says(
    served: Served,
) -> None:
    judge, served.engine.judge = served.engine.judge, None
    assert not (await served.command(ALICE, ca())).refusals
    served.engine.judge = judge
    await served.again()
    assert not (await served.command(ALICE, ca())).refusals
    assert await served.cancel(ALICE) == [
        "this command belongs to nobody, not to alice (application)"
    ]
    assert await served.cancel(OPERATOR) == []


@pytest.mark.parametrize("other", [ca("off", 0.0), ca("on", 0.0, "b")], ids=["data", "devices"])
async def test_what_comes_under_the_id_of_another_command_does_not_go_to_its_devices(
    served: Served, other: UTuple
) -> None:
    """One of lifetime 0 is not stored: that its devices are remembered must not make them somebody else's."""
    await served.register(ALICE, **cf("a", OTHER))
    first = await served.command(ALICE, ca("on", 0.0))
    assert [device.address for device in first.devices] == ["a"]
    for who, sent in ((BOB, ca("on", 0.0)), (BOB, other), (ALICE, other)):
        with pytest.raises(Conflict, match="of another command"):
            await served.command(who, sent)
    again = await served.command(ALICE, ca("on", 0.0))
    assert [device.address for device in again.devices] == ["a"]


async def test_nobody_acknowledges_for_a_device_of_another_that_is_away(served: Served) -> None:
    """Its stored commands would never come to it."""
    await served.register(ALICE, **cf("a", OTHER))
    await served.command(ALICE, ca())
    await served.again()
    seqs = served.engine.delivering.cursors.committed.to_bytes(8, "little")
    await served.say(BOB, pb.FromReader(acknowledge=pb.Acknowledge(formals=OTHER, seqs=seqs)))
    assert served.engine.delivering.cursors.acknowledged(OTHER) == 0
    attach = pb.FromReader(attach=pb.Attach(id=OTHER, device=True, window=10))
    got = await served.say(ALICE, attach)
    assert [one.deliveries.columns.ids for one in got if one.HasField("deliveries")] == [ID]
    await served.again()
    acknowledged = pb.FromReader(acknowledge=pb.Acknowledge(formals=OTHER, seqs=seqs))
    await served.say(ALICE, attach, acknowledged)
    assert served.engine.delivering.cursors.acknowledged(OTHER) > 0


async def test_nobody_confirms_for_a_device_of_another_that_is_away(served: Served) -> None:
    await served.register(ALICE, **cf("a", OTHER))
    await served.command(ALICE, ca())
    await served.again()
    handover = served.engine.delivering.commands.handovers.expect(ID)
    confirm = pb.FromReader(confirm=pb.Confirm(formals=OTHER, commands=ID))
    await served.say(BOB, confirm)
    assert handover.have_it == set()
    attach = pb.FromReader(attach=pb.Attach(id=OTHER, device=True, window=10))
    await served.say(ALICE, attach, confirm)
    assert handover.have_it == {OTHER}


@pytest.mark.parametrize(
    "said",
    [
        pb.FromReader(taken=pb.Taken(id=ID, count=1, pace=pb.Pace(service_per_s=9.0))),
        pb.FromReader(detach=pb.Detach(id=ID, pace=pb.Pace(service_per_s=9.0))),
    ],
    ids=["taken", "detach"],
)
async def test_nobody_tells_how_fast_the_reader_of_another_is(
    served: Served, said: pb.FromReader
) -> None:
    """What of its matches is dropped depends on that."""
    await served.register(ALICE, **ef(terms=Terms(absent=respond_within(60.0))))
    attach = pb.FromReader(attach=pb.Attach(id=ID, window=10))
    await served.say(ALICE, attach)
    presence = served.engine.delivering.away.presence[ID]
    with pytest.raises(NotAllowed, match="belongs to alice"):
        await served.say(BOB, said)
    assert presence.service_per_s != 9.0
    await served.say(ALICE, attach, said)
    assert presence.service_per_s == 9.0


@pytest.mark.parametrize(
    ("limits", "sent", "why"),
    [
        (ShareLimits(share_payload_bytes=5), ca(), "share_payload_bytes"),
        (ShareLimits(share_lifetime_s=30.0), ca(), "share_lifetime_s"),
    ],
    ids=["payload", "lifetime"],
)
async def test_a_command_keeps_to_what_one_call_may_be(
    served: Served, limits: ShareLimits, sent: UTuple, why: str
) -> None:
    assert served.engine.judge is not None
    served.engine.judge.shares = FairShares(limits, lambda _: True)
    with pytest.raises(InvalidInput, match=why):
        await served.command(ALICE, sent)


async def test_commands_count_against_the_share_of_who_gives_them(served: Served) -> None:
    assert served.engine.judge is not None
    served.engine.judge.shares = FairShares(ShareLimits(share_efs=1), lambda _: True)
    await served.command(ALICE, ca())
    await served.command(ALICE, ca())  # the same, which is kept once
    with pytest.raises(Overloaded, match="share_efs is 1"):
        await served.command(ALICE, replace(ca(), id=OTHER))
    await served.command(BOB, replace(ca(), id=OTHER))
    few = ShareLimits(share_registrations_per_s=0.001)
    served.engine.judge.shares = FairShares(few, lambda _: True)
    await served.command(ALICE, ca())
    with pytest.raises(Overloaded, match="share_registrations_per_s"):
        await served.command(ALICE, ca())


async def test_a_read_keeps_to_what_one_template_may_ask(served: Served) -> None:
    assert served.engine.judge is not None
    served.engine.judge.shares = FairShares(ShareLimits(share_conditions=1), lambda _: True)

    async def read(**where: object) -> int:
        asked = UTuple(ID, FAMILY, Template(), None, {name: Equal(1) for name in where}, 0.0)
        message = templates_to_wire([packed(asked)], epochs=EPOCHS)
        return len(
            [one async for one in served.calls.read(pb.ReadRequest(template=message), ALICE)]
        )

    assert await read(a=1) == 1
    with pytest.raises(InvalidInput, match="share_conditions"):
        await read(a=1, b=1)
