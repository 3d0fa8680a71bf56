"""What came against what had to come. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


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
    def is_complete(self) -> bool:
        return self.came.keys() >= self.expected


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

    def total(self, what: str) -> int:
        return sum(int(getattr(account, what)) for account in self.accounts.values())

    @property
    def is_good(self) -> bool:
        faults = self.total("missed") + self.total("repeated") + self.total("unexpected")
        return faults == 0 and self.recovered

    def summary(self) -> dict[str, object]:
        return {
            "emitted": self.emitted,
            "expected": sum(len(account.expected) for account in self.accounts.values()),
            "delivered": self.total("delivered"),
            "missed": self.total("missed"),
            "repeated": self.total("repeated"),
            "unexpected": self.total("unexpected"),
            "commands": self.commands,
            "recovered": self.recovered,
            "recovery_s": round(self.recovery_s, 1),
            "seconds": round(self.seconds, 1),
        }
