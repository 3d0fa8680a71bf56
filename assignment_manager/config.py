"""The settings of an assignment manager: each with its reason and unit, checked together at start."""

from __future__ import annotations

from dataclasses import dataclass

from assignment_manager.gossip import Timeouts
from assignment_manager.ring import TOKENS
from utuple.cluster.address import check_address, check_place
from utuple.errors import InvalidInput
from utuple.model.value import check_name
from utuple.transport.http2.limits import SERVER

_COUNTS = (
    "tokens",
    "connections",
    "connections_per_address",
    "max_keys",
    "max_lines",
    "max_members",
    "max_peers",
    "max_waiting",
)


@dataclass(frozen=True, slots=True)
class Config:
    name: str
    """For ever: its place on the ring follows from it."""
    listen: str
    """HOST:PORT; port 0 takes a free one."""
    advertise: str = ""
    """HOST:PORT as others reach it, where that is not what it listens on (0.0.0.0, address translation)."""
    seeds: tuple[str, ...] = ()
    """Managers to contact until they are known; the others are learned from them."""
    log: str = ""
    """The file it logs to; empty: standard error."""
    credentials: str = ""
    """The file of this program's credentials; empty: nothing is secured."""
    connections: int = SERVER.connections
    """In all; each takes a file descriptor, and some 30 KiB with a reader behind it. The limit on open files is raised to it, if it may be."""
    connections_per_address: int = SERVER.connections_per_address
    """Of one remote address, before anybody is known: one machine cannot have them all. Behind a proxy all have its address."""

    tokens: int = TOKENS
    """Must be the same for all: they compute the same ring."""
    gossip_s: float = 0.5
    """Between two rounds: a few rounds fit into suspect_s, so one lost message suspects nobody."""
    gossip_timeout_s: float = 1.0
    """For one exchange; rounds overlap, so a silent partner delays nobody."""
    suspect_s: float = 2.0
    """Silent for so long: asked last."""
    dead_s: float = 4.0
    """Silent for so long: its peers move to the next managers. Lookups do not wait for this."""
    forget_s: float = 86_400.0
    """Dead for so long: no longer shown, and no longer tried."""

    ask_s: float = 0.4
    """For one hop, which reads memory. With two copies, three such waits stay below a caller's own
    limit of 2 s."""
    pass_on_s: float = 2.0
    """For handing over lines: a large table may take a while to write."""
    unfounded_s: float = 5.0
    """Servers without a table for so long: a log line says how to found the cluster. `utuple up` does it within this."""
    stop_grace_s: float = 1.0
    """For calls in flight when the program is asked to end; clients ask another manager."""

    max_keys: int = 100_000
    """A lookup: 800 kB, some 50 ms of this process."""
    max_lines: int = 10_000
    """An announcement, and what is passed on at once."""
    max_members: int = 1_000
    """A line: more servers than ever help one section."""
    max_peers: int = 200_000
    """The whole table, so that a mistaken announcer cannot fill the memory."""
    max_servers: int = 50_000
    """All servers ever announced, for the same reason."""
    max_managers: int = 1_000
    """In a rumour, for the same reason."""
    max_waiting: int = 1_000
    """Batches waiting to be passed on to one manager. What is dropped beyond is owed again at the next
    gossip."""

    def __post_init__(self) -> None:
        check_name("name", self.name)
        check_place(self.listen, self.advertise)
        for seed in self.seeds:
            check_address("peers", seed)
        for field in ("gossip_s", "gossip_timeout_s", "ask_s", "pass_on_s"):
            if not getattr(self, field) > 0:
                raise InvalidInput(field, getattr(self, field), "must be above 0 seconds")
        if not 2 * self.gossip_s <= self.suspect_s < self.dead_s < self.forget_s:
            raise InvalidInput(
                "suspect_s",
                (self.gossip_s, self.suspect_s, self.dead_s, self.forget_s),
                "must be 2 * gossip_s <= suspect_s < dead_s < forget_s",
            )
        for field in _COUNTS:
            if getattr(self, field) < 1:
                raise InvalidInput(field, getattr(self, field), "must be at least 1")

    @property
    def timeouts(self) -> Timeouts:
        return Timeouts(self.suspect_s, self.dead_s, self.forget_s)
