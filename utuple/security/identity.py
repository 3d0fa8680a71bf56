"""Who a caller is: `spiffe://CLUSTER/ROLE/NAME`, as its certificate says. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from utuple.errors import InvalidInput

_SCHEME = "spiffe://"
_CLUSTER = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?")
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")
NAME_RULE = (
    "must be 1 to 128 letters, digits, hyphens, underscores and dots, and not begin with a dot"
)
"""What SPIFFE allows in a path, so that a name is the same in a certificate, a file name and a log."""


class Role(StrEnum):
    DEVICE = "device"
    """A sensor or actuator: it speaks for its own address unless its grant says otherwise."""
    APPLICATION = "application"
    OPERATOR = "operator"
    """A person or script that runs the cluster: control calls, and whatever uTuples it was granted."""
    PROGRAM = "program"
    """A program of the cluster itself: server, manager, monitor, sCA server."""
    DOOR = "door"
    """A program through which others come in (MQTT, HTTP): it speaks for whoever proves to it who he is, and shows the proof."""


@dataclass(frozen=True, slots=True)
class Identity:
    cluster: str
    role: Role
    name: str
    issued_us: int = 0
    """When its certificate was issued, by the clock of who issued it: what was issued before a revocation is void.
    Microseconds, which no certificate has a field for: they are part of its serial number."""

    def __post_init__(self) -> None:
        check_cluster(self.cluster)
        check_name(self.name)

    @property
    def uri(self) -> str:
        return f"{_SCHEME}{self.cluster}/{self.role}/{self.name}"

    def __str__(self) -> str:
        return f"{self.name} ({self.role})"


def identity_of(uri: str, issued_us: int = 0) -> Identity:
    parts = uri.removeprefix(_SCHEME).split("/")
    if not uri.startswith(_SCHEME) or len(parts) != 3:
        raise InvalidInput("identity", uri, "must be spiffe://CLUSTER/ROLE/NAME")
    cluster, role, name = parts
    return Identity(cluster, check_role(role), name, issued_us)


def check_role(role: str) -> Role:
    try:
        return Role(role)
    except ValueError:
        raise InvalidInput("role", role, f"must be one of {', '.join(Role)}") from None


def check_cluster(cluster: str) -> str:
    if not _CLUSTER.fullmatch(cluster):
        rule = "must be 1 to 63 lower-case letters, digits, dots and hyphens, and begin and end with a letter or digit"
        raise InvalidInput("cluster", cluster, rule)
    return cluster


def check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise InvalidInput("name", name, NAME_RULE)
    return name
