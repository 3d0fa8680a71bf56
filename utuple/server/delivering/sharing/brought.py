"""Ledgers that a drain brings here: what is open or parked of another server's deliveries. Pure.

Until the drained server has said its last word they are its own, and it may still settle, park or release: so they wait, and of its
rows nothing is handed out here to the readers concerned. With the last word the newest of them counts.
"""

from __future__ import annotations

from collections.abc import Mapping

NOTE = "brought/"
_Whose = tuple[bytes, str]
"""A formal, and the origin of the deliveries."""


class Brought:
    def __init__(self) -> None:
        self._awaited: dict[_Whose, tuple[str, bytes]] = {}
        """The move, and the ledger as it was said last."""
        self.unsaved: dict[str, bytes | None] = {}
        """Notes for the next transaction."""

    def restore(self, notes: Mapping[str, bytes]) -> None:
        """What the store has. What is known here beyond it is noted anew."""
        for name, body in notes.items():
            if name.startswith(NOTE):
                _, formal, origin = name.split("/", 2)
                move, _, ledger = body.partition(b"/")
                self._awaited.setdefault((bytes.fromhex(formal), origin), (move.decode(), ledger))
        for whose in self._awaited:
            self._note(whose)

    def awaits(self, formal: bytes, origin: str) -> bool:
        return (formal, origin) in self._awaited

    def learn(self, formal: bytes, origin: str, move: str, ledger: bytes) -> None:
        self._awaited[formal, origin] = move, ledger
        self._note((formal, origin))

    def ended(self, move: str) -> list[tuple[bytes, str, bytes]]:
        """The drained server has said its last word: formals, origins and ledgers that count from now on."""
        over = [whose for whose, (of, _) in self._awaited.items() if of == move]
        return [(*whose, self._drop(whose)) for whose in over]

    def forget(self, formal: bytes) -> None:
        for whose in [one for one in self._awaited if one[0] == formal]:
            self._drop(whose)

    def pop_unsaved(self) -> dict[str, bytes | None]:
        unsaved, self.unsaved = self.unsaved, {}
        return unsaved

    def _note(self, whose: _Whose) -> None:
        move, ledger = self._awaited[whose]
        self.unsaved[_name(whose)] = move.encode() + b"/" + ledger

    def _drop(self, whose: _Whose) -> bytes:
        self.unsaved[_name(whose)] = None
        return self._awaited.pop(whose)[1]


def _name(whose: _Whose) -> str:
    return f"{NOTE}{whose[0].hex()}/{whose[1]}"
