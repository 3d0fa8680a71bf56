"""uTupleSpace: sensor programs, actuator programs and applications share data without knowing each other.

    async with utuple.connect("127.0.0.1:7400") as space:
        await space.emit(subject="truck", type="load", address="truck-17", data={"kg": 1200})

The verbs are those of `Space`: `emit`, `emit_many`, `watch`, `read`, `serve`, `command`, `command_many`. `watch` gives a
`Watch`, `serve` a `Device`; both give deliveries (`Delivery`), as `read` does. `command` gives a `Receipt`. Programs
without an event loop use `utuple.blocking.connect`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from utuple.errors import (
    Closed,
    Conflict,
    InvalidInput,
    NotAllowed,
    NotRegistered,
    OutcomeUnknown,
    Overloaded,
    ReaderReplaced,
    Refused,
    SomeRefused,
    SomeRegistered,
    Unavailable,
    UnknownHost,
    UTupleError,
    WrongContext,
)
from utuple.model.area import Box, Circle
from utuple.model.condition import ABSENT, ANY, at_least, below, between, one_of, prefix
from utuple.model.terms import (
    DropPolicy,
    expire,
    keep,
    latest_per_address,
    newest,
    oldest,
    respond_within,
)

if TYPE_CHECKING:
    from utuple import blocking
    from utuple.client import (
        Delivery,
        Device,
        DeviceReceipt,
        Drop,
        Receipt,
        Receipts,
        Space,
        Watch,
        connect,
    )

__all__ = [
    "ABSENT",
    "ANY",
    "Box",
    "Circle",
    "Closed",
    "Conflict",
    "Delivery",
    "Device",
    "DeviceReceipt",
    "Drop",
    "DropPolicy",
    "InvalidInput",
    "NotAllowed",
    "NotRegistered",
    "OutcomeUnknown",
    "Overloaded",
    "ReaderReplaced",
    "Receipt",
    "Receipts",
    "Refused",
    "SomeRefused",
    "SomeRegistered",
    "Space",
    "UTupleError",
    "Unavailable",
    "UnknownHost",
    "Watch",
    "WrongContext",
    "at_least",
    "below",
    "between",
    "blocking",
    "connect",
    "expire",
    "keep",
    "latest_per_address",
    "newest",
    "oldest",
    "one_of",
    "prefix",
    "respond_within",
]


_OF_THE_CLIENT = frozenset(
    "Delivery Device DeviceReceipt Drop Receipt Receipts Space Watch connect".split()
)

if not TYPE_CHECKING:  # a type checker that saw this function would take any name for one of ours

    def __getattr__(name: str) -> object:
        """The client comes in when it is asked for, so that a simulation which imports `utuple.model` on a
        thousand workers does not load gRPC on each."""
        if name in _OF_THE_CLIENT:
            return getattr(importlib.import_module("utuple.client"), name)
        if name == "blocking":
            return importlib.import_module("utuple.blocking")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
