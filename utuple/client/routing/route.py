"""Where a uTuple goes (DESIGN 4.5). Pure.

EA       one accumulatable member
CF       one accumulatable member, and the sCA server
EF       every serving member; kept by those that are on and by the home, the others only look what they
         have stored (lifetime 0)
CA       every serving member, and each keeps it: one that is off has CFs whose devices may be away
sCA      (CA to one address, no other metadata condition, lifetime 0) the sCA server only

The home keeps EFs off or on, because it teaches them to the next helper (decision 10).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from utuple.cluster.line import Line
from utuple.model.condition import Equal
from utuple.model.key import device_key
from utuple.model.utuple import Family, Kind, Template, UTuple


@dataclass(frozen=True, slots=True)
class Target:
    """A member that an EF or CA must reach, and whether it keeps it."""

    member: str
    keeps: bool


def candidates(line: Line, avoid: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The members an EA or CF may go to: those not avoided, or all when every one is."""
    able = line.accumulatable
    if not avoid:
        return able
    return tuple(name for name in able if name not in avoid) or able


def targets(line: Line, kind: Kind) -> tuple[Target, ...]:
    """The members an EF or CA must reach, all of them (R2)."""
    assert kind in (Kind.EF, Kind.CA)
    return tuple(
        Target(one.name, kind is Kind.CA or one.accumulatable or one.name == line.home)
        for one in line.serving
    )


def lifetime_at(target: Target, lifetime_s: float) -> float:
    return lifetime_s if target.keeps else 0.0


def is_simple(command: UTuple) -> bool:
    """A CA the sCA server matches: one address, no other metadata condition, lifetime 0."""
    metadata = command.metadata
    return (
        command.kind is Kind.CA
        and isinstance(metadata, Template)
        and isinstance(metadata.address, Equal)
        and metadata.since_us is None
        and metadata.until_us is None
        and metadata.area is None
        and command.lifetime_s == 0
    )


def device_member(device: UTuple, line: Line, avoid: frozenset[str] = frozenset()) -> str:
    """Where a CF is kept: by its id, so that a named one comes back to the same member."""
    return rendezvous(device.id, candidates(line, avoid))


def sca_server(family: Family, address: str, names: Sequence[str]) -> str:
    """Which of the sCA servers knows this device (section 3.2)."""
    key = device_key(family.subject, family.type, address)
    return rendezvous(key.to_bytes(8, "big"), names)


def rendezvous(what: bytes, names: Sequence[str]) -> str:
    """The name with the highest hash together with `what`: when a name comes or goes, only what it
    wins or held moves."""
    return max(names, key=lambda name: (_score(what, name), name))


def _score(what: bytes, name: str) -> bytes:
    return hashlib.blake2b(what + name.encode(), digest_size=8).digest()
