"""The demo's hot key: who overloads it and by how much, and what is done so that a small machine can show it.
Pure.

Two cores cannot be three servers at their limits, nor does a demo last for hours. So its servers work an
artificial time on each uTuple, and its load monitor decides as always but waits for seconds instead of minutes.
"""

from __future__ import annotations

from random import Random

from utuple.demo.scenario import Asked, Event
from utuple.local.layout import SERVICE_US
from utuple.model.condition import at_least, prefix
from utuple.model.utuple import Family

METER_POWER = Family("meter", "power")

WORK_US = 10_000
"""Of a server on each uTuple. It does nothing else in it, so several servers fit on one core; and it is long
against a commit, so that the machine hardly matters."""
CAPACITY_PER_S = 1e6 / WORK_US
METERS = 60
"""Each has at most one event under way: a batch of all of them is 0.6 s of work, so that the server never runs
out of it while answers travel on a busy machine, and a move never stands behind more."""
PERIOD_S = 0.36
"""Of each meter, when it is not kept waiting."""
WANTED_PER_S = METERS / PERIOD_S
"""1.7 times what one server can do: by the monitor's threshold too much for two, and less than three can do."""
LIFETIME_S = 15
"""Helpers leave once what they took has expired; long enough to be read by whoever opens a stream late."""

SERVERS = 3
THRESHOLD = 0.6
KNOBS = (
    f"{SERVICE_US}={WORK_US}",
    f"processing_start={THRESHOLD}",
    "smoothing_s=1",
    "hold_s=1",
    "settle_s=3",
    "calm_s=2",
    "stay_on_s=6",
    "stay_off_s=5",
)
HONESTLY = (
    "now a hot key, on another cluster, made so that a small machine can show it:",
    f"its servers work {WORK_US / 1000:g} ms longer on each uTuple, so each does {CAPACITY_PER_S:.0f} a second;",
    f"its load monitor helps from load {THRESHOLD:g} on, and looks again after seconds, not a minute",
)

WATCHES = (
    Asked("billing", METER_POWER),
    Asked("peaks", METER_POWER, where={"watts": at_least(2_700)}),
    Asked("street-12", METER_POWER, address=prefix("meter-12")),
)


def meter_event(n: int, meter: int, dice: Random) -> Event:
    return {
        "subject": METER_POWER.subject,
        "type": METER_POWER.type,
        "address": f"meter-{100 + meter}",
        "position": (dice.uniform(35.66, 35.70), dice.uniform(139.74, 139.78)),
        "data": {"n": n, "watts": dice.randrange(3_000)},
        "lifetime_s": LIFETIME_S,
    }
