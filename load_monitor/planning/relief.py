"""Relief of an overloaded server: sections 3.4 and 3.5, with A.1 before a new helper and A.2 throughout.

One move per overloaded server, for its hottest section first; then it settles and is looked at again. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from load_monitor.planning.board import Board, Place
from load_monitor.planning.snapshot import ServerLoad
from utuple.cluster.move import MoveKind


def relieve(board: Board) -> None:
    """The most overloaded first. A draining server is relieved by its drain, a silent one not at all."""
    overloaded = [
        server
        for server in board.servers.values()
        if (server.processing_high or server.memory_high)
        and not server.draining
        and board.answers(server.name)
    ]
    overloaded.sort(key=lambda server: (-board.pressure(server), server.name))
    for server in overloaded:
        if board.is_full:
            return
        if not board.may_move(server.name) or board.is_in_hand(server.name):
            continue
        # Where nothing comes in, a helper would take nothing: each EF and CA still goes to every member.
        places = [place for place in board.hottest_first(server.name) if board.takes_some(place)]
        if server.memory_high:
            _relieve_memory(board, server, places)
        else:
            _relieve_processing(board, server, places)


def _relieve_processing(board: Board, server: ServerLoad, places: list[Place]) -> None:
    if board.is_past_help(server):
        return  # `advice` says so
    name, why = server.name, f"processing load of {server.name} is {server.processing:.2f}"
    for place in places:  # A.1
        row = place.row
        if board.share(place) < board.policy.worthwhile:
            break
        if can_leave(board, place) and board.history.may_turn_off(row, name):
            return board.plan(row, MoveKind.FLIP_OFF, name, why=why, touched=board.others_on(place))
        member = board.member_to_turn_on(row)
        if member is not None:
            return board.plan(row, MoveKind.FLIP_ON, member, why=why, touched=[name])
    least = min(board.policy.worthwhile, server.spread / max(1, len(board.on[name])))
    for place in places:
        if board.share(place) < least:
            break  # crumbs: where the hottest section cannot get more help, these would not relieve it
        helper = board.newcomer_to(place.row)
        if helper is not None:
            return board.plan(place.row, MoveKind.HELP_PROCESSING, name, helper, why=why)


def _relieve_memory(board: Board, server: ServerLoad, places: list[Place]) -> None:
    name, why = server.name, f"memory load of {server.name} is {server.memory:.2f}"
    for place in places:  # A.1
        row = place.row
        if can_leave(board, place):
            return board.plan(row, MoveKind.FLIP_OFF, name, why=why, touched=board.others_on(place))
        member = board.member_to_turn_on(row)
        if member is not None:
            return board.plan(row, MoveKind.HELP_MEMORY, name, member, why=why)
    for place in places:
        helper = board.newcomer_to(place.row)
        if helper is not None:
            return board.plan(place.row, MoveKind.HELP_MEMORY, name, helper, why=why)


def can_leave(board: Board, place: Place) -> bool:
    """The others that are on can take this member's part, and none of them is about to move."""
    if not board.has_room_in(place.row):
        return False
    others = board.others_on(place)
    return (
        any(board.has_room(name) for name in others)
        and all(board.may_move(name) for name in others)
        and board.share(place) <= room(board, others, board.policy.processing_stop)
    )


def room(board: Board, names: Iterable[str], level: float) -> float:
    """What these servers can take before they reach that level. Clients go where the wait is shortest,
    so it is filled like water, not in equal parts."""
    return sum(
        max(0.0, level - board.servers[name].processing) for name in names if board.has_room(name)
    )
