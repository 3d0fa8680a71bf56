"""Parked deliveries, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from utuple.model.utuple import datetime_of
from utuple.model.value import decode_data

if TYPE_CHECKING:
    from utuple.wire import utuple_pb2 as pb

_DONE = {"list": "are parked", "release": "are released", "drop": "are dropped"}


def print_parked(events: Sequence[pb.ParkedEvent], action: str, *, json: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    from utuple.cli.options import print_json_block

    if json:
        print_json_block([_told(event) for event in events])
        return
    console = Console(highlight=False)
    if events:
        table = Table(title=f"{len(events)} {_DONE[action]}", title_justify="left", box=None)
        for column in ("id", "address", "time", "attempts", "reason", "data"):
            table.add_column(column, overflow="fold")
        for event in events:
            said = _told(event)
            table.add_row(*(str(said[name]) for name in _SHOWN))
        console.print(table)
    else:
        console.print("Nothing is parked." if action == "list" else "Nothing was parked of that.")


_SHOWN = ("id", "address", "time", "attempts", "reason", "data")


def _told(event: pb.ParkedEvent) -> dict[str, Any]:
    return {
        "id": str(UUID(bytes=event.id)),
        "subject": event.family.subject,
        "type": event.family.type,
        "address": event.address,
        "time": datetime_of(event.time_us).isoformat(),
        "data": decode_data(event.payload),
        "attempts": event.attempts,
        "reason": event.reason,
        "parked": datetime_of(event.parked_us).isoformat(),
        "server": event.origin,
    }
