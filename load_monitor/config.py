"""The load monitor's settings: each with its unit and the reason for its default, checked together."""

from __future__ import annotations

from dataclasses import dataclass, fields

from load_monitor.planning.policy import LIVE, Policy
from load_monitor.telemetry import NOT_KEPT, TelemetryConfig
from utuple.cluster.address import check_address, check_place
from utuple.errors import InvalidInput
from utuple.model.value import check_name


@dataclass(frozen=True, slots=True)
class Config:
    name: str
    listen: str
    """HOST:PORT; port 0 takes a free one."""
    managers: tuple[str, ...]
    """Assignment managers, HOST:PORT each. One that answers is enough."""
    advertise: str = ""
    """HOST:PORT as others reach it, where that is not what it listens on."""
    log: str = ""
    """The file it logs to; empty: standard error."""
    credentials: str = ""
    """The file of this program's credentials; empty: nothing is secured."""
    policy: Policy = LIVE
    telemetry: TelemetryConfig = NOT_KEPT
    elastic: str = ""
    """elastic.toml: servers and machines come and go with the load; empty: they stay."""
    data: str = ""
    """The folder of a cluster on this machine, whose supervisor makes servers."""

    poll_s: float = 1.0
    """Between two looks at the cluster: several within the smoothing, few enough to cost nothing."""
    call_limit_s: float = 1.0
    """Status and table are answered from memory; a server that needs longer was not heard this time."""
    order_limit_s: float = 5.0
    """An order is answered once it is durable at the home."""
    again_s: float = 3.0
    """An order that was refused or not answered is given again only after this: the line, the other
    monitor's move or the home's trouble needs a moment to show."""

    def __post_init__(self) -> None:
        check_name("name", self.name)
        if not self.managers:
            raise InvalidInput("managers", (), "name at least one assignment manager")
        check_place(self.listen, self.advertise)
        for address in self.managers:
            check_address("managers", address)
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(field.default, float) and not 0 < value < float("inf"):
                raise InvalidInput(field.name, value, "must be positive")
        if self.poll_s + self.call_limit_s > self.policy.silent_s / 2:
            raise InvalidInput(
                "silent_s",
                self.policy.silent_s,
                "must leave time for two polls: one lost answer is no silence",
            )
