"""The sCA server's settings: each with its unit and the reason for its default, checked together."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from sca_server.core import CoreLimits
from sca_server.outbox import OutboxLimits
from sca_server.readers import ReaderLimits
from sca_server.shares import ScaShareLimits
from sca_server.sharing.tenure import TenureLimits
from utuple.cluster.address import check_address, check_place
from utuple.errors import InvalidInput
from utuple.model.value import check_name
from utuple.transport.http2.limits import SERVER


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

    connections: int = SERVER.connections
    """In all; each takes a file descriptor, and some 30 KiB with a reader behind it. The limit on open files is raised to it, if it may be."""
    connections_per_address: int = SERVER.connections_per_address
    """Of one remote address, before anybody is known: one machine cannot have them all. Behind a proxy all have its address."""
    shares: ScaShareLimits = field(default_factory=ScaShareLimits)
    """How much of it one identity may use, of a secured cluster."""

    # --- memory -------------------------------------------------------------------------------------
    max_devices: int = 4_000_000
    """CFs kept: about 0.5 kB each, so 2 GB. With more devices, start more sCA servers."""
    max_templates: int = 100_000
    """Decoded data templates kept for the next CF that asks the same; there are as many as makes of
    devices, not as devices."""
    max_cancelled: int = 1_000_000
    """Cancelled CFs remembered at least, so that a refill under way does not bring them back."""
    remembered_handovers: int = 500_000
    """Confirmed pairs remembered at least, so that a retry is not delivered again: five seconds at 100,000
    commands a second, and a retry follows within a second or two. At most twice as many; about 0.15 kB each."""

    # --- calls --------------------------------------------------------------------------------------
    max_commands_per_call: int = 20_000
    """They are matched in one go: some 0.1 s in which nobody else is served."""
    max_devices_per_call: int = 200_000
    """Rows of one Register; kept in slices, so that commands go on between them."""
    slice_rows: int = 2_000
    """CFs kept in one go: some 10 ms."""
    max_confirm_s: float = 30.0
    """The longest a call may wait for its devices to confirm."""
    max_unconfirmed: int = 500_000
    """Pairs sent and not confirmed, of all streams; beyond it calls are refused as overloaded."""

    # --- readers' streams ---------------------------------------------------------------------------
    max_streams: int = 10_000
    max_attached: int = 1_000_000
    """CFs of one stream: a gateway may speak for a whole city."""
    max_unconfirmed_per_stream: int = 20_000
    """Beyond it the device's commands are answered NOT_CONFIRMED at once: a reader that stopped
    costs this much memory and nobody's time."""
    max_outbox_rows: int = 10_000
    max_outbox_bytes: int = 16 << 20
    """What waits for a reader that does not read: a payload may have 1 MiB."""
    max_message_rows: int = 2_048
    max_message_bytes: int = 4 << 20
    """One message of deliveries: as many as a program sends in one call, so that a gateway is woken once for
    them; small enough that another stream need not wait long."""
    max_notes: int = 1_000
    """Answers that wait for a reader; beyond it, it is not listened to until it reads."""
    flush_s: float = 1.0
    """How long a stream that says good-bye, or a server that stops, may take to write what it has."""

    # --- other sCA servers ----------------------------------------------------------------------------
    meet_every_s: float = 0.5
    """How often the others are met: each meeting is one small call, and there are few of them."""
    meet_limit_s: float = 1.0
    """They answer from memory."""
    silent_s: float = 1.5
    """One that has not answered for so long is away, and its share moves: three meetings missed. A restart by its
    supervisor takes about as long."""
    settle_s: float = 2.5
    """Devices have this long to come to their new sCA server, from when all agree. Those of one that died ask an
    assignment manager every second or so, hear of it from there, and attach."""
    agree_s: float = 1.0
    """Another that does not answer is not waited for longer than this."""
    settle_pause_s: float = 0.5
    """While devices come one after the other within this, more are expected …"""
    settle_most_s: float = 20.0
    """… and while a program says that it brings more, but no longer than this: from then on one that has not come is not
    connected. Less than a client waits for the answer to a command."""
    leave_s: float = 3.0
    """How long one that stops may wait for its devices to go to the others."""

    # --- refill -------------------------------------------------------------------------------------
    table_every_s: float = 1.0
    """How often the table is asked for: a server that is new in a line is noticed after this."""
    call_limit_s: float = 2.0
    """Managers answer from memory; one that needs longer is as good as gone."""
    read_idle_s: float = 10.0
    """A server that sends no CFs for so long is given up and read again."""
    first_retry_s: float = 0.1
    longest_retry_s: float = 5.0
    """Between attempts to read a server: doubled from the first to the longest."""
    max_readings: int = 4
    """Servers read at once: each holds a message of up to 64 MiB."""

    service_us: float = 0.0
    """Artificial work per command, one after the other, so that a small machine can show what several sCA servers give:
    for benchmarks only."""

    # --- upkeep -------------------------------------------------------------------------------------
    upkeep_every_s: float = 1.0
    """How often expired CFs are collected."""
    max_expired_at_once: int = 5_000
    """CFs collected in one go: some 10 ms."""

    def __post_init__(self) -> None:
        check_name("name", self.name)
        if not self.managers:
            raise InvalidInput("managers", (), "name at least one assignment manager")
        check_place(self.listen, self.advertise)
        for address in self.managers:
            check_address("managers", address)
        for knob in fields(self):
            value = getattr(self, knob.name)
            if isinstance(knob.default, int | float) and value < 0:
                raise InvalidInput(knob.name, value, "must not be negative")
            if knob.default and isinstance(knob.default, int | float) and not value:
                raise InvalidInput(knob.name, value, "must be positive")

    @property
    def tenure(self) -> TenureLimits:
        return TenureLimits(
            settle_s=self.settle_s,
            agree_s=self.agree_s,
            pause_s=self.settle_pause_s,
            most_s=self.settle_most_s,
        )

    @property
    def limits(self) -> CoreLimits:
        outbox = OutboxLimits(
            self.max_outbox_rows,
            self.max_outbox_bytes,
            self.max_message_rows,
            self.max_message_bytes,
        )
        readers = ReaderLimits(
            streams=self.max_streams,
            formals=self.max_attached,
            unconfirmed=self.max_unconfirmed_per_stream,
            remembered=self.remembered_handovers,
            stale_s=self.max_confirm_s,
            outbox=outbox,
        )
        return CoreLimits(
            devices=self.max_devices,
            cancelled=self.max_cancelled,
            templates=self.max_templates,
            unconfirmed=self.max_unconfirmed,
            readers=readers,
        )
