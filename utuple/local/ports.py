"""Are the ports we need free? Looked at before anything is started, all of them at once."""

from __future__ import annotations

import socket
from collections.abc import Iterable

from utuple.errors import UTupleError
from utuple.local.layout import HOST, Program


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


def check_free(programs: Iterable[Program]) -> None:
    taken = [program for program in programs if not is_free(program.port)]
    if taken:
        places = ", ".join(f"{program.address} (for {program.name})" for program in taken)
        raise PortsTaken(
            f"already in use by another program: {places}; stop that program, or choose other "
            "ports with --port"
        )


def free_base_port(offsets: Iterable[int], candidates: Iterable[int]) -> int:
    """The first candidate of which every port `candidate + offset` is free."""
    offsets = list(offsets)
    for base in candidates:
        if all(is_free(base + offset) for offset in offsets):
            return base
    raise PortsTaken("no free ports on this machine: stop some programs that listen on 127.0.0.1")
