"""Brings the compiled kernels once there are templates enough for them to pay, beside the server's work."""

from __future__ import annotations

from threading import Thread

from utuple.runtime.logs import Log
from utuple.server.kernels import Kernels

_log = Log("utuple.server.compiling")


def compile_when_wanted(kernels: Kernels) -> None:
    def load() -> None:
        is_loaded = kernels.load()
        _log.info("kernels compiled" if is_loaded else "numba is not installed")

    # A daemon, so that a server that is told to stop does not compile to the end first. Should it fail, NumPy's
    # kernels go on to serve.
    kernels.on_wanted = Thread(target=load, name="compiling", daemon=True).start
