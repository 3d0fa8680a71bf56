"""The dispatcher of commands: carries CAs to the stored CFs they meet, and knows which devices have them.

Commands of one family are searched one after another in seq order, so that a device gets them in that order; those of
other families do not wait for them. One that comes again while it waits does not wait twice, and one that was searched
is not searched again under the same line: members are visited anew whenever a line changes or an answer was late, and a
queue that grows by that is never done."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from functools import partial

from utuple.errors import Conflict, Overloaded
from utuple.model.columns import Columns
from utuple.model.key import key_of
from utuple.model.packed import Packed
from utuple.model.utuple import Family
from utuple.model.weight import weight_bytes
from utuple.runtime.clock import now_us
from utuple.runtime.logs import Log
from utuple.runtime.tasks import Tasks
from utuple.server.delivering.acknowledged import AcknowledgedElsewhere
from utuple.server.delivering.cursors import Cursors
from utuple.server.delivering.devices import Device, Devices
from utuple.server.delivering.handover import Handover, Handovers
from utuple.server.delivering.outbox import CommandSending
from utuple.server.delivering.standings import Standings
from utuple.server.matching.matched import Matches
from utuple.server.ports import DeliveryPort
from utuple.store.contract import (
    NO_SEQ,
    Batch,
    Recovered,
    Search,
    StoredTemplate,
    StoreUnavailable,
)

_log = Log("utuple.server.delivering.commands")
_ASKED = 1_000
"""CFs of one search by id."""
_RECENT_DEVICES = 10_000
"""CFs remembered after registration: their attachment, which follows at once, needs no search."""


class CommandDispatcher:
    def __init__(
        self,
        engine: DeliveryPort,
        cursors: Cursors,
        tasks: Tasks,
        send: Callable[[int, CommandSending], None],
    ) -> None:
        self._engine = engine
        self._cursors = cursors
        self._tasks = tasks
        self._send = send
        self.devices = Devices()
        self.elsewhere = AcknowledgedElsewhere()
        self._recent: OrderedDict[bytes, tuple[Columns | None, int]] = OrderedDict()
        """With their expiries."""
        self._commands: dict[Family, dict[bytes, StoredTemplate]] = {}
        """To be handed out, by id and in order, while a task does so."""
        self.handovers, self.standings = Handovers(), Standings()

    def take_over(self, recovered: Recovered) -> None:
        """The store was opened (again)."""
        self.standings.take_over(self._engine.writer.seq)
        self.elsewhere.restore(recovered.notes, self._engine.writer.templates)
        for device in self.devices:
            self.match(device)

    # --- devices ---------------------------------------------------------------------------------

    async def row_of(self, formal: bytes) -> Columns | None:
        """The CF itself, as a batch of one."""
        row, expires_us = self._recent.get(formal, (None, 0))
        if (
            expires_us > now_us()
        ):  # what has expired may have left the store, and commands would not find it
            return row
        async with aclosing(self._engine.store.devices(now_us(), [formal])) as found:
            async for batch in found:
                return batch.columns
        return None

    def family_of(self, formal: bytes) -> Family | None:
        device = self.devices.get(formal)
        row = device.row if device is not None else self._recent.get(formal, (None, 0))[0]
        return row.families[row.family[0]] if row is not None else None

    def reader_of(self, formal: bytes) -> str | None:
        """Of a CF that is attached, or was registered lately."""
        device = self.devices.get(formal)
        row = device.row if device is not None else self._recent.get(formal, (None, 0))[0]
        if row is None:
            return None
        return row.readers[0] if row.readers else ""

    def forget(self, id_: bytes) -> None:
        """A CF or a CA is gone."""
        self.devices.detach(id_)
        self._recent.pop(id_, None)
        if self.standings.get(id_) is not None:
            self.standings.ended(id_, self.elsewhere.devices_of(id_), now_us())
        self.elsewhere.forget(id_)

    def registered(self, batch: Batch, matches: Matches) -> None:
        """CFs are stored, with the living CAs they meet."""
        for row, id_ in enumerate(batch.columns.each_id()):
            self._recent[id_] = batch.columns.take([row]), batch.expires_us[row]
            self._recent.move_to_end(id_)
        for row, id_ in matches.pairs():
            handover = self.handovers.get(id_)
            if handover is not None:
                handover.devices[batch.columns.id_at(row)] = batch.columns.addresses[row]
            self._give(batch.columns.id_at(row), id_)
        while len(self._recent) > _RECENT_DEVICES:
            self._recent.popitem(last=False)

    def match(self, device: Device) -> None:
        """The living CAs a device has not acknowledged, oldest first."""
        writer = self._engine.writer
        committed = self._cursors.committed
        found = [writer.templates[id_] for id_ in writer.commands_for(device.row, now_us()).ids]
        for stored in sorted(found, key=lambda stored: stored.seq):
            if device.after < stored.seq <= committed:
                self._give(device.id, stored.packed.id)

    def has_acknowledged(self, formal: bytes, stored: StoredTemplate) -> bool:
        """In this life of its program or one before; here, or at a server that was drained since."""
        standing = self.standings.get(stored.packed.id)
        if standing is not None and formal in standing.acknowledged:
            return True
        is_past = NO_SEQ < stored.seq <= self._cursors.acknowledged(formal)
        if is_past and (standing is None or formal not in standing.passed):
            return True
        return self.elsewhere.has(formal, stored.packed.id)

    def acknowledged(self, formal: bytes, before: int) -> None:
        """A position has gone on from there; an EF's is not of commands."""
        if formal not in self._engine.writer.templates:
            self.standings.advance(formal, before, self._cursors.acknowledged(formal), now_us())

    def acknowledged_by(self, row: Columns) -> list[bytes]:
        """The living CAs that this CF, a batch of one, has acknowledged."""
        writer, formal = self._engine.writer, row.id_at(0)
        found = [writer.templates[id_] for id_ in writer.commands_for(row, now_us()).ids]
        return [one.packed.id for one in found if self.has_acknowledged(formal, one)]

    async def all_acknowledged(self) -> AsyncIterator[tuple[Family, bytes, list[bytes]]]:
        """By CF, with its family: the living CAs that each has acknowledged, if any."""
        known = self._engine.writer.templates
        acknowledged = {one.formal for one in self._cursors.positions()}
        formals = sorted((acknowledged | self.elsewhere.devices).difference(known))
        for first in range(0, len(formals), _ASKED):
            some = formals[first : first + _ASKED]
            async with aclosing(self._engine.store.devices(now_us(), some)) as found:
                async for batch in found:
                    for row, formal in enumerate(batch.columns.each_id()):
                        one = batch.columns.take([row])
                        if ids := self.acknowledged_by(one):
                            yield one.families[one.family[0]], formal, ids

    def taken(self, formal: bytes, count: int, weight_bytes: int) -> None:
        if self.devices.taken(formal, count, weight_bytes):
            device = self.devices.get(formal)
            assert device is not None
            self.match(device)

    # --- commands --------------------------------------------------------------------------------

    def confirm(self, formal: bytes, command: bytes) -> None:
        """A device's program has this command."""
        self.devices.confirm(formal, command)
        device = self.devices.get(formal)
        if device is not None:
            self.standings.handed(formal, device.row.addresses[0], command)
        handover = self.handovers.get(command)
        if handover is not None:
            handover.have_it.add(formal)
            handover.settle()

    def expect(self, command: Packed) -> Handover:
        """Someone waits for this command's devices; ends with `handovers.forget`. One that is here already adds nothing
        to a queue, so only a new one may be refused, and before anything of it is registered. What comes under the id of
        another command must not be given to whom that one has met (law 8)."""
        family, known = command.family, self.handovers.get(command.id)
        if known is not None and known.of not in (None, command):
            raise Conflict(f"id: {command.id.hex()} is that of another command")
        waiting = self._commands.get(family, {})
        if known is None and command.id not in waiting:
            config = self._engine.config
            is_full = len(self.handovers) >= config.max_commands
            if is_full or len(waiting) >= config.max_family_commands:
                said = (
                    f"{len(waiting)} commands of {'/'.join(family)} wait for their devices already"
                )
                raise Overloaded(f"{said}; nothing was registered")
        handover = self.handovers.expect(command.id)
        handover.of = command
        return handover

    def queue(self, stored: StoredTemplate) -> None:
        """A CA is stored or of lifetime 0: it goes to the CFs it meets. If they were found before, there is nothing to
        search; some may be attached by now that were not then."""
        self.standings.begin(stored)
        family = stored.packed.family
        handover = self.handovers.get(stored.packed.id)
        if handover is not None and handover.is_complete(self._epoch_of(family)):
            for formal in handover.devices:
                self._hand_to(formal, stored, handover)
            return
        if handover is not None:
            handover.search_again()
        waiting = self._commands.get(family)
        if waiting is None:
            waiting = self._commands[family] = {}
            hand_out = partial(self._hand_out_all, family, waiting)
            self._tasks.keep(hand_out, "commands")
        waiting.setdefault(stored.packed.id, stored)

    async def _hand_out_all(self, family: Family, waiting: dict[bytes, StoredTemplate]) -> None:
        while waiting:
            command = next(iter(waiting))
            stored = waiting.pop(command)
            while self._is_wanted(command):
                try:
                    await self._hand_out(stored)
                    break
                except StoreUnavailable as error:
                    _log.warning("command search broken off", reason=error)
                    await asyncio.sleep(self._engine.config.reopen_s)
        del self._commands[family]

    def _is_wanted(self, command: bytes) -> bool:
        """Someone waits for it, or it is kept for devices. Of lifetime 0, it ends with the calls that brought it: those
        who made them know that they know nothing."""
        return self.handovers.is_expected(command) or command in self._engine.writer.templates

    async def _hand_out(self, stored: StoredTemplate) -> None:
        """Give a CA to the stored CFs it meets: to all that are stored by now, since it may have come again after some
        were brought here by a move."""
        command = stored.packed.id
        handover = self.handovers.get(command) or Handover(stored.packed)
        epoch = self._epoch_of(stored.packed.family)
        committed = self._cursors.committed
        search = Search(stored.utuple, 0, committed, now_us())
        async with aclosing(self._engine.store.search(search)) as found:
            async for batch in found:
                for row, formal in enumerate(batch.columns.each_id()):
                    handover.devices[formal] = batch.columns.addresses[row]
                    self._hand_to(formal, stored, handover)
        if command not in self._commands[stored.packed.family]:  # else it has come again meanwhile
            handover.searched(epoch)
            self.handovers.remember(command, handover)

    def _epoch_of(self, family: Family) -> int:
        """By the durable lines: the writer's own may be ahead of what a search finds."""
        line = self._engine.lines.line_of(key_of(*family))
        return 0 if line is None else line.epoch

    def _hand_to(self, formal: bytes, stored: StoredTemplate, handover: Handover) -> None:
        if self.has_acknowledged(formal, stored):
            handover.have_it.add(formal)
            return
        self._give_one(formal, stored, waited=False)
        if self.devices.has(formal, stored.packed.id):
            handover.have_it.add(formal)
        elif self.devices.get(formal) is not None:
            handover.sent.add(formal)

    def _give(self, formal: bytes, command: bytes) -> None:
        stored = self._engine.writer.templates.get(command)
        if stored is not None and not self.has_acknowledged(formal, stored):
            self._give_one(formal, stored, waited=True)

    def _give_one(self, formal: bytes, stored: StoredTemplate, *, waited: bool) -> None:
        weight = weight_bytes([stored.packed.payload], (0,))
        if not self.devices.give(formal, stored.packed.id, weight):
            return
        device = self.devices.get(formal)
        assert device is not None
        self._send(
            device.stream,
            CommandSending(
                formal,
                stored.packed.id,
                stored.seq,
                stored.packed.family,
                device.row.addresses[0],
                stored.packed.payload,
                waited,
            ),
        )
