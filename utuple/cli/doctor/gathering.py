"""The facts, asked of this machine and of the cluster. Whatever does not answer is a fact, too."""

from __future__ import annotations

import asyncio
import resource
import shutil
import sys
import uuid
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import utuple
from utuple.admin.programs import WELL, Program
from utuple.admin.snapshot import Snapshot, snapshot_of
from utuple.cli.doctor.judging import Facts
from utuple.local.folder import DataFolder
from utuple.local.layout import database_of
from utuple.local.ports import is_free
from utuple.runtime.clock import monotonic_s, now_us
from utuple.runtime.postgresql.embedded import EmbeddedPostgres
from utuple.store.postgres.durability import Setting, durability_of

_ROUND_TRIP_S = 10.0
_POLL_S = 5.0
"""A load monitor looks every second: its last look is no older than this, unless its clock is behind."""


async def gathered(at: list[str], folder: DataFolder) -> Facts:
    asked_us = now_us()
    try:
        snapshot: Snapshot | None = await snapshot_of(at, brief=True)
    except utuple.UTupleError:
        snapshot = None
    trip_s, error = await _round_trip(at) if snapshot is not None else (None, "")
    programs: list[Program] = (
        [*snapshot.servers, *snapshot.scas, *snapshot.managers, *snapshot.monitors]
        if snapshot
        else []
    )
    return Facts(
        python=tuple(sys.version_info[:3]),
        versions=_versions(),
        free_bytes=_free(folder.path),
        folder=str(folder.path),
        folder_writable=_writable(folder.path),
        files=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        settings=await _settings(folder),
        clocks_s=_clocks(snapshot, asked_us),
        ports_taken=_taken(folder),
        certificates=_certificates(folder.path),
        manager_answers=snapshot is not None,
        at=", ".join(at),
        silent=tuple(one.name for one in programs if one.state not in WELL),
        whole=snapshot.whole if snapshot else None,
        missing=tuple(snapshot.missing) if snapshot else (),
        full={
            one.name: one.size_bytes / one.capacity_bytes
            for one in (snapshot.servers if snapshot else ())
            if one.capacity_bytes
        },
        round_trip_s=trip_s,
        round_trip_error=error,
    )


def _versions() -> dict[str, str]:
    """Requirements of the bare install and of the servers that are not met."""
    from packaging.requirements import Requirement

    wrong: dict[str, str] = {}
    for text in requires("utuple") or []:
        wanted = Requirement(text)
        if wanted.marker and not wanted.marker.evaluate({"extra": "server"}):
            continue
        if wanted.name == "utuple":
            continue
        try:
            own = version(wanted.name)
        except PackageNotFoundError:
            wrong[wanted.name] = "is not installed"
            continue
        if not wanted.specifier.contains(own, prereleases=True):
            wrong[wanted.name] = f"{own} is installed, {wanted.specifier} is needed"
    return wrong


def _nearest(path: Path) -> Path:
    return next(one for one in (path, *path.parents) if one.exists())


def _free(path: Path) -> int:
    return shutil.disk_usage(_nearest(path)).free


def _writable(path: Path) -> bool:
    """Tried: rights alone do not say it of root, nor of a disk that is mounted for reading."""
    try:
        with TemporaryFile(dir=_nearest(path)):
            return True
    except OSError:
        return False


def _taken(folder: DataFolder) -> dict[str, str]:
    """Programs that do not run, and whose ports somebody else has."""
    cluster = folder.read_cluster()
    if cluster is None:
        return {}
    running = folder.all_started()
    return {
        program.name: program.address
        for program in cluster.layout.programs
        if program.name not in running and not is_free(program.port)
    }


async def _settings(folder: DataFolder) -> dict[str, Sequence[Setting]]:
    cluster = folder.read_cluster()
    if cluster is None:
        return {}
    postgres = EmbeddedPostgres(folder.postgres)
    if not cluster.databases and not postgres.is_running:
        return {}
    names = cluster.layout.server_names
    dsns = cluster.databases or [postgres.dsn(database_of(name)) for name in names]
    found = await asyncio.gather(*map(durability_of, dsns))
    return {
        name: settings for name, settings in zip(names, found, strict=True) if settings is not None
    }


def _clocks(snapshot: Snapshot | None, asked_us: int) -> dict[str, float]:
    """Of monitors, whose last look bears their time: it was before now, and not long before they were asked. Where servers are silent
    many seconds lie in between."""
    found: dict[str, float] = {}
    for monitor in snapshot.monitors if snapshot else ():
        if monitor.seen_us:
            ahead_s = (monitor.seen_us - now_us()) / 1e6
            late_s = (monitor.seen_us - asked_us) / 1e6 + _POLL_S
            found[monitor.name] = ahead_s if ahead_s > 0 else min(0.0, late_s)
    return found


def _certificates(path: Path) -> dict[str, float]:
    """Days until the credentials in the folder end."""
    found: dict[str, float] = {}
    for file in sorted(path.rglob("*.creds")):
        try:
            from cryptography import x509

            ends = min(
                one.not_valid_after_utc
                for one in x509.load_pem_x509_certificates(file.read_bytes())
            )
        except (ImportError, OSError, ValueError):
            continue
        found[file.name] = (ends.timestamp() - now_us() / 1e6) / 86_400
    return found


async def _round_trip(at: list[str]) -> tuple[float | None, str]:
    """An EA, registered and delivered; it is kept for a second."""
    family: dict[str, Any] = {"subject": "utuple-doctor", "type": "round-trip"}
    name = uuid.uuid4().hex
    try:
        async with asyncio.timeout(_ROUND_TRIP_S), utuple.connect(*at) as space:
            async with space.watch(**family, address=name) as events:
                began_s = monotonic_s()
                await space.emit(**family, address=name, data={}, lifetime_s=1)
                await anext(aiter(events))
                return monotonic_s() - began_s, ""
    except TimeoutError:
        return None, f"an EA did not come back within {_ROUND_TRIP_S:g} s"
    except utuple.UTupleError as error:
        return None, str(error)
