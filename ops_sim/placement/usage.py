"""How much of each server is used, by the cost model of figures 6 and 7: linear, and each kind of uTuple on its own. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ops_sim.cost.model import CostModel
from ops_sim.placement.splitmix import Floats


def sum_by_server(server: NDArray[np.int64], values: Floats, servers: int) -> Floats:
    """`server` says whose each value is."""
    return np.bincount(server, values, servers).astype(np.float64, copy=False)


@dataclass(frozen=True, slots=True)
class Usage:
    """One entry a server, as shares: 1.0 is a writer that is always busy, or a store that is full."""

    processing: Floats
    memory: Floats


def usage_of(
    cost: CostModel, eas_per_s: Floats, efs_per_s: Floats, eas: Floats, efs: Floats
) -> Usage:
    """`eas_per_s` and `efs_per_s` come in at each server; `eas` and `efs` are stored there."""
    each_ea_s = cost.ea_s + cost.ea_s_per_ef * efs
    each_ef_s = cost.ef_s + cost.ef_s_per_ea * eas
    return Usage(
        eas_per_s * each_ea_s + efs_per_s * each_ef_s,
        (eas * cost.ea_bytes + efs * cost.ef_bytes) / cost.memory_bytes,
    )
