"""`utuple demo`: one cluster for trucks and air conditioners, one for the hot key."""

from __future__ import annotations

import asyncio
import time

from rich.console import Console

from utuple.demo import overload
from utuple.demo.hot_key import Overload
from utuple.demo.performance import Performance
from utuple.demo.showing import Shown
from utuple.demo.stage import stage
from utuple.demo.tally import HotKey, Outcome


def run() -> Outcome:
    began_s = time.monotonic()
    # What the SDK logs of the killed server is part of the play.
    shown = Shown(Console(stderr=True))
    outcome = _trucks_and_rooms(shown)
    outcome.hot_key = _hot_key(shown)
    outcome.seconds = time.monotonic() - began_s
    return outcome


def _trucks_and_rooms(shown: Shown) -> Outcome:
    with stage(shown.progress) as on:
        performance = Performance(on.addresses, on, shown)
        shown.say(f"a cluster of {on.layout.servers} servers is ready")
        shown.begin(performance.events, performance.deliveries)
        try:
            return asyncio.run(performance.run())
        finally:
            shown.end()


def _hot_key(shown: Shown) -> HotKey:
    for said in overload.HONESTLY:
        shown.say(said)
    with stage(shown.progress, overload.LAYOUT, overload.KNOBS) as on:
        shown.say(f"a cluster of {on.layout.servers} slow servers is ready")
        return asyncio.run(Overload(on.addresses, shown).run())
