"""Calls that may be refused, without an error of gRPC's for whoever makes them."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import grpc


async def refusal_of(call: Awaitable[Any]) -> str:
    """What it was refused with; empty if it was not."""
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return f"{error.code().name}: {error.details()}"
    return ""
