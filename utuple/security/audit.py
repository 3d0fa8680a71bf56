"""The audit: who granted, revoked, moved and drained, and what was refused how often. Append-only, chained by hashes. Pure.

Each entry is a line of JSON that ends with a hash of the line before and of itself. Whoever changes, drops or inserts an
entry has to write every later one anew, and then the last hash is not the one that was noted elsewhere: the head of the
chain travels with `utuple status`, so that what is cut off at the end is seen too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

START = "0" * 64
"""The hash before the first entry."""
_SORTED = orjson.OPT_SORT_KEYS


@dataclass(frozen=True, slots=True)
class Entry:
    number: int
    """From 1, without gaps."""
    time_us: int
    who: str
    """The identity's URI, or empty where nobody is known."""
    what: str
    """grant, revoke, move, drain, …, or refused."""
    about: Mapping[str, Any]
    hash: str

    def line(self) -> bytes:
        return orjson.dumps({**_content(self), "hash": self.hash}, option=_SORTED) + b"\n"


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a chain: all that is needed to write the next entry."""

    number: int = 0
    hash: str = START

    def next(self, time_us: int, who: str, what: str, about: Mapping[str, Any]) -> Entry:
        entry = Entry(self.number + 1, time_us, who, what, dict(about), "")
        return Entry(entry.number, time_us, who, what, entry.about, _hash(self.hash, entry))

    def after(self, entry: Entry) -> Head:
        return Head(entry.number, entry.hash)


class Broken(Exception):
    """The chain does not hold: `line` is the first one that does not follow from those before."""

    def __init__(self, line: int, why: str) -> None:
        self.line = line
        super().__init__(f"line {line}: {why}")


def verified(lines: Iterable[bytes], head: Head | None = None) -> Head:
    """The end of the chain, if it holds; and if it reaches the head that was noted elsewhere."""
    found = Head()
    reached = head is None or head == found
    for number, line in enumerate(lines, 1):
        entry = entry_of(line, number)
        if entry.number != found.number + 1:
            raise Broken(number, f"entry {entry.number} follows entry {found.number}")
        if entry.hash != _hash(found.hash, entry):
            raise Broken(number, "its hash is not that of its content and of the entry before")
        found = found.after(entry)
        reached = reached or found == head
    if not reached and head is not None:
        raise Broken(
            found.number + 1,
            f"entry {head.number}, which was noted elsewhere, is missing or another",
        )
    return found


def entry_of(line: bytes, number: int = 0) -> Entry:
    try:
        return Entry(**orjson.loads(line))
    except (orjson.JSONDecodeError, TypeError):
        raise Broken(number, "it is no entry") from None


def _hash(before: str, entry: Entry) -> str:
    content = orjson.dumps(_content(entry), option=_SORTED)
    return hashlib.sha256(before.encode() + content).hexdigest()


def _content(entry: Entry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "time_us": entry.time_us,
        "who": entry.who,
        "what": entry.what,
        "about": entry.about,
    }
