"""gRPC channels and servers with our limits, in one place."""

from __future__ import annotations

import errno
import socket

import grpc

from utuple.errors import UTupleError

MAX_MESSAGE_BYTES = 64 << 20
"""A batch of uTuples: the largest a peer may send. A single uTuple is limited to 1 MiB."""

KEEPALIVE_S = 10
"""A peer that is cut off without a word is noticed after this and the time-out below."""

KEEPALIVE_TIMEOUT_S = 5

_COMMON = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.keepalive_time_ms", KEEPALIVE_S * 1000),
    ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_S * 1000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", KEEPALIVE_S * 500),
)

_CLIENT = (
    *_COMMON,
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.enable_retries", 0),  # retries are ours: they must say that they are
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.use_local_subchannel_pool", 1),
)

_SERVER = (*_COMMON, ("grpc.so_reuseport", 0), ("grpc.keepalive_permit_without_calls", 1))


class PortInUse(UTupleError):
    """Another program listens there. The message says what to do."""


def open_channel(address: str) -> grpc.aio.Channel:
    return grpc.aio.insecure_channel(address, options=_CLIENT)


def new_server() -> grpc.aio.Server:
    return grpc.aio.server(options=_SERVER)


def bind(server: grpc.aio.Server, address: str) -> str:
    """Listen there; port 0 takes a free one. Returns the address as others reach it."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise PortInUse(f"listen address {address!r} must be HOST:PORT, such as 127.0.0.1:7400")
    _refuse_taken(host, int(port))
    try:
        bound = server.add_insecure_port(address)
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
