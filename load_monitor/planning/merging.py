"""Merging: neighbouring sections that the same servers have come to serve become one again. Pure.

A server that comes takes half a section (section 3.6), and when it goes again its half stays a line of its own: without this
the table would only grow. The paper has as many peers as servers, so lines are merged only while there are more of them than
servers that stay. A section is split only while there are fewer: the two rules never take turns, whatever the load does.
"""

from __future__ import annotations

from load_monitor.planning.board import Board
from utuple.cluster.changes import joined
from utuple.errors import InvalidInput


def merge(board: Board) -> None:
    staying = sum(not server.draining for server in board.servers.values())
    too_many = board.lines_soon - staying
    for row in range(len(board.rows) - 1):
        if too_many <= 0 or board.is_full:
            return
        if _are_alike(board, row) and _are_calm(board, row):
            why = f"the same servers have both, and {board.lines_soon} lines are more than {staying} servers need"
            board.plan_merge(row, why=why)
            too_many -= 1


def _are_alike(board: Board, row: int) -> bool:
    try:
        line = joined(board.rows[row].line, board.rows[row + 1].line)
    except InvalidInput:
        return False
    return len(line.serving) == len(
        line.members
    )  # nobody is suspended: it may soon be another line


def _are_calm(board: Board, row: int) -> bool:
    """Nothing moves in either, nothing has lately, and no member is near anything that would move it: a section that needs
    help soon is better helped by half."""
    return all(
        board.is_free(at) and board.history.line_has_settled(at) and board.history.may_shrink(at)
        for at in (row, row + 1)
    ) and all(_is_calm(board, member.name) for member in board.rows[row].line.members)


def _is_calm(board: Board, name: str) -> bool:
    server, policy = board.servers[name], board.policy
    load = max(server.processing, server.processing_lately)
    return board.has_room(name) and board.may_move(name) and load <= policy.processing_low
