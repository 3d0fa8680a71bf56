"""Every knob of a uTupleServer, with its reason and unit."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from utuple.cluster.address import check_place
from utuple.errors import InvalidInput
from utuple.model.value import check_name
from utuple.server.sharing import ShareLimits
from utuple.transport.http2.limits import SERVER

CAPACITY_BYTES = 140 * 10**9
"""What a store may grow to unless told otherwise (section 4.1.2)."""


@dataclass(frozen=True, slots=True)
class ServerConfig:
    name: str
    listen: str
    database: str
    managers: tuple[str, ...]
    create: bool = False
    """Make the database and the store in it if they are missing: for a new server only. Else a misspelt address would
    begin an empty store beside the real one."""
    unsafe: bool = False
    """Serve on a PostgreSQL that may lose what it has answered: for experiments only."""
    capacity_bytes: int = CAPACITY_BYTES
    """The memory load is measured against it."""
    max_queued_rows: int = 200_000
    """uTuples waiting for the writer; beyond it calls are refused with "retry after"."""
    max_queued_bytes: int = 256 << 20
    max_wait_s: float = 1.0
    """What the writer will not come to within this is refused too: callers have given up on an answer
    before a long queue is done, and afterwards it would keep newcomers waiting."""
    answer_share: float = 0.8
    """Of the time a caller waits, the part within which it is answered, or refused: the rest is for the way back
    and for a commit that takes longer than those before it."""
    max_batch_rows: int = 20_000
    """Rows of one transaction: keeps a commit, and so everyone's wait, to some tens of milliseconds."""
    max_batch_bytes: int = 16 << 20
    """Bytes of one transaction, or of one call if that is larger: for the same reason."""
    ahead_rows: int = 2_048
    """When so many wait while a batch is being committed, they are prepared meanwhile. Fewer wait on, since others
    may join them: preparing takes no time then, and commits do."""
    max_stream_rows: int = 100_000
    """Deliveries queued on one reader's stream; beyond it its formals fall back to the store."""
    max_stream_bytes: int = 64 << 20
    """Of their payloads beyond the light ones, each once: some messages. A reader of a thousand formals has not a thousand
    windows on its way."""
    max_window: int = 100_000
    """The most deliveries a reader may ask to have outstanding for one formal."""
    max_window_bytes: int = 64 << 20
    """And the most bytes of those."""
    max_pending_bytes: int = 16 << 20
    """What is committed while a formal's stored search waits or runs, in memory; beyond it the store is read again."""
    max_all_pending_bytes: int = 256 << 20
    """The same of all formals together: thousands may be opened at once."""
    passing_s: float = 5.0
    """How long matches of lifetime 0 wait for a reader that is not attached: readers follow their line to a new member,
    and come back after a broken connection, within a second or two."""
    max_passing_rows: int = 10_000
    """Of those, in all: some megabytes."""
    max_passing_bytes: int = 16 << 20
    """If they are large."""
    away_s: float = 1.0
    """A reader with a drop policy whose connection broke counts as away after so long: mostly the same program is back by
    then. One that says goodbye is away at once."""
    late_s: float = 60.0
    """How long after its end an EA is still given to an EF that was there before it: a server that was killed is back by
    then, and so are its readers. The store keeps it for as long."""
    max_readings: int = 4_096
    """Stored searches of readers that run or wait for their turn in the store, which is where turns are fair: each costs
    some kilobytes."""
    together_least: int = 16
    """EFs of one stream and one family that wait for the store at once, from which on one search is made for all of them: everything
    of the family is read then, which costs as much as some ten searches for one EF each."""
    together_rows_each: int = 100
    """The most registrations behind, for each of them. Who is further behind searches alone: it may ask for few of very many rows."""
    max_commands: int = 10_000
    """Calls that wait for the devices of a command: beyond that a command is refused, and comes again in a second."""
    max_family_commands: int = 1_000
    """Commands of one family that wait for their search. They are searched one after another: where a search takes 10 ms, the
    last of them waits for 10 s."""
    receipt_portion_bytes: int = 256 << 10
    """Of a command's devices in one answer, some thousands: a message has a limit, and so has a turn of the event loop. Its
    caller asks for the next ones."""
    max_confirm_s: float = 60.0
    """The longest a command's caller may wait for devices to confirm."""
    advertise: str = ""
    """HOST:PORT told to others, where it is not the one listened on: behind a proxy or a translation."""
    log: str = ""
    """The file it logs to; empty: standard error."""
    connections: int = SERVER.connections
    """In all; each takes a file descriptor, and some 30 KiB with a reader behind it. The limit on open files is raised to it, if it may be."""
    connections_per_address: int = SERVER.connections_per_address
    """Of one remote address, before anybody is known: one machine cannot have them all. Behind a proxy all have its address."""
    shares: ShareLimits = field(default_factory=ShareLimits)
    """How much of it one identity may use, of a secured cluster."""
    credentials: str = ""
    """The file of this program's credentials; empty: nothing is secured."""
    service_us: float = 0.0
    """Artificial work per uTuple, for experiments with more servers than cores."""
    hold_limit_s: float = 1.0
    """The longest EFs and CAs are held back by a move before they go on and it tries again."""
    teach_portion: int = 4_000
    """EFs and CAs in one message to a learner: some milliseconds in which neither event loop does anything
    else."""
    teach_portion_bytes: int = 2 << 20
    """Of them in one message, unless one alone is larger: for the same reason, and because no program takes a message of
    more than 64 MiB."""
    move_limit_s: float = 60.0
    """A move that has not come to its commit by then is given up."""
    other_s: float = 5.0
    """For one call to another server."""
    tell_again_s: float = 0.5
    """Between two attempts to tell a server of a new epoch; doubles up to ten times this."""
    census_s: float = 10.0
    """How often the sections' rows are counted."""
    save_positions_s: float = 0.25
    """How long acknowledged positions are gathered before they are made durable, unless a reader leaves: they
    ride along with registrations, and a thousand readers' would weigh more than those."""
    save_position_s: float = 0.001
    """As long as this for each of them, if that is longer: to save one takes some ten microseconds of the writer's
    time."""
    save_positions_most_s: float = 1.0
    """But no longer than this, however many there are."""
    tick_s: float = 1.0
    """How often formals are renewed and dead ones dropped from memory."""
    collect_s: float = 30.0
    stats_s: float = 5.0
    database_wait_s: float = inf
    """How long, in seconds, a starting server waits for its PostgreSQL, which it tells every few seconds, before it ends with
    the reason. Programs may be started in any order, so for ever; `utuple up` says less, since a person waits for it."""
    reopen_s: float = 0.2
    """Wait between attempts to reach a PostgreSQL that is gone; doubles up to ten times this."""
    stop_s: float = 5.0
    """How long a stopping server waits for calls under way."""

    def __post_init__(self) -> None:
        check_name("name", self.name)
        check_place(self.listen, self.advertise)
        if not self.managers:
            raise InvalidInput(
                "managers", self.managers, "at least one assignment manager is needed"
            )
        if not self.database:
            raise InvalidInput("database", self.database, "must be a postgresql:// address")
        if not self.database_wait_s >= 0:
            raise InvalidInput("database_wait_s", self.database_wait_s, "must be 0 or more seconds")
        for knob in ("capacity_bytes", "connections", "connections_per_address"):
            if getattr(self, knob) <= 0:
                raise InvalidInput(knob, getattr(self, knob), "must be above 0")

    def gathering_s(self, positions: int) -> float:
        """How long acknowledged positions are gathered, when so many were saved the last time."""
        many_s = min(positions * self.save_position_s, self.save_positions_most_s)
        return max(self.save_positions_s, many_s)
