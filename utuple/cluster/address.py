"""HOST:PORT: where a program listens, and where others reach it. Pure."""

from __future__ import annotations

from utuple.errors import InvalidInput
from utuple.model.value import check_name

_HIGHEST_PORT = 65_535
_EVERYWHERE = ("0.0.0.0", "[::]", "::", "*")
"""Hosts to listen on that nobody can connect to."""


def check_address(field: str, address: str) -> str:
    check_name(field, address)
    host, _, port = address.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > _HIGHEST_PORT:
        raise InvalidInput(field, address, "must be HOST:PORT, such as 127.0.0.1:7400")
    return address


def check_place(listen: str, advertise: str) -> None:
    """What a program is told of itself: others are told `advertise`, or else `listen`."""
    check_address("listen", listen)
    if advertise:
        check_address("advertise", advertise)
    told = advertise or listen
    if told.rpartition(":")[0] in _EVERYWHERE:
        field = "advertise" if advertise else "listen"
        rule = "nobody reaches it by this: say where with --advertise HOST:PORT"
        raise InvalidInput(field, told, rule)
