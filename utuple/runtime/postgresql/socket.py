"""Where the unix socket lies, and the address by which it is reached.

It lies beside the data. A socket's path may have 107 bytes only, though, and a data folder may be
anywhere, so behind a long path it goes to a short private folder in the temp folder. That one is
named by a hash of the long path: every launcher of the same folder arrives at the same name.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from utuple.runtime.postgresql.unavailable import PostgresUnavailable

SUPERUSER = "postgres"
# Only part of the socket's name: no TCP port is ever opened.
PORT = 5432
_SOCKET_NAME = f".s.PGSQL.{PORT}"
# sockaddr_un.sun_path is 108 bytes with its final zero.
SOCKET_PATH_LIMIT_BYTES = 107


def socket_folder_of(folder: Path) -> Path:
    if _can_hold_socket(folder):
        return folder
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    short = Path(tempfile.gettempdir()) / f"utuple-postgres-{digest}"
    return short if _can_hold_socket(short) else Path("/tmp") / short.name


def _can_hold_socket(folder: Path) -> bool:
    # To libpq a comma begins a second host; to PostgreSQL a quote is list syntax.
    plain = not set(str(folder)) & set(',"')
    return plain and len(os.fsencode(folder / _SOCKET_NAME)) <= SOCKET_PATH_LIMIT_BYTES


def make_private_folder(short: Path, uid: int, gid: int) -> None:
    """Anybody may make folders in the temp folder, so one that is there is looked at closely."""
    try:
        short.mkdir(mode=0o700)
        if uid != os.geteuid():
            os.chown(short, uid, gid)
    except FileExistsError:
        pass
    found = short.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != uid or found.st_mode & 0o077:
        raise PostgresUnavailable(
            f"{short} should be a private folder (0700) of uid {uid} for the socket, and is not.",
            f"remove {short}, or choose a data folder with a path shorter than 90 bytes.",
        )


def remove_sockets(socket_folder: Path, folder: Path) -> None:
    """Whatever a dead postmaster left, and the short folder if it was one of those."""
    # What is not there, or not ours to remove, is no reason to fail a stop.
    for name in (_SOCKET_NAME, f"{_SOCKET_NAME}.lock"):
        with suppress(OSError):
            (socket_folder / name).unlink()
    if socket_folder != folder:
        with suppress(OSError):
            socket_folder.rmdir()


def address(socket_folder: Path, database: str) -> str:
    host = quote(os.fsencode(socket_folder), safe="/")
    return f"postgresql://{SUPERUSER}@/{database}?host={host}&port={PORT}"
