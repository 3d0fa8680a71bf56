"""Moves of load between real engines on in-memory stores, one kind after another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.twins.servers import Servers
from tests.unit.server.outboxes import next_in
from utuple.cluster.line import Line, Member
from utuple.cluster.move import Move, MoveKind, merge_of
from utuple.cluster.record import MoveStep
from utuple.errors import Unavailable
from utuple.model.columns import columns_of
from utuple.model.key import HASH_SPACE, key_of
from utuple.model.packed import packed
from utuple.model.section import Section
from utuple.model.utuple import Exact, Family, Template, UTuple
from utuple.server.moving.steps import Forget, Outcome, Step
from utuple.server.writing.engine import Engine
from utuple.server.writing.request import Answer, Reason, Request
from utuple.store.contract import Search, StoreUnavailable
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import move_to_wire

FAMILY = Family("truck", "load")
KEY = key_of(*FAMILY)
WHOLE = Section(0, HASH_SPACE)


def ea(number: int, lifetime_s: float = 600) -> UTuple:
    id_ = number.to_bytes(16, "big")
    return UTuple(id_, FAMILY, Exact("t1", number), {"n": number}, None, lifetime_s)


def cf(number: int) -> UTuple:
    id_ = number.to_bytes(16, "big")
    return UTuple(id_, FAMILY, Exact("t1", number), None, {}, 600, "d")


def ef(number: int) -> UTuple:
    return UTuple(number.to_bytes(16, "big"), FAMILY, Template(), None, {}, 600, "r")


def ca(number: int) -> UTuple:
    return UTuple(number.to_bytes(16, "big"), FAMILY, Template(), {}, None, 600)


async def emit(engine: Engine, epoch: int, *numbers: int) -> Answer:
    return await engine.register(
        Request(events=columns_of(map(ea, numbers)), epochs={FAMILY: epoch})
    )


async def template(engine: Engine, epoch: int, utuple: UTuple) -> Answer:
    return await engine.register(Request(templates=[(0, packed(utuple))], epochs={FAMILY: epoch}))


async def stored(engine: Engine, origin: str = "") -> list[int]:
    search = Search(ef(1), 0, 1 << 40, 0, origin=origin)
    found = [batch async for batch in engine.store.search(search)]
    return [int.from_bytes(id_, "big") for batch in found for id_ in batch.columns.each_id()]


def line_at(engine: Engine) -> Line:
    line = engine.writer.lines.line_of(KEY)
    assert line is not None
    return line


def order(kind: MoveKind, epoch: int, member: str, helper: str = "", key: int = 0) -> Move:
    return Move(kind, WHOLE, epoch, member, helper, key)


@pytest.fixture
async def servers() -> AsyncIterator[Servers]:
    made = Servers()
    await made.start("a", Line(WHOLE, 1, (Member("a"),)))
    await made.start("b")
    await made.start("c")
    yield made
    await made.stop()


async def test_help_teaches_the_helper_and_changes_the_epoch(servers: Servers) -> None:
    a, b = servers.engines["a"], servers.engines["b"]
    await template(a, 1, ef(100))
    await template(a, 1, ca(200))
    record = await servers.make("a", order(MoveKind.HELP_PROCESSING, 1, "a", "b"))
    assert record.copied == 2
    assert str(line_at(a)) == str(line_at(b)) and line_at(b).epoch == 2
    assert line_at(b).accumulatable == ("a", "b")
    assert set(b.writer.templates) == {ef(100).id, ca(200).id}
    assert not (await emit(b, 2, 1)).refusals
    old = await emit(a, 1, 2)
    assert [refusal.reason for refusal in old.refusals] == [Reason.STALE]
    assert [line.epoch for line in old.lines] == [2]


async def test_a_helper_serves_nothing_before_the_commit(servers: Servers) -> None:
    a, b = servers.engines["a"], servers.engines["b"]
    servers.wires.before["ready"] = asyncio.Event()
    move = await servers.order("a", order(MoveKind.HELP_PROCESSING, 1, "a", "b"))
    await servers.called("b", "ready")
    assert [r.reason for r in (await emit(b, 2, 1)).refusals] == [Reason.NOT_SERVED]
    assert not (await emit(a, 1, 2)).refusals, "EAs never stop"
    servers.wires.before["ready"].set()
    assert (await servers.ended("a", move)).step is MoveStep.DONE


async def second_cut(servers: Servers) -> bytes:
    """A help whose first cut, made without a hold, was too early; it waits before the second."""
    servers.wires.before["ready"] = asyncio.Event()
    move = await servers.order("a", order(MoveKind.HELP_PROCESSING, 1, "a", "b"))
    await servers.called("b", "ready")
    assert not (await template(servers.engines["a"], 1, ef(99))).refusals, "nobody waits yet"
    first = servers.wires.before["ready"]
    servers.wires.before["ready"] = asyncio.Event()
    servers.wires.seen.clear()
    first.set()
    await servers.called("b", "ready")
    return move


async def test_efs_are_held_back_between_cut_and_commit_and_go_on_after(servers: Servers) -> None:
    a, b = servers.engines["a"], servers.engines["b"]
    move = await second_cut(servers)
    held = asyncio.create_task(template(a, 1, ef(100)))
    await emit(a, 1, 1)
    assert not held.done()
    servers.wires.before["ready"].set()
    assert (await servers.ended("a", move)).step is MoveStep.DONE
    assert [r.reason for r in (await held).refusals] == [Reason.STALE], "the epoch has changed"
    assert ef(100).id not in b.writer.templates and ef(99).id in b.writer.templates


async def test_what_came_after_the_cut_is_taught_before_the_commit(servers: Servers) -> None:
    """The hold is only in memory: when it ends too early the commit notices."""
    a, b = servers.engines["a"], servers.engines["b"]
    move = await second_cut(servers)
    a.queue.release_all()
    assert not (await template(a, 1, ef(100))).refusals
    servers.wires.before["ready"].set()
    record = await servers.ended("a", move)
    assert record.step is MoveStep.DONE and record.cuts == 3
    assert ef(100).id in b.writer.templates


async def test_a_cancel_during_teaching_reaches_the_helper(servers: Servers) -> None:
    a, b = servers.engines["a"], servers.engines["b"]
    await template(a, 1, ef(100))
    servers.wires.before["learn"] = asyncio.Event()
    move = await servers.order("a", order(MoveKind.HELP_PROCESSING, 1, "a", "b"))
    await servers.called("b", "learn")
    await a.register(Request(cancels=[(0, ef(100).id, FAMILY)], epochs={FAMILY: 1}))
    servers.wires.before["learn"].set()
    assert (await servers.ended("a", move)).step is MoveStep.DONE
    assert b.writer.templates == {}


async def test_memory_help_turns_the_overloaded_off_and_the_home_keeps_efs(
    servers: Servers,
) -> None:
    a = servers.engines["a"]
    await servers.make("a", order(MoveKind.HELP_MEMORY, 1, "a", "b"))
    assert [r.reason for r in (await emit(a, 2, 1)).refusals] == [Reason.OFF]
    assert not (await template(a, 2, ef(100))).refusals
    await servers.make("a", order(MoveKind.HELP_PROCESSING, 2, "b", "c"))
    assert ef(100).id in servers.engines["c"].writer.templates, "the home that is off taught it"


async def test_a_member_that_comes_on_again_learns_what_it_missed(servers: Servers) -> None:
    a, b = servers.engines["a"], servers.engines["b"]
    await servers.make("a", order(MoveKind.HELP_PROCESSING, 1, "a", "b"))
    await servers.make("a", order(MoveKind.FLIP_OFF, 2, "b"))
    await template(a, 3, ef(100))
    assert ef(100).id not in b.writer.templates
    await servers.make("a", order(MoveKind.FLIP_ON, 3, "b"))
    assert ef(100).id in b.writer.templates
    assert line_at(b).accumulatable == ("a", "b")


async def test_a_split_gives_the_upper_half_to_the_newcomer(servers: Servers) -> None:
    a, b = servers.engines["a"], servers.engines["b"]
    await template(a, 1, ef(100))
    await servers.make("a", order(MoveKind.SPLIT, 1, "a", "b", KEY))
    assert line_at(a).section == Section(KEY, HASH_SPACE)
    assert (line_at(a).home, line_at(a).accumulatable) == ("a", ("b",))
    lower = a.writer.lines.line_of(0)
    assert lower is not None and lower.accumulatable == ("a",) and lower.epoch == 2
    assert ef(100).id in b.writer.templates


def divided(*members: Member) -> tuple[Line, Line]:
    first, second = WHOLE.split_at(KEY)
    return Line(first, 1, members), Line(second, 4, members)


@pytest.fixture
async def two() -> AsyncIterator[Servers]:
    """Two sections that a and b serve, with a as their home."""
    made = Servers()
    for name in "ab":
        await made.start(name, *divided(Member("a"), Member("b")))
    yield made
    await made.stop()


async def test_a_merge_makes_one_section_and_costs_an_old_line_one_refusal(two: Servers) -> None:
    a, b = two.engines["a"], two.engines["b"]
    await template(a, 4, ef(100))
    await template(b, 4, ef(100))
    assert not (await emit(b, 4, 1)).refusals
    record = await two.make("a", merge_of(*divided(Member("a"), Member("b"))))
    assert [line_at(engine) for engine in (a, b)] == list(record.after) * 2
    assert record.after == (Line(WHOLE, 5, (Member("a"), Member("b"))),)
    assert (record.copied, record.held_us) == (0, 0)
    late = await emit(b, 4, 2)
    assert [refusal.reason for refusal in late.refusals] == [Reason.STALE]
    assert late.lines == list(record.after), "the wider line comes along"
    assert not (await emit(b, 5, 2)).refusals
    assert await stored(b) == [1, 2] and ef(100).id in b.writer.templates


async def test_a_member_that_misses_a_merge_serves_by_the_old_lines_until_it_hears(
    two: Servers,
) -> None:
    two.wires.down.add("b")
    a, b = two.engines["a"], two.engines["b"]
    id_ = await two.order("a", merge_of(*divided(Member("a"), Member("b"))))
    await two.reached("a", id_, MoveStep.COMMITTED)
    assert not (await emit(b, 4, 1)).refusals
    assert (await template(b, 5, ef(100))).refusals, (
        "and so no EF is answered by the new epoch (R2)"
    )
    await two.crash("a")
    a = await two.start("a")
    assert line_at(a).section == WHOLE
    two.wires.down.clear()
    assert (await two.ended("a", id_)).step is MoveStep.DONE
    assert line_at(b) == line_at(a)


async def test_who_has_heard_of_a_wider_line_has_heard_of_each_of_its_parts(two: Servers) -> None:
    """A home tells what it knows; meanwhile another one may have become home, and merged."""
    await two.make("a", merge_of(*divided(Member("a"), Member("b"))))
    _, second = divided(Member("a"), Member("b"))
    others = two.engines["a"].move_driver.shipping._others
    assert await others.hear("b", [second])


async def test_release_needs_an_empty_member(servers: Servers) -> None:
    a, b = servers.engines["a"], servers.engines["b"]
    await servers.make("a", order(MoveKind.HELP_PROCESSING, 1, "a", "b"))
    await emit(b, 2, 1)
    await servers.make("a", order(MoveKind.FLIP_OFF, 2, "b"))
    move = await servers.order("a", order(MoveKind.RELEASE, 3, "b"))
    record = await servers.ended("a", move)
    assert record.step is MoveStep.OVER and "holds 1" in record.reason
    assert line_at(a).epoch == 3 and line_at(b).epoch == 3


async def test_a_released_home_hands_over(servers: Servers) -> None:
    a, b = servers.engines["a"], servers.engines["b"]
    await template(a, 1, ef(100))
    await servers.make("a", order(MoveKind.HELP_MEMORY, 1, "a", "b"))
    await servers.make("a", order(MoveKind.RELEASE, 2, "a"))
    assert [member.name for member in line_at(b).members] == ["b"]
    late = await emit(a, 2, 1)
    assert [line.home for line in late.lines] == ["b"], "the old home hands out the new line"
    await servers.make("b", order(MoveKind.HELP_PROCESSING, 3, "b", "c"))
    assert ef(100).id in servers.engines["c"].writer.templates


async def test_drain_brings_everything_to_the_heir_and_then_deletes(servers: Servers) -> None:
    a, b = servers.engines["a"], servers.engines["b"]
    await emit(a, 1, 1, 2, 3)
    await a.register(Request(devices=columns_of([cf(50)]), epochs={FAMILY: 1}))
    await template(a, 1, ef(100))
    await servers.make("a", order(MoveKind.HELP_MEMORY, 1, "a", "b"))
    await emit(b, 2, 4)
    record = await servers.make("a", order(MoveKind.DRAIN, 2, "a", "b"))
    assert record.rows == 3
    assert await stored(b) == [4] and await stored(b, "a") == [1, 2, 3]
    assert [batch.columns.id_at(0) async for batch in b.store.devices(0)] == [cf(50).id]
    await servers.drained("a")
    assert await stored(a) == [] and a.writer.moves.participant.shipments == {}
    assert b.delivering.cursors.origins == {"a": 3}


async def test_a_drain_goes_on_after_its_home_could_not_read_its_store_for_a_moment(
    servers: Servers,
) -> None:
    """Seed 503753: nobody drove the move any more, and the section could not move again."""
    a, b = servers.engines["a"], servers.engines["b"]
    await emit(a, 1, 1)
    await servers.make("a", order(MoveKind.HELP_MEMORY, 1, "a", "b"))
    origins, failures = a.store.origins, [StoreUnavailable("away for a moment")]

    async def shaky() -> dict[str, int]:
        if failures:
            raise failures.pop()
        return await origins()

    a.store.origins = shaky  # type: ignore[method-assign]
    await servers.make("a", order(MoveKind.DRAIN, 2, "a", "b"))
    assert not failures and await stored(b, "a") == [1]


async def test_a_drained_server_does_not_join_the_section_again(servers: Servers) -> None:
    await servers.make("a", order(MoveKind.HELP_MEMORY, 1, "a", "b"))
    await servers.make("a", order(MoveKind.DRAIN, 2, "a", "b"))
    await servers.drained("a")
    refused = await servers.wires.calls["a"].ready(
        pb.ReadyRequest(
            move=bytes(16),
            lines=[
                pb.Line(
                    start=0,
                    last=HASH_SPACE - 1,
                    epoch=9,
                    members=[pb.Member(name="a", accumulatable=True)],
                )
            ],
        )
    )
    assert not refused.ready and "drained" in refused.reason


async def test_a_suspended_member_returns_with_what_it_missed_matched(servers: Servers) -> None:
    a, b = servers.engines["a"], servers.engines["b"]
    await servers.make("a", order(MoveKind.HELP_PROCESSING, 1, "a", "b"))
    servers.wires.down.add("b")
    await servers.make("a", order(MoveKind.SUSPEND, 2, "b"))
    assert not (await template(a, 3, ef(100))).refusals
    assert not (await emit(b, 2, 1)).refusals, "cut off, it still takes EAs of old clients"
    servers.wires.down.clear()
    await servers.make("a", order(MoveKind.RETURN, 3, "b"))
    assert ef(100).id in b.writer.templates and line_at(b).epoch == 4
    stream, outbox = b.delivering.open_stream()
    b.delivering.attach(stream, ef(100).id, 10, None)
    got: list[int] = []
    while not got:
        item = await next_in(outbox)
        got = list(getattr(item, "rows", []))
    assert got == [0]


async def test_a_home_that_crashes_goes_on_from_its_record(servers: Servers) -> None:
    await template(servers.engines["a"], 1, ef(100))
    servers.wires.before["ready"] = asyncio.Event()
    move = await servers.order("a", order(MoveKind.HELP_PROCESSING, 1, "a", "b"))
    await servers.called("b", "ready")
    await servers.crash("a")
    servers.wires.before.clear()
    await servers.start("a")
    record = await servers.ended("a", move)
    assert record.step is MoveStep.DONE
    assert line_at(servers.engines["b"]).epoch == 2


async def test_a_helper_that_stays_away_makes_the_home_give_up(servers: Servers) -> None:
    servers.wires.down.add("b")
    home = servers.engines["a"]
    object.__setattr__(home.config, "move_limit_s", 0.05)
    move = await servers.order("a", order(MoveKind.HELP_PROCESSING, 1, "a", "b"))
    record = await servers.reached("a", move, MoveStep.ABORTED)
    assert "not made within" in record.reason and line_at(home).epoch == 1
    servers.wires.down.clear()
    assert (await servers.ended("a", move)).step is MoveStep.OVER
    assert not (await emit(home, 1, 1)).refusals


async def test_a_drain_that_is_given_up_is_called_off_at_its_home_too_when_the_store_is_back(
    servers: Servers,
) -> None:
    """Seed 27000769: the task that drove the move failed."""
    home = servers.engines["a"]
    await servers.make("a", order(MoveKind.HELP_MEMORY, 1, "a", "b"))
    servers.wires.down.add("b")
    object.__setattr__(home.config, "move_limit_s", 0.05)
    whole, failures = home.step, [Unavailable("the store is not reachable")]

    async def shaky(step: Step) -> Outcome:
        if isinstance(step, Forget) and failures:
            raise failures.pop()
        return await whole(step)

    home.step = shaky  # type: ignore[method-assign]
    failed: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.append(context))
    move = await servers.order("a", order(MoveKind.DRAIN, 2, "a", "b"))
    await servers.reached("a", move, MoveStep.ABORTED)
    servers.wires.down.clear()
    assert (await servers.ended("a", move)).step is MoveStep.OVER
    assert not failures and not failed


async def test_one_move_per_section_at_a_time_and_only_at_the_home(servers: Servers) -> None:
    calls = servers.wires.calls
    servers.wires.before["learn"] = asyncio.Event()
    await servers.order("a", order(MoveKind.HELP_PROCESSING, 1, "a", "b"))
    second = await calls["a"].move(move_to_wire(order(MoveKind.HELP_PROCESSING, 1, "a", "c")))
    assert not second.accepted and "under way" in second.reason
    elsewhere = await calls["b"].move(move_to_wire(order(MoveKind.HELP_PROCESSING, 1, "a", "c")))
    assert not elsewhere.accepted and "not its home" in elsewhere.reason
    servers.wires.before["learn"].set()


async def test_a_recorded_move_is_made_though_who_ordered_it_went_away(servers: Servers) -> None:
    asked = move_to_wire(order(MoveKind.HELP_PROCESSING, 1, "a", "b"))
    calling = asyncio.create_task(servers.wires.calls["a"].move(asked))
    await asyncio.sleep(0)  # it is with the writer now
    calling.cancel()
    records = servers.engines["a"].writer.moves.home.records
    await emit(servers.engines["a"], 1, 1)  # the writer has been at it
    assert (await servers.ended("a", next(iter(records)))).step is MoveStep.DONE


async def test_an_order_by_an_old_line_is_refused(servers: Servers) -> None:
    await servers.make("a", order(MoveKind.HELP_PROCESSING, 1, "a", "b"))
    late = move_to_wire(order(MoveKind.HELP_PROCESSING, 1, "a", "c"))
    answer = await servers.wires.calls["a"].move(late)
    assert not answer.accepted and "planned by" in answer.reason


async def test_in_a_steady_state_servers_say_nothing_to_each_other(servers: Servers) -> None:
    a, b = servers.engines["a"], servers.engines["b"]
    await servers.make("a", order(MoveKind.HELP_PROCESSING, 1, "a", "b"))
    said = len(servers.wires.seen)
    for number in range(50):
        await emit(a if number % 2 else b, 2, number)
        await template(a, 2, ef(1000 + number))
    assert len(servers.wires.seen) == said


async def test_a_helper_that_was_drained_of_the_section_is_given_up_at_once(
    servers: Servers,
) -> None:
    await servers.make("a", order(MoveKind.HELP_PROCESSING, 1, "a", "b"))
    await servers.make("a", order(MoveKind.FLIP_OFF, 2, "b"))
    await servers.make("a", order(MoveKind.DRAIN, 3, "b", "a"))
    await servers.drained("b")
    move = await servers.order("a", order(MoveKind.HELP_PROCESSING, 4, "a", "b"))
    record = await servers.ended("a", move)
    assert record.step is MoveStep.OVER and "was drained of this section" in record.reason
    status = await servers.wires.calls["b"].status(pb.StatusRequest(brief=True))
    whole = pb.Span(start=0, last=HASH_SPACE - 1)
    assert list(status.left) == [whole]  # so that nobody asks for it again
