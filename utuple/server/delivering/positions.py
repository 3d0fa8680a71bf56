"""How far readers have acknowledged, by formal and origin, and what of it is not durable yet. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from utuple.server.delivering.cursor import positions_of
from utuple.store.contract import OWN_ORIGIN, FormalPosition


class Positions:
    def __init__(self) -> None:
        self._acknowledged: dict[tuple[bytes, str], int] = {}
        self._acknowledged_in = {OWN_ORIGIN}
        self._unsaved: dict[tuple[bytes, str], int] = {}

    def restore(self, positions: Iterable[FormalPosition]) -> None:
        """What the store has. Anything acknowledged beyond it was lost on the way: save it again."""
        held = {(position.formal, position.origin): position.seq for position in positions}
        self._unsaved = {
            key: seq for key, seq in self._acknowledged.items() if seq > held.get(key, 0)
        }
        self._acknowledged = held | self._unsaved
        self._acknowledged_in.update(origin for _, origin in held)

    def learn(self, positions: Iterable[FormalPosition]) -> None:
        """What a drain has brought, ahead of its rows; the store has it."""
        for position in positions:
            key = (position.formal, position.origin)
            if position.seq > self._acknowledged.get(key, 0):
                self._acknowledged[key] = position.seq
                self._acknowledged_in.add(position.origin)
                self._unsaved.pop(key, None)

    def all(self) -> list[FormalPosition]:
        """Everything acknowledged, connected or not."""
        return positions_of(self._acknowledged)

    def of(self, formal: bytes, origin: str = OWN_ORIGIN) -> int:
        return self._acknowledged.get((formal, origin), 0)

    def advance(self, formal: bytes, origin: str, seq: int, highest: int) -> bool:
        """True if it is news, and not beyond what there is."""
        is_news = self.of(formal, origin) < seq <= highest
        if is_news:
            self._acknowledged[formal, origin] = self._unsaved[formal, origin] = seq
            self._acknowledged_in.add(origin)
        return is_news

    def pop_unsaved(self) -> list[FormalPosition]:
        """What the next transaction must make durable; the caller has it now."""
        unsaved, self._unsaved = self._unsaved, {}
        return positions_of(unsaved)

    def forget(self, formal: bytes) -> None:
        for origin in self._acknowledged_in:  # not all formals: there may be a million
            self._acknowledged.pop((formal, origin), None)
            self._unsaved.pop((formal, origin), None)
