"""Brings the compiled kernels once there are templates enough for them to pay, beside the server's work."""

from __future__ import annotations

import os
import subprocess
import sys
from threading import Thread

from utuple.runtime.logs import Log
from utuple.server.matching.kernels import Kernels

_log = Log("utuple.server.matching.compiling")
COMPILED, NO_COMPILER = "kernels compiled", "numba is not installed"
"""What the log says in the end."""
_COMPILE = """
import os, sys
os.nice(10)
from utuple.server.matching.kernels import Kernels
sys.exit(not Kernels().load())
"""
_LIMIT_S = 120.0


def compile_when_wanted(kernels: Kernels) -> None:
    def load() -> None:
        compile_beside()
        is_loaded = kernels.load()
        _log.info(COMPILED if is_loaded else NO_COMPILER)

    # A daemon, so that a server that is told to stop does not compile to the end first. Should it fail, NumPy's
    # kernels go on to serve.
    kernels.on_wanted = Thread(target=load, name="compiling", daemon=True).start


def compile_beside() -> bool:
    """Compiling holds the interpreter for seconds, loading what was compiled for half of one: so a process of
    its own compiles first, and keeps it where the next `load` finds it. True if that went well."""
    command = [sys.executable, "-P", "-c", _COMPILE]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == os.EX_OK
