"""Shrinking: lines that grew under load become small again when it is gone. Pure.

Every member costs each EF and CA one registration more (Appendix A), so helpers that are no longer needed go
off, one at a time, and members that are off leave once what they held has expired (A.3).
"""

from __future__ import annotations

from load_monitor.board import Board, Place
from load_monitor.moves import FlipOff, Release
from load_monitor.upkeep import next_home_answers


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
            board.take(row, Release(load.line.section, member.name, why))
            return True
    return False


def _send_off(board: Board, row: int) -> bool:
    """The last that came goes first, and the home only if nobody else is on."""
    line = board.rows[row].line
    if len(line.accumulatable) < 2 or not board.history.may_shrink(row):
        return False
    for position in range(len(line.members) - 1, 0, -1):
        member, place = line.members[position], Place(row, position)
        if member.accumulatable and board.may_move(member.name) and _is_spare(board, place):
            why = f"the others have room for what {member.name} does here"
            move = FlipOff(line.section, member.name, why)
            board.take(row, move, *board.others_on(place))
            return True
    return False


def _is_spare(board: Board, place: Place) -> bool:
    """Those who stay on keep below the low threshold with this member's part on top of their own."""
    policy, others = board.policy, board.others_on(place)
    staying = [
        server
        for server in map(board.servers.__getitem__, others)
        if not (server.draining or server.processing_high or server.memory_high)
        and server.memory <= policy.helper_memory_max
    ]
    if not staying or not all(map(board.may_move, others)):
        return False
    room = sum(
        max(0.0, policy.processing_low - max(server.processing, server.processing_lately))
        for server in staying
    )
    return board.share(place) <= room
