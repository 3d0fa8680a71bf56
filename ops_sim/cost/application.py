"""What an application asks of the space (section 4.1.2, table 2), and what that costs. Pure.

With n servers the load of each is `spread / n + copied`: EAs and CFs lie on one server each, EFs and CAs are copied
to every member. That is the worst condition, all on one key, for which the proposed method must be sized; in the
best condition nothing is copied (ops_sim/cost/estimate.py). Commands of application B are simple (sCA): the sCA server
takes them, which the paper assumes never to limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ops_sim.cost.model import CostModel

Amount = TypeVar("Amount", float, NDArray[np.float64])
"""One number, or an array of them."""
DAY_S = 86_400.0
EA_LIFETIME_DAYS = 7
"""The lifetime of EAs of application A, which most plans are about (section 4.2)."""


@dataclass(frozen=True, slots=True)
class Application:
    """Numbers are per device unless their name says otherwise."""

    name: str
    eas: float
    """Stored, in the steady state."""
    ea_per_day: float
    efs: float = 1 / 10_000
    ef_per_s: float = 0.1
    """In the whole space: applications register EFs, and there are few of them."""
    cfs: float = 0.0
    cf_per_s: float = 0.0
    """In the whole space."""
    sca_per_day: float = 0.0


A = Application("A", eas=50 * EA_LIFETIME_DAYS, ea_per_day=50)
"""Trucks that tell their load; mainly sensors."""
B = Application("B", eas=720, ea_per_day=12, cfs=1, cf_per_s=1.0, sca_per_day=12)
"""Remote management of appliances; sensors and actuators."""
APPLICATIONS = {application.name: application for application in (A, B)}


@dataclass(frozen=True, slots=True)
class Load:
    """Of one server among n, as shares of what it has, for D devices:

    memory      D·memory_per_device / n + D·memory_copied
    processing (D·busy_per_device + D²·busy_per_device2) / n + busy_copied
    """

    memory_per_device: float
    memory_copied: float
    busy_per_device: float
    busy_per_device2: float
    """Each EA is matched with EFs that grow with the devices."""
    busy_copied: float
    """Every EF is registered at every server. CFs, one a second in all, are counted here too: they are on the
    safe side, and next to nothing."""

    @classmethod
    def of(cls, application: Application, cost: CostModel) -> Load:
        app = application
        ea_per_s = app.ea_per_day / DAY_S
        return cls(
            memory_per_device=(app.eas * cost.ea_bytes + app.cfs * cost.cf_bytes)
            / cost.memory_bytes,
            memory_copied=app.efs * cost.ef_bytes / cost.memory_bytes,
            busy_per_device=ea_per_s * cost.ea_s + app.ef_per_s * cost.ef_s_per_ea * app.eas,
            busy_per_device2=ea_per_s * cost.ea_s_per_ef * app.efs,
            busy_copied=app.ef_per_s * cost.ef_s + app.cf_per_s * cost.cf_s,
        )

    def memory(self, devices: Amount, servers: Amount) -> Amount:
        return devices * self.memory_per_device / servers + devices * self.memory_copied

    def processing(self, devices: Amount, servers: Amount) -> Amount:
        spread = devices * (self.busy_per_device + devices * self.busy_per_device2)
        return spread / servers + self.busy_copied

    def servers_at(self, devices: float, share: float) -> float:
        """How many servers are used to just this share; infinite if what is copied alone uses more."""
        room = share - devices * self.memory_copied, share - self.busy_copied
        if min(room) <= 0:
            return float("inf")
        memory = devices * self.memory_per_device / room[0]
        spread = devices * (self.busy_per_device + devices * self.busy_per_device2)
        return max(memory, spread / room[1])
