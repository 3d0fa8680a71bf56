"""The folder an embedded PostgreSQL lives in: making it, taking turns on it, its data, its log."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from utuple.runtime.postgresql.binaries import PostgresBinaries
from utuple.runtime.postgresql.config import PostgresConfig
from utuple.runtime.postgresql.identity import Identity
from utuple.runtime.postgresql.process import wait_until
from utuple.runtime.postgresql.socket import SUPERUSER
from utuple.runtime.postgresql.unavailable import PostgresUnavailable

_PIECE_BYTES = 1 << 20


def data_folder(folder: Path) -> Path:
    return folder / "data"


def log_file(folder: Path) -> Path:
    return folder / "postgres.log"


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise PostgresUnavailable(
            f"The folder {folder} cannot be made: {error}",
            "choose another folder by --data, or make this one and give it to your user.",
        ) from error
    check_writable(folder)


def check_writable(folder: Path) -> None:
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise PostgresUnavailable(
            f"The folder {folder} is not writable for uid {os.geteuid()}.",
            f"choose another folder by --data, or: chown {os.geteuid()} {folder}",
        )


@contextmanager
def turn_on(folder: Path, config: PostgresConfig) -> Iterator[int]:
    """One process at a time. The lock is on the folder itself, so no lock file stays behind, and
    the kernel releases it when its holder dies."""
    lock_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if not wait_until(lambda: _try_lock(lock_fd), config.start_limit_s, config.poll_interval_s):
            raise PostgresUnavailable(
                f"Another process has been starting or stopping PostgreSQL in {folder} for more "
                f"than {config.start_limit_s:g} s.",
                "see what that one says, and try again.",
                log=log_file(folder),
            )
        yield lock_fd
    finally:
        os.close(lock_fd)


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def check_version(folder: Path, binaries: PostgresBinaries) -> None:
    """A major version of PostgreSQL cannot read another's files, and says so only in its log."""
    file = data_folder(folder) / "PG_VERSION"
    try:
        found = file.read_text().strip()
    except FileNotFoundError:
        found = "no version at all"
    except OSError as error:
        raise PostgresUnavailable(
            f"{file} cannot be read: {error}", "run as the user to whom the folder belongs."
        ) from error
    if found != str(binaries.major):
        raise PostgresUnavailable(
            f"The data in {folder} are of PostgreSQL {found}, but the installed binaries are of "
            f"PostgreSQL {binaries.major}.",
            "choose another folder by --data; or install the release of utuple that made this one; "
            f"or bring the data over with {binaries.path('pg_upgrade')} and the old binaries.",
        )


def initialise(
    folder: Path,
    binaries: PostgresBinaries,
    identity: Identity,
    config: PostgresConfig,
    lock_fd: int,
) -> None:
    """Makes the data folder, all of it or nothing: it gets its name when it is complete."""
    unfinished = folder / "data.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    command = [binaries.path("initdb"), "-D", str(unfinished), "-U", SUPERUSER]
    # Locale C sorts text by code point, as address ranges need, whatever the machine's language.
    command += ["-A", "trust", "-E", "UTF8", "--locale=C", "--no-instructions"]
    with open_log(folder, identity, config) as log_fd:
        # initdb holds our lock too: if we are killed, the next launcher waits for its end.
        process = identity.spawn(command, log_fd, keep_fds=(lock_fd,))
        try:
            status = process.wait(config.initdb_limit_s)
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
    if status != 0:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise PostgresUnavailable(
            f"initdb could not make {data_folder(folder)} (exit status {status}).",
            "see whether the disk is full or the folder belongs to somebody else; then try again.",
            log=log_file(folder),
        )
    unfinished.rename(data_folder(folder))
    os.fsync(lock_fd)  # which is the folder: the new name survives a power cut


def set_aside_running_log(folder: Path, config: PostgresConfig) -> None:
    """PostgreSQL goes on with the file it has, so that is copied and emptied. What it writes in the instant between the last
    look and the emptying is lost; on a full disk nothing is done."""
    log, old = log_file(folder), log_file(folder).with_suffix(".log.old")
    with suppress(OSError):
        if log.stat().st_size <= config.log_limit_bytes:
            return
        with log.open("rb") as written, old.open("wb") as kept:
            os.fchmod(kept.fileno(), 0o600)
            while piece := written.read(_PIECE_BYTES):
                kept.write(piece)
        os.truncate(log, 0)


@contextmanager
def open_log(folder: Path, identity: Identity, config: PostgresConfig) -> Iterator[int]:
    log = log_file(folder)
    if log.exists() and log.stat().st_size > config.log_limit_bytes:
        log.replace(log.with_suffix(".log.old"))
    fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        identity.give(log)
        yield fd
    finally:
        os.close(fd)
