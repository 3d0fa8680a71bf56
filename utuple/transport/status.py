"""How a call ended: gRPC's status, its message, and trailers. As both ends have it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import grpc

from utuple.transport.headers import Header, Metadata, message_of, metadata_of
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


def status_of(headers: Sequence[Header]) -> Status:
    said = dict(headers)
    if "grpc-status" not in said:
        return Status(grpc.StatusCode.UNKNOWN, f"HTTP status {said.get(':status')}, not gRPC's")
    code = said["grpc-status"]
    return Status(
        _CODES.get(int(code) if code.isdigit() else -1, grpc.StatusCode.UNKNOWN),
        message_of(said.get("grpc-message", "")),
        metadata_of(headers),
    )


def status_of_unreadable(error: Unreadable) -> Status:
    is_large = isinstance(error, TooLarge)
    code = grpc.StatusCode.RESOURCE_EXHAUSTED if is_large else grpc.StatusCode.INTERNAL
    return Status(code, str(error))
