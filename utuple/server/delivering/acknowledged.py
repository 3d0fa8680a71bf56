"""What devices have acknowledged at servers that were drained since. Pure.

A CA has another seq at every member, so a device's position there says nothing here: what it had acknowledged is kept by the
ids of the commands. There is little of it, and it goes with the commands.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from utuple.model.utuple import ID_BYTES

NOTE = "acknowledged/"
_Part = tuple[bytes, int]
"""A command, and the last byte of some devices' ids: a million devices are not noted anew when one is added."""


class AcknowledgedElsewhere:
    def __init__(self) -> None:
        self._parts: dict[_Part, set[bytes]] = {}
        self.unsaved: dict[str, bytes | None] = {}
        """Notes for the next transaction."""

    def restore(self, notes: Mapping[str, bytes], living: Container[bytes]) -> None:
        """What the store has; what is about commands that are gone goes."""
        self._parts, self.unsaved = {}, {}
        for name, body in notes.items():
            if name.startswith(NOTE):
                _, command, last = name.split("/")
                part = bytes.fromhex(command), int(last)
                self._parts[part] = _ids(body)
                if part[0] not in living:
                    self._drop(part)

    @property
    def devices(self) -> set[bytes]:
        return set().union(*self._parts.values())

    def devices_of(self, command: bytes) -> set[bytes]:
        return set().union(*(held for part, held in self._parts.items() if part[0] == command))

    def learn(self, device: bytes, commands: Iterable[bytes]) -> None:
        for command in commands:
            devices = self._parts.setdefault((command, device[-1]), set())
            if device not in devices:
                devices.add(device)
                self._note((command, device[-1]))

    def has(self, device: bytes, command: bytes) -> bool:
        return device in self._parts.get((command, device[-1]), ())

    def forget(self, id_: bytes) -> None:
        """A command is over, or a device cancelled."""
        for part, devices in list(self._parts.items()):
            if part[0] == id_:
                self._drop(part)
            elif id_ in devices:
                devices.discard(id_)
                self._note(part)

    def pop_unsaved(self) -> dict[str, bytes | None]:
        unsaved, self.unsaved = self.unsaved, {}
        return unsaved

    def _note(self, part: _Part) -> None:
        self.unsaved[_name(part)] = b"".join(sorted(self._parts[part]))

    def _drop(self, part: _Part) -> None:
        del self._parts[part]
        self.unsaved[_name(part)] = None


def _name(part: _Part) -> str:
    return f"{NOTE}{part[0].hex()}/{part[1]}"


def _ids(packed: bytes) -> set[bytes]:
    return {packed[at : at + ID_BYTES] for at in range(0, len(packed), ID_BYTES)}
