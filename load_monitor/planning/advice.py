"""Advice: what no move can mend, said to the operator in time. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from load_monitor.planning.board import Board
from load_monitor.planning.snapshot import ClusterSnapshot, ServerLoad
from utuple.model.section import Section


@dataclass(frozen=True, slots=True)
class AddServers:
    """Demand reaches what the servers can bear (section 3.6)."""

    count: int
    by_s: float
    """On the snapshot's clock."""
    load: str
    """processing or memory: which of them runs out."""
    sentence: str


@dataclass(frozen=True, slots=True)
class StartAgain:
    """A silent server that cannot be passed over: lines wait for it."""

    server: str
    lines: int
    sentence: str


@dataclass(frozen=True, slots=True)
class AskLess:
    """EFs and searches are what is too much: help takes EAs and CFs away, and every member is asked all the same."""

    server: str
    section: Section | None
    """Where most of it is, if that was said."""
    sentence: str


Advice: TypeAlias = AddServers | StartAgain | AskLess


def advise(snapshot: ClusterSnapshot, board: Board) -> tuple[Advice, ...]:
    additions = [
        advice
        for advice in (_for_processing(snapshot, board), _for_memory(snapshot, board))
        if advice is not None
    ]
    return (*additions, *_to_ask_less(board), *_to_start_again(board))


def _staying(board: Board) -> list[ServerLoad]:
    """Those whose capacity counts. A silent one's does: its cure is to start it, not to buy another."""
    return [server for server in board.servers.values() if not server.draining]


def _for_processing(snapshot: ClusterSnapshot, board: Board) -> AddServers | None:
    demand = sum(server.processing for server in board.servers.values())
    each = board.policy.processing_stop
    wants_help = any(
        server.processing_high and not board.is_past_help(server)
        for server in board.servers.values()
    )
    growth = snapshot.trend.processing_per_s
    return _advice(snapshot, board, "processing", demand, growth, each, wants_help)


def _for_memory(snapshot: ClusterSnapshot, board: Board) -> AddServers | None:
    staying = _staying(board)
    demand = sum(s.memory * s.capacity_bytes for s in board.servers.values())
    capacity_bytes = sum(s.capacity_bytes for s in staying) / max(1, len(staying))
    each = board.policy.memory_stop * capacity_bytes
    wants_help = any(server.memory_high for server in board.servers.values())
    growth = snapshot.trend.memory_bytes_per_s
    return _advice(snapshot, board, "memory", demand, growth, each, wants_help)


def _advice(
    snapshot: ClusterSnapshot,
    board: Board,
    load: str,
    demand: float,
    growth_per_s: float,
    each: float,
    wants_help: bool,
) -> AddServers | None:
    """`each` server bears so much in calm: the line through demand says when that is used up."""
    staying, growth_per_s = _staying(board), max(0.0, growth_per_s)
    if not staying:
        return None
    bearable, lead_s = each * len(staying), min(board.policy.lead_s, snapshot.trend.span_s)
    nobody_can_help = wants_help and not any(board.has_room(s.name) for s in staying)
    ahead = demand + growth_per_s * lead_s
    missing = math.ceil((ahead - bearable) / each - 1e-9)
    if missing <= 0 and not nobody_can_help:
        return None
    count = max(1, missing)
    is_due = demand >= bearable or nobody_can_help
    left_s = 0.0 if is_due else (bearable - demand) / growth_per_s
    when = "now" if is_due else f"within {_spoken(left_s)}"
    sentence = (
        f"Add {_servers(count)} {when}: {load} demand is {demand / bearable:.0%} of what "
        f"{_servers(len(staying))} can bear in calm, and {ahead / bearable:.0%} of it in "
        f"{_spoken(lead_s)}. Run `utuple server add` for each."
    )
    return AddServers(count, snapshot.now_s + left_s, load, sentence)


def _to_ask_less(board: Board) -> list[AskLess]:
    return [
        _ask_less(board, server)
        for name, server in sorted(board.servers.items())
        if board.is_past_help(server) and board.answers(name)
    ]


def _ask_less(board: Board, server: ServerLoad) -> AskLess:
    searches = {
        load.line.section: load.members[position].searches
        for load in board.rows
        for position, member in enumerate(load.line.members)
        if member.name == server.name
    }
    section = max(searches, key=lambda one: searches[one], default=None)
    if section is None or not searches[section]:
        section, where = None, ""
    else:
        where = f", most of them in section {section.start:016x}"
    sentence = (
        f"{server.name} is busy to {server.processing:.0%}, and {server.searches:.0%} of its time goes to EFs and "
        f"searches{where}. Helpers do not relieve it of those, since every member of a line is asked. Ask for less "
        "at once (narrower conditions, limit=, fewer programs that read anew), or give it a faster machine; "
        "`utuple status --json` has the load of every section by cause."
    )
    return AskLess(server.name, section, sentence)


def _to_start_again(board: Board) -> list[StartAgain]:
    waiting = dict.fromkeys((n for n in board.servers if not board.answers(n)), 0)
    if not waiting:
        return []
    for load in board.rows:
        line = load.line
        on = line.accumulatable
        blockers = {line.home, *on} if not any(map(board.answers, on)) else {line.home}
        for name in blockers & waiting.keys():
            waiting[name] += 1
    return [
        StartAgain(
            name,
            lines,
            f"Start {name} again, on its PostgreSQL or that one's standby: it has been silent for "
            f"{_spoken(board.servers[name].silent_s)} and {lines} of the lines cannot change, or take "
            "EFs and CAs, without it.",
        )
        for name, lines in sorted(waiting.items())
        if lines
    ]


def _servers(count: int) -> str:
    return "1 server" if count == 1 else f"{count} servers"


def _spoken(span_s: float) -> str:
    if span_s < 120:
        return f"{span_s:.0f} s"
    return f"{span_s / 60:.0f} min" if span_s < 7_200 else f"{span_s / 3_600:.0f} h"
