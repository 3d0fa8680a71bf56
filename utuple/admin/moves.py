"""Moves as an operator reads them: a home's record as a plain mapping with the names `--json` prints. Pure,
but for the messages it reads."""

from __future__ import annotations

from typing import Any

from utuple.cluster.move import MoveKind
from utuple.wire import utuple_pb2 as pb

Shown = dict[str, Any]

UNDER_WAY = ("learning", "committed", "aborted")
"""The rest has ended."""
MADE = ("committed", "done")
_TOLD_US = 5_000_000
"""After the commit, how long before a record that is not done is taken as it is: somebody does not hear."""
_MICROSECONDS = 1e6


def order_shown(order: pb.MoveOrder) -> Shown:
    """Keys in hexadecimal, as everywhere: they do not fit JSON's safe numbers."""
    return {
        "kind": kind_shown(order.kind),
        "start": f"{order.start:016x}",
        "end": f"{order.last + 1:016x}",
        "epoch": order.epoch,
        "member": order.member,
        "helper": order.helper or None,
        "key": f"{order.key:016x}" if order.kind == pb.SPLIT else None,
        "why": order.why,
    }


def move_shown(record: pb.MoveRecord, home: str, now_us: int) -> Shown:
    """Durations count from the beginning to the commit, or to giving up; until now if neither was."""
    until_us = record.committed_us or record.ended_us or now_us
    return {
        "id": record.id.hex(),
        "home": home,
        **order_shown(record.order),
        "step": pb.MoveStep.Name(record.step).lower(),
        "began_us": record.began_us,
        "committed_us": record.committed_us or None,
        "ended_us": record.ended_us or None,
        "seconds": round(max(0, until_us - record.began_us) / _MICROSECONDS, 3),
        "copied": record.copied,
        "rows": record.rows,
        "held_back_ms": round(record.held_us / 1000, 1),
        "cuts": record.cuts,
        "reason": record.reason,
    }


def kind_shown(kind: int) -> str:
    names = {pb.MoveKind.Value(kind.name): kind.value for kind in MoveKind}
    return names.get(pb.MoveKind.ValueType(kind), f"kind {kind}")


def is_settled(move: Shown, now_us: int) -> bool:
    """It is made, and its record says all it will say soon."""
    committed_us = move["committed_us"] or now_us
    return move["step"] == "done" or (move["step"] in MADE and now_us - committed_us > _TOLD_US)


def ends(move: Shown) -> tuple[str, str]:
    """The first and the last key of its section, as `utuple table` shows them."""
    return move["start"], f"{int(move['end'], 16) - 1:016x}"


def names_in(move: Shown) -> tuple[str, ...]:
    """The servers a move is about."""
    return tuple(name for name in (move["member"], move["helper"]) if name)


def sentence(move: Shown) -> str:
    """`help-processing: server-2 for server-1`, and the like."""
    member, helper = move["member"], move["helper"]
    match move["kind"]:
        case "help-processing" | "help-memory":
            return f"{helper} helps {member} ({move['kind'].removeprefix('help-')} load)"
        case "split":
            return f"{member} gives {helper} the part from {move['key']} on"
        case "drain":
            return f"{member} brings what it holds to {helper} and leaves"
        case "flip-on":
            return f"{member} goes on"
        case "flip-off":
            return f"{member} goes off"
        case "release":
            return f"{member} leaves"
        case "suspend":
            return f"{member} is suspended"
        case "return":
            return f"{member} is back"
    return f"{move['kind']} {member}"
