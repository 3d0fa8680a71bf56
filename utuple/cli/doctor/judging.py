"""Facts judged: each check says whether it is well, and if not, the cure. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

LEAST_PYTHON = (3, 11)
LEAST_DISK_BYTES = 1 << 30
CLOCK_S = 1.0
"""Times of events are compared between machines."""
CERTIFICATE_DAYS = 14
LEAST_FILES = 1_024


class Setting(Protocol):
    """Of PostgreSQL."""

    @property
    def name(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def mended_by(self) -> str: ...


@dataclass(frozen=True)
class Facts:
    """What was found; None: it could not be asked, and is not judged."""

    python: tuple[int, ...] = LEAST_PYTHON
    versions: Mapping[str, str] = field(default_factory=dict)
    """By distribution: why its version will not do."""
    free_bytes: int | None = None
    folder: str = ""
    folder_writable: bool | None = None
    files: int | None = None
    """That this user may open."""
    settings: Mapping[str, Sequence[Setting]] = field(default_factory=dict)
    """By server: durability settings of its PostgreSQL."""
    clocks_s: Mapping[str, float] = field(default_factory=dict)
    """By program: how far its clock is from ours."""
    ports_taken: Mapping[str, str] = field(default_factory=dict)
    """By program that does not run: its address, where another listens."""
    certificates: Mapping[str, float] = field(default_factory=dict)
    """By file: days until it ends."""
    manager_answers: bool | None = None
    at: str = ""
    silent: tuple[str, ...] = ()
    """Programs that do not answer or serve."""
    whole: bool | None = None
    missing: tuple[str, ...] = ()
    full: Mapping[str, float] = field(default_factory=dict)
    """By server: the share of its capacity that is used."""
    round_trip_s: float | None = None
    round_trip_error: str = ""


@dataclass(frozen=True)
class Finding:
    name: str
    is_well: bool
    said: str
    cure: str = ""


Check = Callable[[Facts], Finding | None]


def python(facts: Facts) -> Finding:
    own = ".".join(map(str, facts.python[:3]))
    if facts.python[:2] >= LEAST_PYTHON:
        return Finding("Python", True, own)
    return Finding("Python", False, own, "install Python 3.11 or newer, and utuple into it")


def versions(facts: Facts) -> Finding:
    if not facts.versions:
        return Finding("packages", True, "as required")
    said = "; ".join(f"{name}: {why}" for name, why in facts.versions.items())
    return Finding("packages", False, said, "pip install --upgrade 'utuple[server]'")


def disk(facts: Facts) -> Finding | None:
    if facts.free_bytes is None:
        return None
    said = f"{facts.free_bytes / 1e9:.1f} GB free in {facts.folder}"
    if facts.free_bytes >= LEAST_DISK_BYTES:
        return Finding("disk", True, said)
    return Finding(
        "disk",
        False,
        said,
        f"free at least 1 GB, or move the cluster: utuple down, then copy {facts.folder} and `utuple up --data DIR`",
    )


def folder(facts: Facts) -> Finding | None:
    if facts.folder_writable is None:
        return None
    if facts.folder_writable:
        return Finding("data folder", True, facts.folder)
    return Finding(
        "data folder",
        False,
        f"{facts.folder} cannot be written",
        f"chown -R $USER {facts.folder}, or choose another with --data",
    )


def files(facts: Facts) -> Finding | None:
    if facts.files is None:
        return None
    if facts.files >= LEAST_FILES:
        return Finding("open files", True, f"{facts.files} allowed")
    return Finding(
        "open files",
        False,
        f"only {facts.files} allowed",
        "ulimit -n 65536 before the programs start",
    )


def durability(facts: Facts) -> Finding | None:
    if not facts.settings:
        return None
    wrong = [
        (server, one)
        for server, settings in facts.settings.items()
        for one in settings
        if one.value in ("off", "local")
    ]
    if not wrong:
        return Finding("durability", True, "fsync, synchronous_commit and full_page_writes are on")
    cures = dict.fromkeys(one.mended_by for _, one in wrong)
    return Finding(
        "durability",
        False,
        "; ".join(f"{server}: {one.name} = {one.value}" for server, one in wrong),
        f"what was answered may be lost: {'; '.join(cures)}",
    )


def clocks(facts: Facts) -> Finding | None:
    if not facts.clocks_s:
        return None
    off = {name: off_s for name, off_s in facts.clocks_s.items() if abs(off_s) > CLOCK_S}
    if not off:
        return Finding("clocks", True, f"within {CLOCK_S:g} s")
    said = ", ".join(f"{name} {off_s:+.1f} s" for name, off_s in off.items())
    return Finding(
        "clocks", False, said, "run an NTP client there (systemctl enable --now systemd-timesyncd)"
    )


def ports(facts: Facts) -> Finding | None:
    if not facts.ports_taken:
        return Finding("ports", True, "no other program is in the way")
    said = ", ".join(f"{address} (for {name})" for name, address in facts.ports_taken.items())
    return Finding(
        "ports",
        False,
        f"used by another program: {said}",
        "stop that program (ss -ltnp shows it), or `utuple up --port N`",
    )


def certificates(facts: Facts) -> Finding | None:
    if not facts.certificates:
        return None
    old = {name: days for name, days in facts.certificates.items() if days < CERTIFICATE_DAYS}
    if not old:
        return Finding("certificates", True, "none ends soon")
    said = ", ".join(
        f"{name} {'ended' if d < 0 else f'ends in {d:.0f} days'}" for name, d in old.items()
    )
    return Finding("certificates", False, said, "issue it again: utuple grant NAME … -o NAME.creds")


def managers(facts: Facts) -> Finding | None:
    if facts.manager_answers is None:
        return None
    if facts.manager_answers:
        return Finding("assignment managers", True, f"answer at {facts.at}")
    return Finding(
        "assignment managers",
        False,
        f"none answers at {facts.at}",
        "start the cluster with `utuple up`, or say where it is with --at HOST:PORT or UTUPLE_AT",
    )


def programs(facts: Facts) -> Finding | None:
    if not facts.manager_answers:
        return None
    if not facts.silent:
        return Finding("programs", True, "all serve")
    names = ", ".join(facts.silent)
    return Finding(
        "programs",
        False,
        f"not serving: {names}",
        f"see logs/{facts.silent[0]}.log in the data folder; start it again, a uTupleServer on its own database",
    )


def table(facts: Facts) -> Finding | None:
    if facts.whole is None:
        return None
    if facts.whole:
        return Finding("assignment table", True, "every key has a line")
    return Finding(
        "assignment table",
        False,
        "not whole",
        "a cluster started by hand is founded once: utuple found NAME …; else start the servers that are missing",
    )


def kinds(facts: Facts) -> Finding | None:
    if not facts.manager_answers:
        return None
    if not facts.missing:
        return Finding("kinds of programs", True, "sCA server and load monitor are there")
    return Finding(
        "kinds of programs",
        False,
        "; ".join(facts.missing),
        "start it: docs/operating.md has the command (`utuple up` does it by itself)",
    )


def room(facts: Facts) -> Finding | None:
    if not facts.full:
        return None
    full = {name: share for name, share in facts.full.items() if share > 0.9}
    if not full:
        return Finding("room", True, "stores have room")
    said = ", ".join(f"{name} {share:.0%} full" for name, share in full.items())
    return Finding("room", False, said, "utuple server add: the load monitor gives it a part")


def round_trip(facts: Facts) -> Finding | None:
    if not facts.manager_answers:
        return None
    if facts.round_trip_s is not None:
        return Finding("round trip", True, f"an EA came back in {1000 * facts.round_trip_s:.0f} ms")
    return Finding(
        "round trip",
        False,
        facts.round_trip_error or "an EA did not come back",
        "see the findings above, then `utuple status`",
    )


CHECKS: tuple[Check, ...] = (
    *(python, versions, disk, folder, files, ports, certificates),
    *(managers, programs, table, kinds, durability, clocks, room, round_trip),
)


def judged(facts: Facts) -> list[Finding]:
    found = (check(facts) for check in CHECKS)
    return [finding for finding in found if finding is not None]
