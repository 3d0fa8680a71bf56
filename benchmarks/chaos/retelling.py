"""From what was written down to the checker's history."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.chaos import record
from benchmarks.chaos.checker import History, Outcome
from benchmarks.chaos.load.scene import actual_of, asked_from, machine_from, order_from, utuple_id
from benchmarks.chaos.record import Life
from utuple.model.utuple import Family
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_from_wire

NAMED_LIFETIME_S = 86_400.0
OWN_LIFETIME_S = 60.0

Said = dict[str, Any]


@dataclass(slots=True)
class _Service:
    """One opening of a device, for receipts: which label had the address when."""

    label: str
    address: str
    from_us: int
    until_us: int | None = None


@dataclass(slots=True)
class Retelling:
    history: History = field(default_factory=History)
    _asked: dict[str, Said] = field(default_factory=dict)
    _pending: dict[int, Said] = field(default_factory=dict)
    _commands: list[tuple[Said, Said | None]] = field(default_factory=list)
    _services: list[_Service] = field(default_factory=list)
    _own: dict[str, str] = field(default_factory=dict)
    """Labels without a reader's name that are open, each with the kind of line that would close it."""

    def tell_all(self, folder: Path) -> History:
        before = None
        for life in record.lives_in(folder):
            if before is not None and before.program != life.program:
                self._own.clear()  # open to the end
            self._tell(life)
            before = life
        for said, answer in self._commands:
            self._commanded(said, answer)
        return self.history

    def _tell(self, life: Life) -> None:
        first = True
        for said in life.lines():
            if first:
                self._bury(said["at_us"])
                first = False
            self._line(said)
        for said in self._pending.values():  # its program died, or was ended, before the answer
            if "data" in said:
                self.history.emitted(actual_of(said), said["at_us"], said["at_us"], Outcome.UNKNOWN)
            else:
                self._commands.append((said, None))
        self._pending.clear()

    def _bury(self, at_us: int) -> None:
        """A program that starts again does not come back to what had no reader's name."""
        for label, kind in self._own.items():
            self._close(label, kind, at_us)
        self._own.clear()

    def _line(self, said: Said) -> None:
        match said["what"]:
            case record.EMIT | record.COMMAND:
                number = said["n"] if "n" in said else said["data"]["n"]
                self._pending[number] = said
            case record.EMITTED:
                for number in said["ns"]:
                    asked = self._pending.pop(number)
                    outcome = Outcome[said["outcome"]]
                    self.history.emitted(actual_of(asked), asked["at_us"], said["at_us"], outcome)
            case record.COMMANDED:
                self._commands.append((self._pending.pop(said["n"]), said))
            case record.ASK | record.SERVE:
                self._asked.setdefault(said["label"], said)
            case record.OPEN | record.SERVING:
                self._open(said)
            case record.GOT:
                for number in said["ns"]:
                    self.history.delivered(said["label"], utuple_id(number), said["at_us"])
            case record.TOOK:
                for number in said["ns"]:
                    self.history.command_delivered(said["label"], utuple_id(number), said["at_us"])
            case record.CLOSE | record.SERVED:
                self._own.pop(said["label"], None)
                self._close(said["label"], said["what"], said["at_us"])
            case record.READ:
                ids = [utuple_id(number) for number in said["ns"]]
                self.history.read_back(Family(*said["family"]), ids, said["began_us"])
            case record.LINE:
                line = line_from_wire(pb.Line.FromString(bytes.fromhex(said["line"])))
                self.history.line_seen(said["server"], line, said["at_us"])

    # --- watches and devices -------------------------------------------------------------------------

    def _open(self, said: Said) -> None:
        label = said["label"]
        asked = self._asked[label]
        id_ = hashlib.blake2b(label.encode(), digest_size=16).digest()
        lifetime_s = NAMED_LIFETIME_S if asked["named"] else OWN_LIFETIME_S
        if said["what"] == record.OPEN:
            formal = asked_from(asked["asked"]).formal(id_, label, lifetime_s)
            self.history.watch_opened(label, formal, asked["at_us"], said["at_us"])
            closing = record.CLOSE
        else:
            machine = machine_from(asked["machine"])
            device = machine.formal(id_, label, asked["at_us"], lifetime_s)
            self.history.served(label, device, asked["at_us"], said["at_us"])
            self._services.append(_Service(label, machine.address, asked["at_us"]))
            closing = record.SERVED
        if not asked["named"]:
            self._own[label] = closing

    def _close(self, label: str, kind: str, at_us: int) -> None:
        if kind == record.CLOSE:
            self.history.watch_closed(label, at_us)
            return
        self.history.served_no_more(label, at_us)
        for service in self._services:
            if service.label == label and service.until_us is None:
                service.until_us = at_us

    # --- commands ------------------------------------------------------------------------------------

    def _commanded(self, said: Said, answer: Said | None) -> None:
        """Told last, when it is known which label had which address at the time."""
        command, began_us = order_from(said).actual, said["at_us"]
        if answer is None:
            self.history.commanded(command, began_us, began_us, Outcome.UNKNOWN)
            return
        ended_us = answer["at_us"]
        handed = [
            label
            for address in answer["handed"]
            if (label := self._only_label(address, began_us, ended_us)) is not None
        ]
        self.history.commanded(command, began_us, ended_us, Outcome[answer["outcome"]], handed)

    def _only_label(self, address: str, began_us: int, ended_us: int) -> str | None:
        """None if two had it meanwhile: then nobody can say which of them was meant."""
        there = [
            service.label
            for service in self._services
            if service.address == address
            and service.from_us < ended_us
            and (service.until_us is None or service.until_us > began_us)
        ]
        return there[0] if len(there) == 1 else None
