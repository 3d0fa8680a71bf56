"""The demand and the daily rule for many worlds at once: arrays of days × worlds, in NumPy.

Says the same as ops_sim/demand.py and ops_sim/operation.py, in the same order of operations, and is tested against
them. What does not depend on earlier decisions (demand, prediction, how many servers would do) is computed for all
days at once; the loop over days only compares and orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ops_sim import draws
from ops_sim.application import Load
from ops_sim.demand import Demand, Growth
from ops_sim.draws import Floats
from ops_sim.operation import LEAST_DEVICES
from ops_sim.policy import SERVERS_MAX, Policy, Predictor

Ints = NDArray[np.int64]

BLOCK = 512
"""Worlds at once: an array of 1000 days is then 4 MB. Fewer, and the loop over days costs more than what it does; more
gain nothing."""


def devices_in(demand: Demand, seed: int, worlds: Sequence[int], days: int) -> Floats:
    """Days × worlds."""
    day = np.arange(1, days + 1, dtype=np.float64)
    devices = _trend(demand, seed, worlds, day)
    if demand.season_share:
        devices *= (1 + demand.season_share * np.sin(2 * np.pi * day / demand.season_days))[:, None]
    if demand.bursts_per_year and demand.burst_share:
        devices *= 1 + demand.burst_share * _bursts(demand, seed, worlds, days)
    if demand.noise:
        noise = np.ascontiguousarray(draws.noise_draws(seed, worlds, days).T)
        noise *= demand.noise
        noise -= demand.noise**2 / 2
        devices *= np.exp(noise, out=noise)
    return devices


def _trend(demand: Demand, seed: int, worlds: Sequence[int], day: Floats) -> Floats:
    factor = np.ones(len(worlds))
    if demand.growth_spread:
        factor = np.exp(demand.growth_spread * draws.growth_draws(seed, worlds))
    stay = 1 - demand.churn_per_day
    stayed = stay**day
    if demand.growth is Growth.EXPONENTIAL:
        rate = np.log(2) / demand.doubling_days
        grown: Floats = np.exp(rate * factor * day[:, None])
        grown *= (demand.devices_start * stayed)[:, None]
        return grown
    came = (1 - stayed) / (1 - stay) if demand.churn_per_day else day
    spread: Floats = (demand.devices_per_day * factor) * came[:, None]
    spread += (demand.devices_start * stayed)[:, None]
    return spread


def _bursts(demand: Demand, seed: int, worlds: Sequence[int], days: int) -> NDArray[np.bool_]:
    """Whether one is on."""
    began = np.ascontiguousarray(draws.burst_draws(seed, worlds, days).T) < demand.burst_chance
    on = began.copy()
    for later in range(1, min(demand.burst_days, days)):
        on[later:] |= began[:-later]
    return on


def lead_times_in(demand: Demand, seed: int, worlds: Sequence[int], days: int) -> Ints | None:
    """Days × worlds; None where every order takes `lead_time_days`."""
    if not demand.lead_time_spread:
        return None
    factor = np.exp(demand.lead_time_spread * draws.lead_time_draws(seed, worlds, days).T)
    found: Ints = np.maximum(1, np.rint(demand.lead_time_days * factor)).astype(np.int64)
    return found


def predict_all(devices: Floats, policy: Policy, ahead_days: int) -> Floats:
    """For every day, from the days up to it."""
    grows = policy.predictor is Predictor.GROWTH
    seen = np.log(np.maximum(devices, LEAST_DEVICES)) if grows else devices
    days, window = len(seen), policy.window_days
    found = np.empty_like(seen)
    for day in range(min(window - 1, days)):  # not yet a whole window
        found[day] = _weighted(seen[: day + 1], policy.weights(day + 1, ahead_days))
    if days >= window:
        whole = found[window - 1 :]
        term = np.empty_like(whole)
        for back, weight in enumerate(policy.weights(window, ahead_days)):
            first = window - 1 - back
            if back:
                whole += np.multiply(seen[first : days - back], weight, out=term)
            else:
                np.multiply(seen[first:], weight, out=whole)
    if grows:
        np.exp(found, out=found)
    else:
        np.maximum(found, 0.0, out=found)
    return found


def _weighted(seen: Floats, weights: Sequence[float]) -> Floats:
    found: Floats = seen[-1] * weights[0]
    for back, weight in enumerate(weights[1:], 2):
        found += seen[-back] * weight
    return found


def servers_at(load: Load, devices: Floats, share: float) -> Floats:
    """`Load.servers_at` of many."""
    if load.busy_copied >= share:
        return np.full_like(devices, np.inf)
    busy = devices * load.busy_per_device2
    busy += load.busy_per_device
    busy *= devices
    busy /= share - load.busy_copied
    memory = devices * load.memory_per_device
    if load.memory_copied:
        room = share - devices * load.memory_copied
        with np.errstate(divide="ignore", invalid="ignore"):
            memory = np.where(room > 0, memory / room, np.inf)
    else:
        memory /= share
    found: Floats = np.maximum(memory, busy, out=busy)
    return found


@dataclass(frozen=True, slots=True)
class Operation:
    """Days × worlds."""

    devices: Floats
    servers: Floats
    """Installed; whole numbers."""
    bought: Floats
    """Decided on that day."""
    predicted: Floats


def operate_all(
    devices: Floats,
    lead_times: Ints | None,
    lead_time_days: int,
    load: Load,
    policy: Policy,
    servers: int,
) -> Operation:
    days, worlds = devices.shape
    predicted = predict_all(devices, policy, policy.horizon_days)
    needed = servers_at(load, predicted, policy.buy_above)
    longest = lead_time_days if lead_times is None else int(lead_times.max())
    arriving = np.zeros((days + max(1, longest) + 1, worlds))
    bought = np.zeros((days, worlds))
    installed = np.full(worlds, float(servers))
    total = installed.copy()
    """With those on order."""
    counted = total if policy.orders_count else installed
    lead = np.full(worlds, max(1, lead_time_days))
    for day in range(days):
        if not policy.orders_count:
            installed += arriving[day]
        short = np.flatnonzero(needed[day] > counted)
        if not short.size:
            continue
        if lead_times is not None:
            lead = lead_times[day]
        sized_for = _sized_for(devices, predicted, policy, day, short, lead)
        at_share = servers_at(load, sized_for, policy.size_below)
        wanted = np.floor(np.minimum(at_share, SERVERS_MAX - 1)) + 1
        more = np.maximum(0.0, wanted - total[short])
        total[short] += more
        bought[day, short] = more
        arriving[day + lead[short], short] += more
    arrived = np.cumsum(arriving[:days], axis=0)
    arrived += servers
    return Operation(devices, arrived, bought, predicted)


def _sized_for(
    devices: Floats, predicted: Floats, policy: Policy, day: int, worlds: Ints, lead: Ints
) -> Floats:
    """The devices to size for, in these worlds."""
    found: Floats
    if not policy.size_for_installation:
        found = predicted[day, worlds]
        return found
    seen = devices[max(0, day + 1 - policy.window_days) : day + 1, worlds]
    found = np.empty(len(worlds))
    for days in np.unique(lead[worlds]):  # few: lead times are whole days
        same = lead[worlds] == days
        found[same] = predict_all(seen[:, same], policy, policy.ahead_days(int(days)))[-1]
    return found
