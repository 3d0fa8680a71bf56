"""Are the ports we need free? Looked at before anything is started, all of them at once."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from random import Random

from utuple.errors import UTupleError
from utuple.local.layout import HOST, Program

BLOCK = 30
"""Ports of one cluster, and one more: see `layout` for those it uses."""
_FIRST_PORT, _LAST_PORT = 10_000, 32_000
"""Below the ports that systems give away by themselves."""


class PortsTaken(UTupleError):
    """Other programs listen where ours should. The message says what to do."""


def is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def free_port(wanted: int) -> int:
    """This one, or if it is taken any other that is free."""
    if is_free(wanted):
        return wanted
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((HOST, 0))
        found: int = probe.getsockname()[1]
        return found


def check_free(programs: Iterable[Program]) -> None:
    taken = [program for program in programs if not is_free(program.port)]
    if taken:
        places = ", ".join(f"{program.address} (for {program.name})" for program in taken)
        raise PortsTaken(
            f"already in use by another program: {places}; stop that program, or choose other "
            "ports with --port"
        )


@contextmanager
def claimed(blocks: int = 1) -> Iterator[int]:
    """The first port of so many blocks of ports in a row that nobody uses, and nobody else claims while this lasts.

    Between finding ports free and listening on them pass seconds, in which another cluster on this machine may find the same
    ones. So the last port of each block, which no cluster uses, is bound as long as the claim lasts: binding is the one step
    that only one can do. A claim ends with its process, whatever becomes of it.
    """
    firsts = list(range(_FIRST_PORT, _LAST_PORT - blocks * BLOCK, BLOCK))
    Random(os.getpid()).shuffle(firsts)
    for first in firsts:
        ports = range(first, first + blocks * BLOCK)
        guarded = ports[BLOCK - 1 :: BLOCK]
        with ExitStack() as guards:
            try:
                for port in guarded:
                    guards.enter_context(_bound(port))
            except OSError:
                continue
            if all(is_free(port) for port in ports if port not in guarded):
                yield first
                return
    raise PortsTaken("no free ports on this machine: stop some programs that listen on 127.0.0.1")


def _bound(port: int) -> socket.socket:
    guard = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        guard.bind((HOST, port))
    except OSError:
        guard.close()
        raise
    return guard
