"""`emit_many` and `command_many` that do not come to their end: the caller always learns what was registered (law 4)."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from copy import copy
from typing import Any

import pytest

from tests.twins.cluster import MANAGER, TwinCluster, one_line
from tests.twins.virtual_time import in_virtual_time
from utuple.client.config import Config
from utuple.client.parts import put_together
from utuple.client.space import Space
from utuple.errors import Closed, InvalidInput, OutcomeUnknown, SomeRegistered

LOAD: dict[str, Any] = {"subject": "truck", "type": "load", "address": "t"}
POWER: dict[str, Any] = {"subject": "aircon", "type": "power"}


class Broken(Exception):
    """The caller's own."""


def space_of(cluster: TwinCluster, **config: Any) -> Space:
    config = {"timeout_s": 10, "batch_rows": 1_000, **config}
    return Space(
        put_together([MANAGER], Config(**config), cluster, random.Random(7), lambda: 1_000_000)
    )


def breaking_after(count: int, **wrong: Any) -> Iterator[dict[str, Any]]:
    for n in range(count):
        yield {**LOAD, "data": {"n": n}, **(wrong if n == 3 else {})}
    raise Broken("a sensor was unplugged")


@in_virtual_time
@pytest.mark.parametrize("count", [1, 255, 256, 257, 1_256, 1_257, 5_000])
async def test_what_an_iterable_gave_before_it_failed_is_registered_and_said(count: int) -> None:
    cluster = TwinCluster(one_line(1, "a"))
    async with space_of(cluster) as space:
        with pytest.raises(SomeRegistered) as caught:
            await space.emit_many(breaking_after(count))
        error = caught.value
        assert (error.reached, error.registered, error.refused) == (count, count, {})
        assert isinstance(error.__cause__, Broken)
        assert "number" in str(error) and "unplugged" in str(error)
        assert [e.data["n"] async for e in space.read(subject="truck", type="load")] == [
            *range(count)
        ]
        assert str(copy(error)) == str(error), "as other processes get it"


async def later() -> AsyncIterator[dict[str, Any]]:
    yield {**LOAD, "data": {}}


WRONG: dict[str, tuple[Any, str]] = {
    "asynchronous": (later(), "asynchronous: give lists"),
    "one event": ({**LOAD, "data": {}}, "give a list of it"),
    "text": ("truck", "give a list of it"),
    "a number": (5, "must be an iterable of mappings"),
}


@pytest.mark.parametrize("given", WRONG)
@in_virtual_time
async def test_what_is_no_iterable_of_mappings_is_refused_by_name(given: str) -> None:
    items, said = WRONG[given]
    space = space_of(TwinCluster(one_line(1, "a")))
    for name, verb in (("events", space.emit_many), ("commands", space.command_many)):
        with pytest.raises(InvalidInput, match=said) as caught:
            await verb(items)
        assert caught.value.field == name
    await space.close()


@in_virtual_time
async def test_an_iterable_that_gave_nothing_fails_as_it_is() -> None:
    async with space_of(TwinCluster(one_line(1, "a"))) as space:
        with pytest.raises(Broken):
            await space.emit_many(breaking_after(0))
        with pytest.raises(Broken):
            await space.command_many(breaking_after(0))


@in_virtual_time
async def test_refusals_before_the_failure_are_said_with_it() -> None:
    async with space_of(TwinCluster(one_line(1, "a"))) as space:
        with pytest.raises(SomeRegistered, match="9 are registered and 1 were refused") as caught:
            await space.emit_many(breaking_after(10, address=""))
        assert list(caught.value.refused) == [3]
        assert isinstance(caught.value.refused[3], InvalidInput)


class Lazy(Mapping[str, Any]):
    """A mapping of the caller's own, which reads its sensor when it is asked."""

    def __getitem__(self, name: str) -> Any:
        raise Broken("no such sensor")

    def __iter__(self) -> Iterator[str]:
        return iter((*LOAD, "data"))

    def __len__(self) -> int:
        return 4


@in_virtual_time
async def test_an_event_that_fails_when_it_is_looked_at_fails_like_its_iterable() -> None:
    async with space_of(TwinCluster(one_line(1, "a"))) as space:
        events: list[Any] = [{**LOAD, "data": {"n": n}} for n in range(700)]
        with pytest.raises(SomeRegistered) as caught:
            await space.emit_many([*events, Lazy(), *events])
        assert (caught.value.reached, caught.value.registered) == (700, 700)
        assert isinstance(caught.value.__cause__, Broken)


@in_virtual_time
async def test_a_lost_answer_is_said_before_the_iterables_failure_and_can_be_retried() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    async with space_of(cluster, timeout_s=1) as space:
        cluster.losing["a"] = 1_000
        with pytest.raises(OutcomeUnknown) as caught:
            await space.emit_many(breaking_after(100))
        cause = caught.value.__cause__
        assert isinstance(cause, SomeRegistered) and isinstance(cause.__cause__, Broken)
        assert (cause.reached, cause.registered, caught.value.reached) == (100, 0, 100)
        cluster.losing.clear()
        assert await space.retry(caught.value) == 100
        found = [e.data["n"] async for e in space.read(subject="truck", type="load")]
        assert sorted(found) == list(range(100))


@in_virtual_time
async def test_a_call_that_fails_in_the_middle_says_where_to_go_on_and_nothing_is_lost_or_twice() -> (
    None
):
    cluster = TwinCluster(one_line(1, "a"))
    events = [{**LOAD, "data": {"n": n}} for n in range(20_000)]
    async with space_of(cluster, timeout_s=1) as space:
        cluster.losing["a"] = 1_000
        with pytest.raises(OutcomeUnknown) as caught:
            await space.emit_many(events)
        cluster.losing.clear()
        await space.retry(caught.value)
        reached = caught.value.reached
        assert reached is not None and 0 < reached < len(events)
        await space.emit_many(events[reached:])
        found = [e.data["n"] async for e in space.read(subject="truck", type="load")]
        assert sorted(found) == list(range(20_000))


@in_virtual_time
async def test_who_is_cancelled_in_the_middle_finds_what_is_certain_in_the_error() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    async with space_of(cluster) as space:

        def events() -> Iterator[dict[str, Any]]:
            for n in range(5_000):
                yield {**LOAD, "data": {"n": n}}
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt) as caught:
            await space.emit_many(events())
        (note,) = caught.value.__notes__
        assert re.fullmatch(
            r"emit_many: of the first 4256 events \d+ are registered for certain", note
        )


@in_virtual_time
async def test_commands_before_the_failure_have_their_receipts() -> None:
    def commands() -> Iterator[dict[str, Any]]:
        for n in range(5_000):
            yield {**POWER, "address": f"room-{n}", "data": {"on": True}}
        raise Broken("the list of rooms ends here")

    async with space_of(TwinCluster(one_line(1, "a"))) as space:
        async with space.serve(**POWER, address="room-4999") as room:
            with pytest.raises(SomeRegistered) as caught:
                await space.command_many(commands())
            assert (caught.value.reached, caught.value.registered) == (5_000, 5_000)
            assert caught.value.receipts[4_999].handed_over == 1  # type: ignore[index]
            assert (await anext(room)).data == {"on": True}


@in_virtual_time
async def test_an_invalid_command_after_others_were_sent_comes_with_their_receipts() -> None:
    async with space_of(TwinCluster(one_line(1, "a"))) as space:
        good = [{**POWER, "address": f"room-{n}", "data": {}} for n in range(3_000)]
        with pytest.raises(SomeRegistered) as caught:
            await space.command_many([*good, {**POWER, "address": "", "data": {}}])
        assert isinstance(caught.value.__cause__, InvalidInput)
        assert caught.value.__cause__.field == "commands[3000].address"
        assert caught.value.reached == len(caught.value.receipts)  # type: ignore[arg-type]


# --- closing in the middle -------------------------------------------------------------------------


@in_virtual_time
async def test_closing_waits_a_moment_for_answers_and_sends_no_more() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    release = cluster.hold("a")
    emitting = [asyncio.create_task(space.emit(**LOAD, data={"n": n})) for n in range(4)]
    await asyncio.sleep(0.01)
    closing = [asyncio.create_task(space.close()) for _ in range(3)]
    await asyncio.sleep(0.01)
    release.set()
    await asyncio.gather(*closing, *emitting)
    with pytest.raises(Closed):
        await space.emit(**LOAD, data={"n": 9})


@in_virtual_time
async def test_what_was_sent_and_is_cut_by_closing_is_unknown_and_can_be_retried_elsewhere() -> (
    None
):
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    await space.emit(**LOAD, data={"n": -1})
    cluster.hold("a")
    lonely = asyncio.create_task(space.emit(**LOAD, data={"n": -2}))
    await asyncio.sleep(0.01)
    many = asyncio.create_task(space.emit_many({**LOAD, "data": {"n": n}} for n in range(20_000)))
    await asyncio.sleep(0.01)
    before_s = asyncio.get_running_loop().time()
    await space.close()
    outcomes = await asyncio.gather(lonely, many, return_exceptions=True)
    assert asyncio.get_running_loop().time() - before_s < 4
    cluster.held.clear()
    async with space_of(cluster) as again:
        for one in outcomes:
            assert isinstance(one, OutcomeUnknown)
            await again.retry(one)
        found = [e.data["n"] async for e in again.read(subject="truck", type="load")]
    assert len(found) > 256
    assert sorted(found) == list(range(-2, len(found) - 2)), "all that was taken, each once"


@in_virtual_time
async def test_what_still_looks_for_its_server_when_the_space_closes_is_closed() -> None:
    """Closed, and not cancelled: nobody cancelled the caller."""
    cluster = TwinCluster(one_line(1, "a"), hold_lookups=asyncio.Event())
    space = space_of(cluster)
    verbs = [
        space.emit(**LOAD, data={"n": 0}),
        space.emit_many([{**LOAD, "data": {"n": 1}}]),
        space.command(**POWER, everywhere=True, data={"on": True}),
        space.command(**POWER, address="room-1", data={"on": True}),
        space.command_many([{**POWER, "address": "room-1", "data": {"on": True}}]),
        space.watch(subject="truck", type="load").open(),
        space.serve(**POWER, address="room-1").open(),
        anext(space.read(subject="truck", type="load")),
    ]
    tasks = [asyncio.ensure_future(verb) for verb in verbs]
    await asyncio.sleep(0.01)
    await space.close()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(one) for one in outcomes] == [Closed] * len(verbs)


@in_virtual_time
async def test_a_close_that_is_cancelled_goes_on_closing() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    watch = await space.watch(subject="truck", type="load").open()
    closing = asyncio.create_task(space.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.gather(closing, return_exceptions=True)
    await space.close()
    with pytest.raises(Closed):
        await anext(watch)
    assert not cluster.servers["a"].streams
