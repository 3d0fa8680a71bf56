"""Terms of delivery: what a named reader has agreed with the servers about its matches. Pure.

    absent         the drop policy: what becomes of matches that arrive while the reader is away
    ack_within_s   a delivery that is not acknowledged by then comes again
    attempts       after so many it is parked, and never blocks the rest
    share          several processes read under one name, and each delivery goes to one of them
    sticky         of those, all deliveries of one address go to the same one while it lives

They are a field of the EF, in one JSON encoding, empty for the default. A reader that comes back must say the same terms.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import lru_cache

import orjson

from utuple.errors import InvalidInput
from utuple.model.value import compact, plain_scalar

MOST_KEPT = 100_000
"""Of `newest` and `oldest`: their seqs are looked for when the reader comes back."""
MOST_ATTEMPTS = 1_000
ACK_WITHIN_S, ATTEMPTS = 60.0, 5
"""Where one of them, or `share`, is asked for, and the others are not."""
MOST_SECONDS = 366 * 86_400.0
_COUNTED = ("newest", "oldest")
_TIMED = ("expire", "respond_within")
_PLAIN = ("keep", "latest_per_address")
_HASH_SPACE = float(1 << 64)


@dataclass(frozen=True, slots=True)
class DropPolicy:
    """What becomes of matches that arrive while their reader is away. Made by `keep()`, `newest(n)` and their like."""

    kind: str = "keep"
    number: float = 0
    """n, or seconds."""
    share: float | None = None
    """Of `respond_within`: so many of the deliveries, and not their mean."""

    def __post_init__(self) -> None:
        if self.kind in _COUNTED:
            _check_count(self.kind, self.number, MOST_KEPT)
        elif self.kind in _TIMED:
            _check_seconds(self.kind, self.number)
        elif self.kind not in _PLAIN or self.number:
            names = ", ".join((*_PLAIN, *_COUNTED, *_TIMED))
            raise InvalidInput("absent", self.kind, f"must be one of {names}")
        if self.share is not None:
            share = plain_scalar(self.share)
            is_number = isinstance(share, int | float) and not isinstance(share, bool)
            if self.kind != "respond_within" or not is_number or not 0 < share < 1:
                rule = "is a part of respond_within, and lies between 0 and 1, both left out"
                raise InvalidInput("share", self.share, rule)

    @property
    def drops(self) -> bool:
        return self.kind != "keep"

    def __str__(self) -> str:
        if self.kind in _PLAIN:
            return f"{self.kind}()"
        share = "" if self.share is None else f", share={self.share:g}"
        return f"{self.kind}({self.number:g}{share})"


KEEP = DropPolicy()


def keep() -> DropPolicy:
    """Everything that is still alive, oldest first: the default."""
    return KEEP


def newest(n: int) -> DropPolicy:
    """Of what arrives while the reader is away, the last n at each server that has some."""
    return DropPolicy("newest", n)


def oldest(n: int) -> DropPolicy:
    """Of what arrives while the reader is away, the first n at each server that has some."""
    return DropPolicy("oldest", n)


def latest_per_address() -> DropPolicy:
    """Of what arrives while the reader is away, the last one of each address at each server that has some."""
    return DropPolicy("latest_per_address")


def expire(after_s: float) -> DropPolicy:
    """Of what arrives while the reader is away, what is at most so old (by its time) when the reader comes back."""
    return DropPolicy("expire", after_s)


def respond_within(threshold_s: float, share: float | None = None) -> DropPolicy:
    """Of what arrives while the reader is away, as much as lets the mean time from arrival to delivery meet the threshold;
    with `share`, as much as lets this share of the deliveries meet it. Which ones is decided by a hash (paper 004)."""
    return DropPolicy("respond_within", threshold_s, share)


def joins(formal: bytes, event: bytes, zeta: float) -> bool:
    """Is this event among the share ζ of those that arrive while the reader is away? The same answer at every server, after any
    crash or move; and who joins at one ζ joins at every larger one."""
    return zeta >= 1 or place_of(formal, event) < zeta


def place_of(formal: bytes, event: bytes) -> float:
    """Where the pair lies, in [0, 1)."""
    digest = hashlib.blake2b(formal + event, digest_size=8).digest()
    return int.from_bytes(digest, "big") / _HASH_SPACE


@dataclass(frozen=True, slots=True)
class Terms:
    absent: DropPolicy = KEEP
    ack_within_s: float | None = None
    attempts: int | None = None
    share: bool = False
    sticky: bool = False

    def __post_init__(self) -> None:
        absent: object = self.absent
        if not isinstance(absent, DropPolicy):
            rule = "must be keep(), newest(n), oldest(n), latest_per_address(), expire(s) or respond_within(s)"
            raise InvalidInput("absent", absent, rule)
        if self.ack_within_s is not None:
            _check_seconds("ack_within_s", self.ack_within_s)
        if self.attempts is not None:
            _check_count("attempts", self.attempts, MOST_ATTEMPTS)
        for name in ("share", "sticky"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidInput(name, getattr(self, name), "must be True or False")
        if self.sticky and not self.share:
            raise InvalidInput("sticky", self.sticky, "is for readers that share=True")

    def __str__(self) -> str:
        """As they are said to `watch`."""
        said = [f"absent={self.absent}"] if self.absent.drops else []
        if self.ack_within_s is not None:
            said.append(f"ack_within_s={self.ack_within_s:g}")
        if self.attempts is not None:
            said.append(f"attempts={self.attempts}")
        said += [f"{name}=True" for name in ("share", "sticky") if getattr(self, name)]
        return ", ".join(said) or "the default"

    @property
    def settles(self) -> bool:
        """Each delivery is acknowledged by itself, comes again if it is not, and is parked in the end."""
        return self.share or self.ack_within_s is not None or self.attempts is not None

    @property
    def redelivered_after_s(self) -> float:
        return ACK_WITHIN_S if self.ack_within_s is None else self.ack_within_s

    @property
    def most_attempts(self) -> int:
        return ATTEMPTS if self.attempts is None else self.attempts


DEFAULT = Terms()


def encode_terms(terms: Terms | None) -> bytes:
    if terms is None or terms == DEFAULT:
        return b""
    policy = terms.absent
    form: dict[str, object] = {}
    if policy.drops:
        form["absent"] = [policy.kind, policy.number, policy.share]
    for name in ("ack_within_s", "attempts", "share", "sticky"):
        if (said := getattr(terms, name)) not in (None, False):
            form[name] = said
    return compact(orjson.dumps(form))


@lru_cache(maxsize=1_000)
def decode_terms(encoded: bytes) -> Terms:
    """Of a reader or a store: what is wrong is refused."""
    if not encoded:
        return DEFAULT
    try:
        form = orjson.loads(encoded)
        absent = DropPolicy(*form.pop("absent", ("keep",)))
        return Terms(absent, **form)
    except InvalidInput:
        raise
    except (ValueError, TypeError, AttributeError):
        raise InvalidInput("terms", encoded, "must be terms of delivery, as JSON") from None


def _check_count(field: str, value: object, most: int) -> None:
    value = plain_scalar(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise InvalidInput(field, value, f"must be a whole number from 1 to {most:,}")


def _check_seconds(field: str, value: object) -> None:
    value = plain_scalar(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(field, value, "must be a number of seconds")
    if not math.isfinite(value) or not 0 < value <= MOST_SECONDS:
        raise InvalidInput(field, value, "must be above 0 seconds, and at most 366 days")
