"""Overall performance by the number of servers (section 4.1.2, figure 8), from one server's costs. Pure.

| condition | proposed method                              | existing method (a traditional DHT) |
|-----------|----------------------------------------------|-------------------------------------|
| best      | keys are spread evenly: everything is shared | the same                            |
| worst     | one key: EAs and CFs are shared, EFs copied  | one server carries it all           |

Throughput counts every uTuple registered in the space, simple commands too, which the sCA server takes and which the
paper assumes never to limit. Copying EFs and the network cost nothing, as in the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product

from ops_sim.cost.application import DAY_S, Application
from ops_sim.cost.model import CostModel

_HALVINGS = 200
_DEVICES_MAX = 1e18


class Method(StrEnum):
    EXISTING = "existing"
    PROPOSED = "proposed"


class Condition(StrEnum):
    BEST = "best"
    WORST = "worst"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A point of figure 8; a row of `schema.ESTIMATES`."""

    application: str
    method: str
    condition: str
    servers: int
    throughput_per_s: float
    """uTuples registered a second when the servers are always busy."""
    accumulatable: float
    """uTuples stored when their memory is full."""
    throughput_beyond: float | None
    """How many times the uTuples it was measured with a server holds then; None: not known. Above 1 the costs are
    extended beyond what was measured."""
    accumulatable_beyond: float | None


def estimates(
    applications: Iterable[Application], cost: CostModel, servers: Sequence[int]
) -> Iterator[Estimate]:
    for application, method, condition, number in product(applications, Method, Condition, servers):
        yield estimate(application, cost, method, condition, number)


def estimate(
    app: Application, cost: CostModel, method: Method, condition: Condition, servers: int
) -> Estimate:
    worst = condition is Condition.WORST
    sharing = 1 if worst and method is Method.EXISTING else servers
    devices_busy = _most(lambda devices: _busy(app, cost, devices, sharing, worst))
    devices_full = _most(lambda devices: _full(app, cost, devices, sharing, worst))
    beyond_busy, beyond_full = (
        cost.beyond(*_held(app, devices, sharing, worst))
        for devices in (devices_busy, devices_full)
    )
    registered = (app.ea_per_day + app.sca_per_day) / DAY_S * devices_busy
    return Estimate(
        application=app.name,
        method=method.value,
        condition=condition.value,
        servers=servers,
        throughput_per_s=registered + app.ef_per_s + app.cf_per_s if devices_busy else 0.0,
        accumulatable=devices_full * (app.eas + app.efs + app.cfs),
        throughput_beyond=beyond_busy,
        accumulatable_beyond=beyond_full,
    )


def cautions(found: Iterable[Estimate], cost: CostModel) -> list[str]:
    """What to know of these estimates before using them."""
    beyond = (b for e in found for b in (e.throughput_beyond, e.accumulatable_beyond) if b)
    return cost.cautions(max(beyond, default=None))


def _held(
    app: Application, devices: float, servers: int, copied: bool
) -> tuple[float, float, float]:
    """EAs, EFs and CFs on one server."""
    efs = devices * app.efs / (1 if copied else servers)
    return devices * app.eas / servers, efs, devices * app.cfs / servers


def _busy(app: Application, cost: CostModel, devices: float, servers: int, copied: bool) -> float:
    """The busy share of one server. An EA meets the EFs of its server, an EF the EAs of each server it goes to."""
    eas_here, efs_here, _ = _held(app, devices, servers, copied)
    ea_s = cost.ea_s + cost.ea_s_per_ef * efs_here
    ef_s = cost.ef_s + cost.ef_s_per_ea * eas_here
    return (
        devices * app.ea_per_day / DAY_S * ea_s / servers
        + app.ef_per_s * ef_s / (1 if copied else servers)
        + app.cf_per_s * cost.cf_s / servers
    )


def _full(app: Application, cost: CostModel, devices: float, servers: int, copied: bool) -> float:
    eas, efs, cfs = _held(app, devices, servers, copied)
    return (eas * cost.ea_bytes + efs * cost.ef_bytes + cfs * cost.cf_bytes) / cost.memory_bytes


def _most(share: Callable[[float], float]) -> float:
    """The most devices with which a share, which grows with them, is 1; 0 if it is above without any."""
    low, high = 0.0, _DEVICES_MAX
    if share(low) >= 1:
        return 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if share(middle) <= 1:
            low = middle
        else:
            high = middle
    return low
