"""Starting the supervisor as a daemon and waiting until the cluster is ready."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

from utuple.local.folder import DataFolder
from utuple.local.supervisor import StartFailed
from utuple.runtime.postgresql.unavailable import last_lines

_POLL_S = 0.05
_STOP_LIMIT_S = 120.0


def start_detached(folder: DataFolder, progress: Callable[[str], None]) -> int:
    """The supervisor's pid, once the cluster is ready. `progress` hears what is being done."""
    with folder.lock():  # refuses if one runs; else what the last one said about itself is old
        folder.forget_state()
    log = folder.log("supervisor")
    folder.set_aside_long_log("supervisor")
    command = [sys.executable, "-P", "-m", "utuple.local.daemon", str(folder.path)]
    with log.open("ab") as output:
        daemon = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=folder.path,
            start_new_session=True,
        )
    try:
        return _await_ready(folder, daemon, progress)
    except KeyboardInterrupt:
        daemon.terminate()
        daemon.wait(_STOP_LIMIT_S)
        raise


def _await_ready(
    folder: DataFolder, daemon: subprocess.Popen[bytes], progress: Callable[[str], None]
) -> int:
    # No deadline here: the supervisor has its own, and its end is noticed at once.
    while True:
        ended = daemon.poll() is not None
        state, said = folder.state()
        if state == "ready" and not ended:
            return daemon.pid
        if ended:
            break
        progress(said)
        time.sleep(_POLL_S)
    if state == "failed":
        folder.forget_state()
        raise StartFailed(said)
    log = folder.log("supervisor")
    raise StartFailed(f"the supervisor ended. The last lines of {log}:\n{last_lines(log)}")
