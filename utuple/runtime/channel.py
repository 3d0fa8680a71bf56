"""gRPC channels and servers with our limits, in one place."""

from __future__ import annotations

import errno
import socket

import grpc

from utuple.cluster.address import is_loopback
from utuple.errors import UTupleError
from utuple.runtime.observed import ObservedServer
from utuple.runtime.trust.tls import own_tls
from utuple.transport.channel import Channel
from utuple.transport.http2.limits import SERVER, Limits
from utuple.transport.peer import Tls
from utuple.transport.server import Authorise

MAX_MESSAGE_BYTES = 64 << 20
"""A batch of uTuples: the largest a peer may send. A single uTuple is limited to 1 MiB."""


class PortInUse(UTupleError):
    """Another program listens there. The message says what to do."""


class NotSecured(UTupleError):
    """Strangers would reach it. The message says what to do."""


def open_channel(
    address: str, tls: Tls | None = None, metadata: tuple[tuple[str, str], ...] = ()
) -> grpc.aio.Channel:
    """Without `tls`, as this context's own credentials say. `metadata` goes with every call."""
    own = own_tls() if tls is None else tls
    return Channel(address, MAX_MESSAGE_BYTES, own, metadata=metadata)


def new_server(authorise: Authorise | None = None, limits: Limits = SERVER) -> grpc.aio.Server:
    return ObservedServer(MAX_MESSAGE_BYTES, authorise, limits)


def bind(server: grpc.aio.Server, address: str, tls: Tls | None = None) -> str:
    """Listen there; port 0 takes a free one. Returns the address as others reach it."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise PortInUse(f"listen address {address!r} must be HOST:PORT, such as 127.0.0.1:7400")
    if tls is None and not is_loopback(host):
        raise NotSecured(
            f"{address} can be reached from other machines, and without credentials a program listens on loopback only "
            "(127.0.0.1, ::1, localhost): give it some with --credentials FILE (docs/security.md)"
        )
    _refuse_taken(host, int(port))
    try:
        if tls is None:
            bound = server.add_insecure_port(address)
        else:
            bound = server.add_secure_port(address, tls)  # type: ignore[arg-type]
    except RuntimeError as error:
        raise PortInUse(
            f"cannot listen on {address}: {error}; choose another with --port"
        ) from None
    return f"{host}:{bound}"


def _refuse_taken(host: str, port: int) -> None:
    """gRPC's own message for a taken port is a page long: look first."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host.strip("[]"), port))
        except OSError as error:
            what = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used ({error})"
            raise PortInUse(
                f"{host}:{port} {what}: stop the program that listens there, or choose another "
                "port with --port"
            ) from None
