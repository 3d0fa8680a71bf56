"""What the operator's commands choose by themselves: who, where, and whether it makes sense. No calls here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from utuple.admin.programs import WATCHING, Server
from utuple.admin.snapshot import Snapshot
from utuple.cluster.dimension import ADDRESS, Bound, check_dimension
from utuple.cluster.layout import NO_LAYOUT, Axis, Layout
from utuple.cluster.line import Line
from utuple.cluster.move import Move, MoveKind, target
from utuple.cluster.spread import Spread, quantile_axis
from utuple.errors import InvalidInput, UTupleError

NextOrder = Callable[[Line], Move | None]
"""What is still to be done with a line as it is now."""


class NotDone(UTupleError):
    """What was asked for did not happen; the message says what to do now."""


class Refused(NotDone):
    """By the home: by now the line may be another than the order was planned by."""


def serving(snapshot: Snapshot, name: str) -> Server:
    """That server, if it answers."""
    server = snapshot.server(name)
    if server is None:
        names = ", ".join(shown.name for shown in snapshot.servers)
        raise InvalidInput("server", name, f"must be one of {names}")
    if not server.serves:
        raise NotDone(f"{name} is {server.state}: start it again first, then try once more")
    return server


def staying(snapshot: Snapshot) -> list[str]:
    """Those that serve, and are not about to leave."""
    return [server.name for server in snapshot.servers if server.stays]


def may_leave(snapshot: Snapshot, name: str) -> None:
    serving(snapshot, name)
    if not [other for other in staying(snapshot) if other != name]:
        raise last_one(name)


def last_one(name: str) -> NotDone:
    return NotDone(
        f"{name} is the last server that serves and stays: nobody could take over. Add one first "
        "with `utuple server add`"
    )


def may_stay(snapshot: Snapshot, name: str) -> None:
    """A drain is undone while nothing was brought away; afterwards a server is added again."""
    server = serving(snapshot, name)
    if not server.leaving:
        raise NotDone(f"{name} is not leaving: there is no drain to undo")
    if server.shipments:
        raise NotDone(
            f"some of {name}'s uTuples were brought away already: let it leave, and add a server again"
        )


def require_monitor(snapshot: Snapshot) -> None:
    if not any(monitor.state == WATCHING for monitor in snapshot.monitors):
        raise NotDone(
            "no load monitor watches this cluster, and it is the one that orders moves: start one with "
            "`utuple up` (without --no-monitor), or python -m load_monitor --name monitor-1 --listen "
            "HOST:PORT --managers HOST:PORT,…"
        )


def line_to_help(snapshot: Snapshot, name: str, start: str | None = None) -> Line:
    """The section that begins at `start`, or the one of most arrivals, of those where it is on."""
    on = [line for line in snapshot.lines_of(name) if name in line.accumulatable]
    if not on:
        raise NotDone(f"{name} takes EAs and CFs of no section: there is nothing to help with")
    if start is None:
        arrivals = {
            section.start: section.arrival_per_s for section in serving(snapshot, name).sections
        }
        return max(on, key=lambda line: arrivals.get(_hex(line), 0.0))
    for line in on:
        if _hex(line) == start.lower().removeprefix("0x").rjust(16, "0"):
            return line
    starts = ", ".join(map(_hex, on))
    raise InvalidInput("--section", start, f"{name} is on in the sections that start at {starts}")


def helper_for(snapshot: Snapshot, line: Line, asked: str | None = None) -> str:
    """The least loaded server that is not on in this line already."""
    if asked is not None:
        serving(snapshot, asked)
        return asked
    able = [name for name in staying(snapshot) if name not in line.accumulatable]
    if not able:
        raise NotDone(
            f"every server that serves and stays is on in {line} already: add one with `utuple server "
            "add`, or name another section with --section"
        )
    return min(able, key=lambda name: (_pressure(serving(snapshot, name)), name))


def order_for_help(line: Line, name: str, helper: str, *, memory: bool) -> Move:
    """Refused here if it makes no sense for this line."""
    member = line.member(helper)
    if member is not None and member.accumulatable and helper != name:
        raise InvalidInput("--helper", helper, f"is on in {line} already")
    kind = MoveKind.HELP_MEMORY if memory else MoveKind.HELP_PROCESSING
    move = Move(kind, line.section, line.epoch, name, helper, why="the operator asked for it")
    target(move, line)
    return move


def _pressure(server: Server) -> float:
    load, capacity = server.load, server.capacity_bytes
    return max(load.busy, server.size_bytes / capacity if capacity else 0.0)


def _hex(line: Line) -> str:
    return f"{line.section.start:016x}"


def layout_of(line: Line, by: str, spread: Spread | None = None) -> Layout:
    """`data.kg:10:20,lat:35` as a layout of this line: the home owns every segment, beside one of the others in turn. On the next
    axis the turn begins with the next one, so that an event can mostly choose among several. A dimension without bounds is
    cut where EAs fall into equal parts."""
    others = [name for name in line.accumulatable if name != line.home]
    if by and not others:
        raise InvalidInput("--by", by, f"nobody but {line.home} is on in {line}: add help first")
    axes = []
    for turn, cut in enumerate(by.split(",") if by else ()):
        dimension, *bounds = cut.split(":")
        cuts = tuple(bound if dimension == ADDRESS else _number(cut, bound) for bound in bounds)
        if not cuts and spread is not None:
            turned = [others[(at + turn) % len(others)] for at in range(len(others))]
            axes.append(quantile_axis(spread, check_dimension(dimension), turned, line.home))
            continue
        if not cuts:
            raise InvalidInput("--by", cut, f"say where {dimension} is cut, as {dimension}:10:20")
        owners = ((others[(at + turn) % len(others)], line.home) for at in range(len(cuts) + 1))
        axes.append(Axis(dimension, cuts, tuple(owners)))
    return Layout(tuple(axes))


def _number(cut: str, bound: str) -> Bound:
    try:
        return int(bound) if bound.lstrip("-").isdigit() else float(bound)
    except ValueError:
        raise InvalidInput("--by", cut, f"{bound!r} must be a number") from None


def next_to_cut(line: Line, layout: Layout) -> Move | None:
    """A line under help is partitioned; one that is partitioned is cut anew, which each who keeps more learns by a move of its own.
    One at a time, since a home may change its line in between: it forgets earlier layouts by itself."""
    if line.layout == layout:
        return None
    if not line.layout.axes:
        return _of_line(MoveKind.PARTITION, line, line.home, layout=layout)
    learner, between = line.layout.recuts(layout, line.home)[0]
    return _of_line(MoveKind.RECUT, line, line.home, learner, layout=between)


def next_to_gather(line: Line, names: Iterable[str]) -> Move | None:
    """Those who were on beside the home come on again."""
    if line.layout.axes:
        return _of_line(MoveKind.GATHER, line, line.home)
    off = (name for name in names if name not in line.accumulatable and line.member(name))
    return next((_of_line(MoveKind.FLIP_ON, line, name) for name in off), None)


def lines_to_come(line: Line, next_order: NextOrder) -> Iterator[Line]:
    """What becomes of the line, if nothing else changes it."""
    while (order := next_order(line)) is not None:
        (line,) = target(order, line)
        yield line


def _of_line(
    kind: MoveKind, line: Line, member: str, helper: str = "", layout: Layout = NO_LAYOUT
) -> Move:
    why = "the operator asked for it"
    return Move(kind, line.section, line.epoch, member, helper, why=why, layout=layout)
