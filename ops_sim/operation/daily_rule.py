"""The operation day by day (section 4.2), written to be read. Pure.

This is the rule; ops_sim/operation/kernel.py is the same for thousands of scenarios at once and is tested against it.
Demand is extrapolated, not the usage in per cent. Servers on order are subtracted from what is bought.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ops_sim.cost.application import Load
from ops_sim.operation.policy import Policy, Predictor, servers_to_fall_below

LEAST_DEVICES = 1.0
"""The logarithm of a load is taken of at least this."""


@dataclass(frozen=True, slots=True)
class Day:
    day: int
    """1 is the first."""
    devices: float
    servers: int
    """Installed."""
    on_order: int
    """After today's decision."""
    bought: int
    """Decided today."""
    predicted: float
    """Devices, at the policy's horizon."""
    memory: float
    """Share of what the installed servers hold."""
    processing: float


def predict(devices: Sequence[float], policy: Policy, ahead_days: int) -> float:
    """The prediction from these days, the newest last. They are the policy's window, or as much of it as there is yet."""
    weights = policy.weights(len(devices), ahead_days)
    if policy.predictor is Predictor.GROWTH:
        logs = (math.log(max(seen, LEAST_DEVICES)) for seen in reversed(devices))
        return math.exp(sum(w * x for w, x in zip(weights, logs, strict=True)))
    return max(0.0, sum(w * x for w, x in zip(weights, reversed(devices), strict=True)))


def operate(
    devices: Sequence[float],
    lead_times: Iterator[int],
    load: Load,
    policy: Policy,
    servers: int = 10,
) -> list[Day]:
    """One entry of `devices` a day; the next of `lead_times` is how long the next order takes to arrive."""
    arriving: dict[int, int] = {}
    lead_time = next(lead_times)
    days = []
    for day, now in enumerate(devices, 1):
        servers += arriving.pop(day, 0)
        on_order = sum(arriving.values())
        seen = devices[max(0, day - policy.window_days) : day]
        predicted = predict(seen, policy, policy.horizon_days)
        counted = servers + (on_order if policy.orders_count else 0)
        bought = 0
        if load.servers_at(predicted, policy.buy_above) > counted:
            sized_for = predict(seen, policy, policy.ahead_days(lead_time))
            wanted = servers_to_fall_below(load.servers_at(sized_for, policy.size_below))
            bought = max(0, wanted - servers - on_order)
        if bought:
            arrival = day + max(1, lead_time)
            arriving[arrival] = arriving.get(arrival, 0) + bought
            lead_time = next(lead_times, lead_time)
        days.append(
            Day(
                day=day,
                devices=now,
                servers=servers,
                on_order=on_order + bought,
                bought=bought,
                predicted=predicted,
                memory=load.memory(now, servers),
                processing=load.processing(now, servers),
            )
        )
    return days
