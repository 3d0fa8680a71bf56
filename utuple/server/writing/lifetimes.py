"""Lifetimes of formals: when each expires, from what their readers do. Pure.

A formal whose reader is attached never expires, in memory and in the store, whatever the clock says. Its lifetime
begins when the reader goes: when it detaches, when its stream ends, or, if the server itself ended meanwhile, when that
has started again. Nothing is renewed now and then, so that no lifetime is too short and no step of the clock too long.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from itertools import islice

from utuple.model.columns import NEVER_US, lifetime_us
from utuple.store.contract import Recovered

_MOST_LET_GO = 5_000
"""Formals whose expiry is made durable at once, of those that a start has let go: there may be a million, and most
readers come back within seconds."""


class Lifetimes:
    def __init__(self) -> None:
        self.changed: dict[bytes, int] = {}
        """Expiries the next transaction makes durable; the writer knows them from then on."""
        self._let_go: dict[bytes, int] = {}

    def restart(
        self, recovered: Recovered, attached: Container[bytes], now_us: int
    ) -> Mapping[bytes, int]:
        """The store was opened (again). Those that were held and whose readers are not here, with their expiries:
        made durable a few at a time, if their readers have not come back by then."""
        held = dict(recovered.held_devices)
        for half, _, expires_us in recovered.templates:
            if expires_us == NEVER_US:
                held[half.id] = lifetime_us(half.lifetime_s)
        self._let_go = {id_: now_us + life for id_, life in held.items() if id_ not in attached}
        return self._let_go

    def hold(self, formals: Iterable[bytes]) -> None:
        """Their readers are attached."""
        self.changed.update(dict.fromkeys(formals, NEVER_US))

    def begin(self, formal: bytes, lifetime_us: int, now_us: int) -> None:
        """Its reader was here until now."""
        self.changed[formal] = now_us + lifetime_us

    def tick(self, attached: Container[bytes]) -> None:
        for id_ in list(islice(self._let_go, _MOST_LET_GO)):
            expires_us = self._let_go.pop(id_)
            if id_ not in attached:
                self.changed.setdefault(id_, expires_us)

    def pop_changed(self) -> list[tuple[bytes, int]]:
        """What the next transaction makes durable."""
        changed, self.changed = self.changed, {}
        return list(changed.items())
