"""HOST:PORT: where a program listens, and where others reach it. Pure."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address

from utuple.errors import InvalidInput
from utuple.model.value import check_name

_HIGHEST_PORT = 65_535
_EVERYWHERE = ("0.0.0.0", "[::]", "::", "*")
"""Hosts to listen on that nobody can connect to."""


_NEVER_IN_HOST = frozenset(" \t\r\n/\\@?#:[],;'\"")
"""Of an address of the web, of a list, of quotes; and of an IPv6 address without brackets, where nobody can say which
colon is before the port."""
_RULE = "must be HOST:PORT, such as 127.0.0.1:7400 or [::1]:7400"


def check_address(field: str, address: str) -> str:
    check_name(field, address)
    if "://" in address:
        raise InvalidInput(field, address, f"{_RULE}, without {address.partition('://')[0]}://")
    host, _, port = address.rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) > _HIGHEST_PORT:
        raise InvalidInput(field, address, f"{_RULE}: the port is a number up to {_HIGHEST_PORT}")
    if not _is_ipv6(host) and (not host or not _NEVER_IN_HOST.isdisjoint(host)):
        raise InvalidInput(field, address, f"{_RULE}: a name, an IPv4 address, or [IPv6]")
    return address


def check_reachable(field: str, address: str) -> str:
    """One to connect to: port 0 is for those who listen."""
    check_address(field, address)
    if not int(address.rpartition(":")[2]):
        raise InvalidInput(field, address, f"{_RULE}: nobody listens at port 0")
    return address


def _is_ipv6(host: str) -> bool:
    if not (host.startswith("[") and host.endswith("]")):
        return False
    try:
        IPv6Address(host[1:-1])
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Nobody but programs of this machine reaches it. A name other than localhost may be anything."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


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
