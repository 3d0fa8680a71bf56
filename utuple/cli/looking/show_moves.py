"""Moves and the load monitor, for people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.box import SIMPLE_HEAD
from rich.table import Table

from utuple.admin.moves import ShownMove, ends, sentence
from utuple.admin.programs import Monitor

_MICROSECONDS = 1e6


def table_of_moves(moves: Sequence[ShownMove], title: str = "Moves") -> Table:
    """The oldest first. Fits a terminal of 80 columns."""
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, show_lines=True)
    table.add_column("began")
    table.add_column("move", overflow="fold")
    table.add_column("section, home", no_wrap=True)
    table.add_column("step", no_wrap=True)
    table.add_column("took", justify="right", no_wrap=True)
    for move in moves:
        table.add_row(
            _time(move.began_us),
            "\n".join(filter(None, [sentence(move), move.reason or move.why, cost(move)])),
            "\n".join([*ends(move), move.home]),
            move.step,
            f"{move.seconds:.2f} s",
        )
    return table


def told(move: ShownMove) -> str:
    """A move on one line, for `utuple moves --follow`."""
    parts = [
        f"{_time(move.began_us)}  {move.step:<9}  {sentence(move)}",
        f"{' – '.join(ends(move))} at {move.home}",
        f"{move.seconds:.2f} s",
        *filter(None, [cost(move)]),
        move.reason or move.why,
    ]
    return "; ".join(parts)


def cost(move: ShownMove) -> str:
    parts = [
        f"{move.copied:,} EFs and CAs copied" if move.copied else "",
        f"held back {move.held_back_ms:.0f} ms" if move.held_back_ms else "",
        f"{move.rows:,} uTuples brought" if move.rows else "",
    ]
    return ", ".join(filter(None, parts))


def table_of_monitors(monitors: Sequence[Monitor]) -> Table | None:
    if not monitors:
        return None
    table = Table(title="Load monitors", title_justify="left", box=SIMPLE_HEAD)
    for column in ("name", "address", "state", "orders", "last order"):
        table.add_column(column, overflow="fold")
    for monitor in monitors:
        orders = f"{monitor.accepted:,} accepted, {monitor.refused:,} refused"
        table.add_row(monitor.name, monitor.address, monitor.state, orders, _last_order(monitor))
    return table


def _last_order(monitor: Monitor) -> str:
    if not monitor.orders:
        return "none"
    last = monitor.orders[0]
    answer = "" if last.accepted else f" (refused: {last.reason})"
    return f"{_time(last.at_us)} {sentence(last)}{answer}"


def _time(at_us: int) -> str:
    return f"{datetime.fromtimestamp(at_us / _MICROSECONDS).astimezone():%H:%M:%S}"
