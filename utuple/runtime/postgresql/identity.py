"""As whom PostgreSQL runs. It refuses to run as root, so root needs another name for itself.

    we are               the folder is        PostgreSQL runs
    an ordinary user     -                    as we are
    root                 root's, or new       as root renamed to 65534 in its own user namespace
    root                 somebody else's      as that somebody
    root, namespaces     new or empty         as uid 65534, to whom the folder is given
      refused

In the namespace nothing needs a useradd or a chown: outside of it, files and processes are root's.
It has no capabilities there, so a folder below another user's 0700 folder is out of its reach.
No permission of any existing folder is ever changed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from utuple.runtime.postgresql.binaries import PostgresBinaries, clean_environment
from utuple.runtime.postgresql.unavailable import PostgresUnavailable

NOBODY = 65534
_PROBE_LIMIT_S = 30.0

# Run by `python -c` and not between fork and exec: that is safe in a process with threads.
# os.unshare would need Python 3.12. setgroups must be denied before gid_map may be written.
_RENAME_ROOT = f"""
import ctypes, os, sys
CLONE_NEWUSER = 0x10000000
gid = os.getegid()  # asked before: within the namespace, what is not yet mapped is 65534
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(CLONE_NEWUSER) != 0:
    sys.exit("unshare: " + os.strerror(ctypes.get_errno()))
for name, text in (
    ("setgroups", "deny"),
    ("uid_map", "{NOBODY} 0 1"),
    ("gid_map", "{NOBODY} %d 1" % gid),
):
    with open("/proc/self/" + name, "w") as file:
        file.write(text)
os.execv(sys.argv[1], sys.argv[1:])
"""


@dataclass(frozen=True)
class Identity:
    """Whose name PostgreSQL bears, and the words put before its commands."""

    uid: int
    gid: int
    prefix: tuple[str, ...] = ()

    @property
    def is_ours(self) -> bool:
        return self.uid == os.geteuid()

    def spawn(
        self, command: Sequence[str], output_fd: int, keep_fds: Sequence[int] = ()
    ) -> subprocess.Popen[bytes]:
        """A process in a session of its own: neither Ctrl-C nor our death reaches it."""
        return subprocess.Popen(
            [*self.prefix, *command],
            stdin=subprocess.DEVNULL,
            stdout=output_fd,
            stderr=output_fd,
            cwd="/",
            env=clean_environment(),
            start_new_session=True,
            pass_fds=keep_fds,
            user=None if self.is_ours else self.uid,
            group=None if self.is_ours else self.gid,
            extra_groups=None if self.is_ours else [],
        )

    def give(self, path: Path) -> None:
        """Make what we have just created belong to PostgreSQL's user."""
        if not self.is_ours:
            os.chown(path, self.uid, self.gid)


def choose_identity(folder: Path, binaries: PostgresBinaries) -> Identity:
    """By the table above; `folder` exists. Raises if PostgreSQL would not reach it."""
    if os.geteuid() != 0:
        return Identity(os.geteuid(), os.getegid())
    owner = folder.stat()
    if owner.st_uid != 0:
        identity = Identity(owner.st_uid, owner.st_gid)
    else:
        renamed = (sys.executable, "-I", "-S", "-c", _RENAME_ROOT)
        identity = Identity(0, os.getegid(), renamed)
        refusal = _complaint(identity, ["/bin/sh", "-c", ":"])
        if refusal:
            identity = _give_to_nobody(folder, refusal)
    _check_reach(identity, folder, binaries)
    return identity


def _give_to_nobody(folder: Path, refusal: str) -> Identity:
    if any(folder.iterdir()):
        raise PostgresUnavailable(
            f"PostgreSQL does not run as root, {folder} is root's, and this kernel refuses user "
            f"namespaces ({refusal}).",
            f"run as an ordinary user, or: chown -R {NOBODY}:{NOBODY} {folder}",
        )
    identity = Identity(NOBODY, NOBODY)
    identity.give(folder)
    return identity


def _check_reach(identity: Identity, folder: Path, binaries: PostgresBinaries) -> None:
    postgres = binaries.path("postgres")
    script = 'cd "$1" && test -w . && exec "$2" --version'
    complaint = _complaint(identity, ["/bin/sh", "-c", script, "sh", str(folder), postgres])
    if complaint:
        raise PostgresUnavailable(
            f"PostgreSQL does not run as root, and as uid {identity.uid} without privileges it "
            f"cannot write to {folder} or cannot run {postgres}: {complaint}",
            "choose a data folder that is not below another user's private (0700) folder, for "
            "example /var/lib/utuple, and install utuple where every user may read it; or run as "
            "an ordinary user.",
        )


def _complaint(identity: Identity, command: Sequence[str]) -> str:
    """What goes wrong when this identity runs the command; empty if nothing does."""
    reading_fd, writing_fd = os.pipe()
    with open(reading_fd, "rb") as output:
        try:
            process = identity.spawn(command, writing_fd)
        except (OSError, subprocess.SubprocessError) as error:
            return str(error)
        finally:
            os.close(writing_fd)
        try:
            status = process.wait(_PROBE_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return f"no answer within {_PROBE_LIMIT_S:.0f} s"
        text = output.read().decode(errors="replace").strip()
    return "" if status == 0 else text or f"exit status {status}"
