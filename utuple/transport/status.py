"""How a call ended: gRPC's status, its message, and trailers. As both ends have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import grpc

from utuple.transport.http2.headers import Header, Metadata, message_of, metadata_of
from utuple.transport.messages import TooLarge, Unreadable

_CODES: dict[int, grpc.StatusCode] = {code.value[0]: code for code in grpc.StatusCode}


@dataclass(frozen=True, slots=True)
class Status:
    code: grpc.StatusCode
    details: str = ""
    trailers: Metadata = ()

    def error(self) -> grpc.aio.AioRpcError:
        trailers = grpc.aio.Metadata(*self.trailers)
        return grpc.aio.AioRpcError(self.code, grpc.aio.Metadata(), trailers, self.details)


_BY_HTTP = {
    "400": grpc.StatusCode.INTERNAL,
    "401": grpc.StatusCode.UNAUTHENTICATED,
    "403": grpc.StatusCode.PERMISSION_DENIED,
    "404": grpc.StatusCode.UNIMPLEMENTED,
    **dict.fromkeys(("429", "502", "503", "504"), grpc.StatusCode.UNAVAILABLE),
}
"""As gRPC reads an answer that is not gRPC's: from a proxy, mostly."""


OK = Status(grpc.StatusCode.OK)


def is_grpc(said: Mapping[str, str]) -> bool:
    """Can what follows these be gRPC?"""
    return said.get(":status") == "200" and said.get("content-type", "").startswith(
        "application/grpc"
    )


def status_of(headers: Sequence[Header], said: Mapping[str, str]) -> Status:
    """As the last headers of an answer say it; `said` are the same by name."""
    if len(headers) == 1 and headers[0] == ("grpc-status", "0"):
        return OK
    if "grpc-status" not in said:
        http = said.get(":status", "")
        read_as = _BY_HTTP.get(http, grpc.StatusCode.UNKNOWN)
        return Status(read_as, f"HTTP status {http}, not gRPC's")
    code = said["grpc-status"]
    is_number = len(code) <= 2 and code.isascii() and code.isdigit()
    return Status(
        _CODES.get(int(code) if is_number else -1, grpc.StatusCode.UNKNOWN),
        message_of(said.get("grpc-message", "")),
        metadata_of(headers),
    )


def status_of_unreadable(error: Unreadable) -> Status:
    is_large = isinstance(error, TooLarge)
    code = grpc.StatusCode.RESOURCE_EXHAUSTED if is_large else grpc.StatusCode.INTERNAL
    return Status(code, str(error))
