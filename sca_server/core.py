"""What an sCA server does, without a network: registers, attaches, matches, hands over.

Every method takes the time and returns what the shell has to do: streams to wake because they have
something to write, rounds to answer because nothing is open in them. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sca_server.commands import Commands
from sca_server.index import Device, Index, Templates
from sca_server.matcher import match
from sca_server.outbox import Servers
from sca_server.readers import ReaderLimits, Readers, Round, Stream
from sca_server.sharing.awake import Awake
from sca_server.sharing.tenure import Tenure, alone
from utuple.delivery.notice import News, Notice
from utuple.errors import Conflict, InvalidInput, Overloaded
from utuple.model.area import check_position
from utuple.model.columns import MICROSECONDS, Columns
from utuple.model.utuple import check_id, check_lifetime, check_time
from utuple.model.value import check_name


@dataclass(frozen=True, slots=True)
class CoreLimits:
    devices: int
    cancelled: int
    templates: int
    unconfirmed: int
    """Pairs sent and not confirmed, of all streams."""
    readers: ReaderLimits


class Core:
    def __init__(
        self, limits: CoreLimits, tenure: Tenure | None = None, awake: Awake | None = None
    ) -> None:
        """Without a tenure it is the only sCA server there is."""
        self._limits = limits
        self.tenure = tenure or alone()
        self.awake = awake or Awake(math.inf, 0.0)
        """The time that `tenure` goes by."""
        self.servers = Servers(())
        """All sCA servers: for whoever has come to the wrong one."""
        self._templates = Templates(limits.templates)
        self.index = Index(most=limits.devices, most_cancelled=limits.cancelled)
        self.readers = Readers(limits.readers)
        self.commands = 0

    # --- CFs ------------------------------------------------------------------------------------------

    def register(
        self, columns: Columns, rows: Iterable[int], now_us: int
    ) -> list[tuple[int, InvalidInput | Conflict]]:
        """These rows; the refused ones with their reasons. Lifetime 0 means to match now and keep
        nothing, and there is nothing kept here that a CF could match. Those of other sCA servers are only checked."""
        wrong: list[tuple[int, InvalidInput | Conflict]] = []
        for row in rows:
            try:
                self._templates.check(columns.payloads[row])
                device = self.device_at(columns, row)
                if device.lifetime_us > 0 and self._owns(device):
                    self.index.put(device, now_us)
            except (InvalidInput, Conflict) as error:
                wrong.append((row, error))
        return wrong

    def fill(
        self, columns: Columns, rows: Iterable[int], now_us: int
    ) -> list[tuple[int, InvalidInput]]:
        """Rows read from a uTupleServer: those of our share."""
        wrong: list[tuple[int, InvalidInput]] = []
        for row in rows:
            try:
                family = columns.families[columns.family[row]]
                if self.tenure.owns(family, columns.addresses[row]):
                    self.index.fill(self.device_at(columns, row), now_us)
            except InvalidInput as error:
                wrong.append((row, error))
        return wrong

    def make_room(self, columns: Columns, rows: Iterable[int]) -> None:
        """For those of these rows that are ours; refused as a whole before any of it is kept."""
        self.index.make_room(self._own_ids(columns, rows))

    def count_new(self, columns: Columns) -> int:
        """How many of these would be kept that are not yet."""
        return self.index.count_new(self._own_ids(columns, range(len(columns))))

    def _own_ids(self, columns: Columns, rows: Iterable[int]) -> Iterator[bytes]:
        owns = self.tenure.owns
        return (
            columns.id_at(row)
            for row in rows
            if owns(columns.families[columns.family[row]], columns.addresses[row])
        )

    def has_strays(self, columns: Columns) -> bool:
        """Is one of these another's?"""
        owns = self.tenure.owns
        return not self.tenure.has_all and not all(
            owns(columns.families[number], address)
            for number, address in zip(columns.family, columns.addresses, strict=True)
        )

    def _owns(self, device: Device) -> bool:
        return self.tenure.owns(device.family, device.address)

    def forget_strays(self, devices: Iterable[Device]) -> None:
        """Other sCA servers have them now. Those whose programs are still attached go when these leave."""
        for device in devices:
            if device.id not in self.readers.attached and not self._owns(device):
                self.index.forget(device)

    def tell_servers(self, servers: Servers) -> Iterable[Stream]:
        """All readers are told who the sCA servers are; their streams are to be woken."""
        self.servers = servers
        streams = self.readers.streams
        for stream in streams:
            stream.outbox.put(servers)
        return streams

    def device_at(self, columns: Columns, row: int) -> Device:
        """One row as a CF, checked as the model demands."""
        address = check_name("address", columns.addresses[row])
        reader = check_name("reader", columns.readers[row] if columns.readers else "")
        check_time("time", columns.times_us[row])
        lat, lon = columns.lats[row], columns.lons[row]
        if lat == lat or lon == lon:
            check_position("position", (lat, lon))
        lifetime_us = columns.lifetimes_us[row]
        check_lifetime(lifetime_us / MICROSECONDS)
        template = self._templates.of(columns.payloads[row])
        family = columns.families[columns.family[row]]
        return Device(columns.id_at(row), family, address, template, reader, lifetime_us)

    def cancel(self, id_: bytes, by: str = "") -> Stream | None:
        """Forget a CF; its stream, if it has one, is told. `by`: whose it must be, if it is not here yet."""
        self.index.remove(check_id(id_), by)
        return self.readers.detach(id_)

    # --- readers' streams -----------------------------------------------------------------------------

    def open(self) -> Stream:
        """It hears first who the sCA servers are, this life of this one among them."""
        stream = self.readers.open()
        stream.outbox.put(self.servers)
        return stream

    def attach(
        self,
        stream: Stream,
        id_: bytes,
        reader: str,
        registration: Columns | None,
        now_us: int,
        generation: int = 0,
        attempt: int = 0,
    ) -> Stream | None:
        """The stream that held this CF before, if another did. Of two that serve it under one name the one of
        the higher generation holds it."""
        device = self._registration(check_id(id_), registration) or self.index.get(id_, now_us)
        if device is None:
            stream.outbox.put(Notice(News.UNKNOWN, id_, generation))
            return None
        if reader and reader != device.reader:
            raise InvalidInput("reader", reader, f"this CF is registered for {device.reader!r}")
        later = self.readers.attached.later_than(id_, generation)
        if later is not None:
            stream.outbox.put(Notice(News.REPLACED, id_, later))
            return None
        if self.readers.attached.is_outdated(id_, generation, attempt):
            return None
        if not self._owns(device):  # a guest, until it has heard of whom it belongs to
            stream.outbox.put(self.servers)
        if registration is not None:
            self.index.make_room([id_])
            self.index.put(device, now_us)
        replaced = self.readers.attach(stream, id_, generation, attempt)
        self.index.hold(id_)
        return replaced

    def _registration(self, id_: bytes, registration: Columns | None) -> Device | None:
        if registration is None:
            return None
        if len(registration) != 1 or registration.id_at(0) != id_:
            raise InvalidInput(
                "registration", f"{len(registration)} rows", "must be the one CF that is attached"
            )
        return self.device_at(registration, 0)

    def detach(
        self,
        stream: Stream,
        id_: bytes,
        *,
        cancel: bool,
        now_us: int,
        generation: int = 0,
        by: str = "",
    ) -> None:
        """Of a CF that another holds by now, this one has no say any more."""
        if not self.readers.attached.may_end(check_id(id_), stream, generation):
            stream.outbox.put(Notice(News.DETACHED, id_, generation))
            return
        was_held = self.readers.detach(id_, generation) is not None
        if not was_held:
            stream.outbox.put(Notice(News.DETACHED, id_, generation))
        if cancel:
            self.index.remove(id_, by)
        elif was_held:
            self._let_go(id_, now_us)

    def _let_go(self, id_: bytes, now_us: int) -> None:
        self.index.let_go(id_, now_us)
        device = self.index.get(id_, now_us)
        if device is not None and not self._owns(device):
            self.index.forget(device)

    def close(self, stream: Stream, now_us: int) -> list[Round]:
        self.tenure.bring(stream, more=False)
        formals, done = self.readers.close(stream)
        for formal in formals:
            self._let_go(formal, now_us)
        return done

    # --- commands -------------------------------------------------------------------------------------

    def hand_over(
        self, commands: Commands, *, now_us: int, now_s: float, deadline_s: float
    ) -> tuple[Round, Sequence[int], Sequence[bytes], set[Stream]]:
        """The round; per hand-over in it the command's row and the device's CF; and the streams to wake."""
        if self.readers.unconfirmed + len(commands) > self._limits.unconfirmed:
            raise Overloaded("too many commands wait for their devices to confirm")
        self.commands += len(commands)
        round_ = Round(deadline_s)
        rows, devices = match(self.index, commands, now_us)
        ids = list(map(commands.id_at, rows))
        formals = [device.id for device in devices]
        payloads = list(map(commands.payloads.__getitem__, rows))
        awake = self.readers.hand(round_, ids, formals, payloads, now_s)
        return round_, rows, formals, awake
