"""`utuple demo`: one cluster for trucks and air conditioners, one for the hot key."""

from __future__ import annotations

import asyncio
import time

from rich.console import Console

from utuple.demo import overload
from utuple.demo.hot_key import Overload
from utuple.demo.performance import Performance
from utuple.demo.showing import Shown
from utuple.demo.tally import HotKey, Outcome
from utuple.local.layout import DEFAULT_MANAGERS
from utuple.local.temporary import cluster, until_interrupted


def run(*, secure: bool = False) -> Outcome | None:
    """None if it was interrupted; nothing is left either way."""
    # What the SDK logs of the killed server is part of the play.
    return asyncio.run(until_interrupted(_demo(Shown(Console(stderr=True)), secure)))


async def _demo(shown: Shown, secure: bool) -> Outcome:
    began_s = time.monotonic()
    outcome = await _trucks_and_rooms(shown, secure)
    outcome.hot_key = await _hot_key(shown, secure)
    outcome.seconds = time.monotonic() - began_s
    return outcome


async def _trucks_and_rooms(shown: Shown, secure: bool) -> Outcome:
    async with cluster(
        managers=DEFAULT_MANAGERS, secure=secure, progress=shown.progress
    ) as running:
        await running.grant_operator_everything()
        performance = Performance(running, shown)
        shown.say(f"a cluster of {len(running.servers)} servers is ready")
        shown.begin(performance.events, performance.deliveries)
        try:
            return await performance.run()
        finally:
            shown.end()


async def _hot_key(shown: Shown, secure: bool) -> HotKey:
    for said in overload.HONESTLY:
        shown.say(said)
    async with cluster(
        overload.SERVERS, secure=secure, policy=overload.KNOBS, progress=shown.progress
    ) as running:
        await running.grant_operator_everything()
        shown.say(f"a cluster of {overload.SERVERS} slow servers is ready")
        return await Overload(running.managers, shown).run()
