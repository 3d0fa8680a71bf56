"""Shrinking: lines that grew under load become small again when it is gone. Pure.

Every member costs each EF and CA one registration more (Appendix A), so helpers that are no longer needed go
off, one at a time, and members that are off leave once what they held has expired (A.3).
"""

from __future__ import annotations

from collections.abc import Mapping

from load_monitor.planning.board import Board, Place
from load_monitor.planning.repair import next_home_answers
from utuple.cluster.move import MoveKind


def shrink(board: Board) -> None:
    for row in board.crowded:
        if board.is_full:
            return
        if board.is_free(row) and board.history.line_has_settled(row):
            _release(board, row) or _send_off(board, row)


def _release(board: Board, row: int) -> bool:
    """A.3: the first member that is off and holds nothing."""
    load = board.rows[row]
    for position, member in enumerate(load.line.members):
        if member.accumulatable or member.suspended or not load.members[position].is_empty:
            continue
        if board.answers(member.name) and next_home_answers(board, Place(row, position)):
            why = f"{member.name} is off and holds nothing"
            board.plan(row, MoveKind.RELEASE, member.name, why=why)
            return True
    return False


def _send_off(board: Board, row: int) -> bool:
    """The last that came goes first, and the home only if nobody else is on."""
    line = board.rows[row].line
    if not board.history.may_shrink(row):
        return False
    on = board.answering_on(row)
    if not all(map(board.may_move, on)):
        return False
    rooms = {name: _room(board, name) for name in on if _stays(board, name)}
    most = sum(rooms.values())
    for position in range(len(line.members) - 1, 0, -1):
        member, place = line.members[position], Place(row, position)
        if not member.accumulatable or not board.may_move(member.name):
            continue
        if board.share(place) <= most and _is_spare(board, place, rooms):
            why = f"the others have room for what {member.name} does here"
            others = board.others_on(place)
            board.plan(row, MoveKind.FLIP_OFF, member.name, why=why, touched=others)
            return True
    return False


def _is_spare(board: Board, place: Place, rooms: Mapping[str, float]) -> bool:
    """Those who stay on keep below the low threshold with this member's part on top of their own."""
    me = board.member(place).name
    others = [room for name, room in rooms.items() if name != me]
    return bool(others) and board.share(place) <= sum(others)


def _stays(board: Board, name: str) -> bool:
    """May it take over from another that goes off."""
    server = board.servers[name]
    return (
        not (server.draining or server.processing_high or server.memory_high)
        and server.memory <= board.policy.helper_memory_max
    )


def _room(board: Board, name: str) -> float:
    server = board.servers[name]
    load = max(server.processing, server.processing_lately)
    return max(0.0, board.policy.processing_low - load)
