"""What came against what had to come. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from utuple.admin.moves import ShownMove


@dataclass
class Account:
    """One reader's deliveries, by number."""

    expected: set[int] = field(default_factory=set)
    came: Counter[int] = field(default_factory=Counter)
    stored: int = 0

    @property
    def delivered(self) -> int:
        return sum(self.came.values())

    @property
    def missed(self) -> int:
        return len(self.expected - self.came.keys())

    @property
    def repeated(self) -> int:
        return sum(count - 1 for count in self.came.values())

    @property
    def unexpected(self) -> int:
        """Phantoms: what does not match."""
        return len(self.came.keys() - self.expected)

    @property
    def faults(self) -> int:
        return self.missed + self.repeated + self.unexpected

    @property
    def is_complete(self) -> bool:
        return self.came.keys() >= self.expected


def totals(accounts: Iterable[Account]) -> dict[str, int]:
    """Of several readers, by the names that `--json` prints."""
    counted = [
        (len(one.expected), one.delivered, one.missed, one.repeated, one.unexpected)
        for one in accounts
    ]
    names = ("expected", "delivered", "missed", "repeated", "unexpected")
    return {name: sum(counts[at] for counts in counted) for at, name in enumerate(names)}


@dataclass
class HotKey:
    """One key overloaded, helped, and left alone again. Lines are text, as `utuple table` shows them."""

    key: str = ""
    before: str = ""
    after: str = ""
    """With every helper."""
    released: str = ""
    """Of one member again; empty: not in time."""
    helped_s: float | None = None
    """From the first event to the first help's commit; None: no help in time."""
    released_s: float | None = None
    """From the last event on."""
    alone_per_s: float = 0.0
    """Events registered before help."""
    spread_per_s: dict[str, float] = field(default_factory=dict)
    """By member, once load has spread."""
    busy: dict[str, float] = field(default_factory=dict)
    moves: list[ShownMove] = field(default_factory=list)
    """Of the key's section, as `utuple moves --json` has them."""
    emitted: int = 0
    accounts: dict[str, Account] = field(default_factory=dict)

    @property
    def share(self) -> dict[str, float]:
        whole = sum(self.spread_per_s.values())
        return {name: rate / whole for name, rate in self.spread_per_s.items()} if whole else {}

    @property
    def is_shared(self) -> bool:
        """Somebody besides the home takes events."""
        return sum(rate > 0 for rate in self.spread_per_s.values()) > 1

    @property
    def is_good(self) -> bool:
        faults = (account.faults for account in self.accounts.values())
        moved = self.helped_s is not None and self.is_shared and self.released_s is not None
        return moved and not any(faults)

    def summary(self) -> dict[str, object]:
        return {
            "key": self.key,
            "before": self.before,
            "after": self.after,
            "released": self.released,
            "helped_s": _rounded(self.helped_s),
            "released_s": _rounded(self.released_s),
            "alone_per_s": _rounded(self.alone_per_s),
            "spread_per_s": {name: _rounded(rate) for name, rate in self.spread_per_s.items()},
            "share": {name: round(share, 3) for name, share in self.share.items()},
            "busy": {name: round(share, 3) for name, share in self.busy.items()},
            "moves": self.moves,
            "emitted": self.emitted,
            **totals(self.accounts.values()),
        }


def rates_per_s(
    before: Mapping[str, int], after: Mapping[str, int], elapsed_s: float
) -> dict[str, float]:
    """Of counters read twice; who was read only once is left out."""
    return {
        name: (count - before[name]) / elapsed_s for name, count in after.items() if name in before
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


@dataclass
class Outcome:
    emitted: int = 0
    commands: int = 0
    """Sent; one may reach many devices."""
    killed: str = ""
    recovered: bool = False
    recovery_s: float = 0.0
    seconds: float = 0.0
    accounts: dict[str, Account] = field(default_factory=dict)
    """By reader, and by device."""
    hot_key: HotKey = field(default_factory=HotKey)

    @property
    def _all(self) -> list[Account]:
        return [*self.accounts.values(), *self.hot_key.accounts.values()]

    @property
    def is_good(self) -> bool:
        return not any(one.faults for one in self._all) and self.recovered and self.hot_key.is_good

    def summary(self) -> dict[str, object]:
        return {
            "emitted": self.emitted + self.hot_key.emitted,
            **totals(self._all),
            "commands": self.commands,
            "recovered": self.recovered,
            "recovery_s": round(self.recovery_s, 1),
            "hot_key": self.hot_key.summary(),
            "seconds": round(self.seconds, 1),
        }
