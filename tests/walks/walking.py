"""The four walks, each as a user or the load monitor would begin it."""

from __future__ import annotations

import asyncio
import uuid

import utuple
from load_monitor.config import Config
from load_monitor.transport import GrpcCalls
from tests.walks.cluster import running
from tests.walks.trace import RUNS, Walk, traced
from utuple.cluster.line import first_table
from utuple.cluster.move import Move, MoveKind
from utuple.model.key import key_of

HELP_S = 1.0
"""A help on an idle cluster takes a fraction of it; it is not asked whether it is done, since that would be traced."""
WARM_UP = 20


async def walks() -> dict[str, Walk]:
    async with running() as (at, addresses), utuple.connect(at) as space:
        return {
            "One EA, from emit to a live watch": await _event(space),
            "One read": await _read(space),
            "One command to an area": await _command(space),
            "One help, from the monitor's order": await _help(space, addresses),
        }


async def _event(space: utuple.Space) -> Walk:
    async with space.watch(
        subject="truck", type="load", where={"kg": utuple.at_least(1)}
    ) as events:

        async def act() -> None:
            await space.emit(subject="truck", type="load", address="truck-1", data={"kg": 2})
            await anext(events)

        for _ in range(WARM_UP):
            await act()
        return await traced(act)


async def _read(space: utuple.Space) -> Walk:
    async def act() -> None:
        found = [event async for event in space.read(subject="truck", type="load")]
        assert found

    for _ in range(WARM_UP):
        await act()
    return await traced(act)


async def _command(space: utuple.Space) -> Walk:
    where = (35.0, 139.0)
    device = space.serve(subject="aircon", type="power", address="room-1", position=where)
    async with device as commands:

        async def act() -> None:
            area = utuple.Circle(*where, 500.0)
            await space.command(
                subject="aircon", type="power", area=area, data={"on": True}, lifetime_s=60
            )
            await anext(commands)

        for _ in range(WARM_UP):
            await act()
        return await traced(act)


async def _help(space: utuple.Space, addresses: dict[str, str]) -> Walk:
    """Each run helps another line, by the server after its home. The EF that is taught is one whose reader is away, so that
    the walk is the move's own way, and not also that of a reader who follows its line."""
    names = list(addresses)
    calls = GrpcCalls(Config("walker", "127.0.0.1:0", ("127.0.0.1:1",)))
    lines = iter(first_table(names))

    async def act() -> None:
        line = next(lines)
        helper = names[(names.index(line.home) + 1) % len(names)]
        kind, why = MoveKind.HELP_PROCESSING, "a walk"
        move = Move(kind, line.section, line.epoch, line.home, helper, why=why)
        await calls.move(addresses[line.home], move)
        await asyncio.sleep(HELP_S)

    subjects: dict[str, str] = {}
    while len(subjects) < len(names):
        subject = f"meter-{uuid.uuid4().hex[:6]}"
        key = key_of(subject, "load")
        subjects.setdefault(
            next(line.home for line in first_table(names) if key in line.section), subject
        )
    for subject in subjects.values():
        async with space.watch(subject=subject, type="load", reader="away"):
            pass
    await act()
    return await traced(act, runs=min(RUNS, len(names) - 1))
