"""Every knob and limit of the client, with its reason and unit."""

from __future__ import annotations

from dataclasses import dataclass

from utuple.client.routing.retry import Policy
from utuple.client.routing.route import COSTS
from utuple.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Config:
    timeout_s: float = 30.0
    """How long one verb may take, with all its retries, before it gives a definite error; of a `read`, any
    wait for its rows."""

    attempt_s: float = 10.0
    """How long one call with registrations may take before its answer counts as lost."""

    answer_s: float = 5.0
    """What has less time left than this (or half of `timeout_s`) when its turn to be sent comes is not sent:
    "not registered" is better to hear than that nobody knows."""

    first_contact_s: float = 5.0
    """`connect` fails after this when no assignment manager answers: most likely a mistyped port."""

    resolve_s: float = 2.0
    """A cluster that has never answered, and whose names cannot be resolved, is given up after this: most likely a
    name is mistyped. A resolver that fails for a moment has answered by then."""

    confirm_s: float = 5.0
    """How long a command waits for devices to say they have it."""

    command_s: float = 15.0
    """How long one call with simple commands may take before its answer counts as lost: its devices have `confirm_s` of it,
    and an sCA server that has stopped must leave time to try another."""

    same_member_s: float = 5.0
    """A registration whose answer was lost stays with its member this long: only that member can say
    whether it has it, and another would store it twice."""

    first_wait_s: float = 0.05
    most_wait_s: float = 1.0
    """Back-off between attempts: doubles from the first to the most, with jitter."""

    refresh_every_s: float = 0.5
    """Lookups because a server is silent are not asked more often than this."""

    look_again_every_s: float = 30.0
    """Open watches and devices hear of new lines from their servers; should that word be lost, they find
    out by asking an assignment manager this often."""

    told_at_once: int = 100
    """Watches and devices told in one go that lines or sCA servers have changed: each has something to do then, and
    deliveries should not wait for thousands of them."""

    choice: str = "adaptive"
    """How an event's server is chosen among several that would do: see `utuple.client.routing.route`."""

    batch_rows: int = 12_288
    batch_bytes: int = 8 << 20
    """One call to a server: large enough that the call costs nothing per uTuple, and a reader of a thousand EFs little
    per EF; small enough that others get their turn in the writer's order (a tenth of a second)."""

    calls_in_flight: int = 2
    """Calls per server at once: one is answered while the next travels. What comes in meanwhile
    leaves together as the next batch."""

    few_calls_in_flight: int = 8
    few_rows: int = 64
    """Calls in flight per server while fewer than `few_rows` rows are in flight: a lonely event would wait for the answers
    to others longer than its own call costs."""

    command_calls_in_flight: int = 32
    """Calls with simple commands per sCA server at once: more, because a call waits for its slowest
    device to confirm."""

    queued_rows: int = 65_536
    queued_bytes: int = 64 << 20
    """uTuples waiting for one server; beyond it `emit` waits."""

    stuck_s: float = 0.5
    """What waits behind a call that is not answered for this long goes to another server that would do:
    one that has stopped must not hold what it was never sent."""

    slices_in_flight: int = 4
    most_slices_in_flight: int = 32
    """Batches of one `emit_many` on their way at once: as many as its servers take calls, between these.
    With fewer a hot key's servers would wait for work; each may be of `batch_bytes`."""

    window: int = 10_000
    """Deliveries one server may send ahead of the application, per watch."""

    window_bytes: int = 8 << 20
    """And so many bytes of those with payloads above 512 bytes, the last of which may go beyond it: a watch holds no more than
    that of events of a megabyte each, whoever sends them."""

    seen_bytes: int = 64 << 20
    """What a space remembers of the ids its watches and devices were given, to drop repeats by: some 300,000 events, each once
    however many watches were given it. A repeat comes within seconds: when a sender tries another server."""

    seen_ids: int = 1_000_000
    """Ids one `read` remembers for the same reason while it lasts; about 90 MB when full."""

    unacknowledged: int = 1_000_000
    """Deliveries a watch follows one by one until they are acknowledged; beyond it they are counted,
    and the position moves on when all of them are acknowledged."""

    unflushed_readers: int = 10_000
    """Closed readers with a name whose last acknowledgements no server has confirmed, and that a space remembers until they are
    opened again; beyond it the oldest is forgotten. A few hundred bytes each."""

    acknowledge_every_s: float = 0.2
    """Acknowledgements are gathered this long before they are sent: a thousand watches' words weigh more than
    their deliveries, and servers make them durable as rarely."""

    session_lifetime_s: float = 60.0
    """What an unnamed reader's EF or CF lives after its connection is lost."""

    attach_s: float = 5.0
    """A watch is open when every member streams to it, or after this: the rest attach as they come."""

    detach_s: float = 2.0
    """Closing waits this long for a server to say that it has the last acknowledgements, and to answer calls."""

    read_ahead_chunks: int = 4
    """Chunks of stored matches `read` holds for an application that is slower than the servers."""

    page_rows: int = 1_000
    page_bytes: int = 8 << 20
    """What a `read` in order of time asks each member for at once. A page whose payloads reach so many bytes is cut there:
    what was not taken of it is asked for again."""

    @property
    def retry(self) -> Policy:
        """How verbs and sessions wait before they try again."""
        return Policy(self.first_wait_s, self.most_wait_s, self.same_member_s)

    def __post_init__(self) -> None:
        if self.choice not in tuple(COSTS):
            raise InvalidInput("choice", self.choice, f"must be one of {', '.join(COSTS)}")
        for name in set(self.__slots__) - {"choice"}:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise InvalidInput(name, value, "must be a number above 0")
        if self.first_wait_s > self.most_wait_s:
            raise InvalidInput("first_wait_s", self.first_wait_s, "must not exceed most_wait_s")
        if self.slices_in_flight > self.most_slices_in_flight:
            raise InvalidInput(
                "slices_in_flight", self.slices_in_flight, "must not exceed most_slices_in_flight"
            )
