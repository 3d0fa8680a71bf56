"""Repair of lines when servers come, go, fall silent and return. Pure.

A silent home is not handled here: it keeps its lines from changing, and its cure is to start it again.
"""

from __future__ import annotations

from load_monitor.planning.board import Board, Place
from load_monitor.planning.relief import can_leave
from utuple.cluster.move import MoveKind


def suspend(board: Board) -> None:
    """EFs and CAs wait for every silent member, so this waits for no limit. Not a home, whose lines cannot
    change; and not the last that is on: it alone has the EFs and CAs a helper would need."""
    for name in sorted(name for name in board.servers if not board.answers(name)):
        why = f"{name} has been silent for {board.servers[name].silent_s:.0f} s"
        for place in (*board.on.get(name, ()), *board.off.get(name, ())):
            if board.is_unlocked(place.row) and board.others_on(place):
                board.plan(place.row, MoveKind.SUSPEND, name, why=why)


def bring_back(board: Board) -> None:
    """What a suspended member holds is not searched until it is back: overloaded or not, it returns."""
    for place in board.suspended:
        if board.is_full:
            return
        name, row = board.member(place).name, place.row
        if not (board.answers(name) and board.history.may_turn_on(row, name)):
            continue
        teachers = board.others_on(place)
        if teachers and board.is_free(row):
            why = f"{name} answers again"
            board.plan(row, MoveKind.RETURN, name, why=why, touched=teachers[:1])


def welcome(board: Board) -> None:
    """Section 3.6. A server in no line takes half a section of the most loaded one. As many lines as
    servers suffice (the paper's peers): beyond that it takes over a line of a server that has several."""
    newcomers = _newcomers(board)
    if not newcomers:
        return
    staying = [server for server in board.servers.values() if not server.draining]
    givers = [
        server for server in staying if server.name in board.on and board.answers(server.name)
    ]
    givers.sort(key=lambda server: (-board.pressure(server), server.name))
    spare = len(staying) - board.lines_soon
    for giver in givers:
        if not newcomers or board.is_full:
            return
        if not board.may_move(giver.name):
            continue
        places = board.hottest_first(giver.name)
        newcomer = _who_may_join(board, places, newcomers)
        if newcomer is None:
            continue
        places = [place for place in places if board.may_join(newcomer, place.row)]
        if spare > 0:
            given = _split_or_share(board, places, giver.name, newcomer)
            spare -= given
        else:
            given = _hand_over(board, places, giver.name, newcomer)
        if given:
            newcomers.remove(newcomer)


def _who_may_join(board: Board, places: list[Place], newcomers: list[str]) -> str | None:
    """The first by name that was not drained of all of these sections."""
    for name in reversed(newcomers):
        if any(board.may_join(name, place.row) for place in places):
            return name
    return None


def _newcomers(board: Board) -> list[str]:
    """Servers in no line, the first by name last."""
    elsewhere = {board.member(place).name for place in board.suspended}
    return sorted(
        (
            name
            for name in board.servers
            if name not in board.on
            and name not in board.off
            and name not in elsewhere
            and board.has_room(name)
            and board.may_move(name)
        ),
        reverse=True,
    )


def _split_or_share(board: Board, places: list[Place], giver: str, newcomer: str) -> bool:
    """The hottest section in halves; one that cannot be halved is shared whole, if it gives a helper anything to do and its giver
    is above the low threshold: else `shrink` would send the helper off again, and the two would take turns for ever. The
    newcomer is then of more use as a helper in waiting."""
    place = _worth_halving(board, places) or places[0]
    row, section = place.row, board.line(place).section
    why = f"{newcomer} has no section yet"
    is_wide = section.end - section.start > 1
    if board.rows[row].splittable and is_wide and not _is_crowded(board, row):
        board.plan(row, MoveKind.SPLIT, giver, newcomer, why=why)
        return True
    server = board.servers[giver]
    load = max(server.processing, server.processing_lately)
    is_idle = board.share(place) < board.policy.worthwhile or load <= board.policy.processing_low
    if is_idle or len(board.rows[row].members) >= board.policy.members_max:
        return False
    board.plan(row, MoveKind.HELP_PROCESSING, giver, newcomer, why=why)
    return True


def _worth_halving(board: Board, places: list[Place]) -> Place | None:
    """The hottest, unless that line is crowded: then the next one that is worth it."""
    for place in places:
        if not _is_crowded(board, place.row):
            is_worth_it = place == places[0] or board.share(place) >= board.policy.worthwhile
            return place if is_worth_it else None
    return None


def _is_crowded(board: Board, row: int) -> bool:
    return len(board.rows[row].members) > board.policy.split_members_max


def _hand_over(board: Board, places: list[Place], giver: str, newcomer: str) -> bool:
    """The second hottest line: giving the hottest would only swap the two servers' parts."""
    if len(places) < 2 or len(board.rows[places[1].row].members) >= board.policy.members_max:
        return False
    why = f"{newcomer} has no section yet"
    board.plan(places[1].row, MoveKind.HELP_MEMORY, giver, newcomer, why=why)
    return True


def drain(board: Board) -> None:
    """A draining server goes off everywhere, with helpers in its place; then what it holds moves to an
    heir and it leaves the line. Its own load does not matter any more, so it need not settle."""
    draining = (name for name, server in board.servers.items() if server.draining)
    for name in sorted(filter(board.answers, draining)):
        left = board.policy.drain_at_once - board.history.at_work[name]
        for place in (*board.on.get(name, ()), *board.off.get(name, ())):
            if left <= 0 or board.is_full:
                break
            left -= board.is_free(place.row) and _drain_step(board, place, name)


def _drain_step(board: Board, place: Place, name: str) -> bool:
    """One move nearer to the end of this drain; False if nobody can take over now."""
    row, why = place.row, f"{name} is draining"
    if board.member(place).accumulatable:
        if can_leave(board, place):
            board.plan(row, MoveKind.FLIP_OFF, name, why=why, touched=board.others_on(place))
            return True
        helper = board.member_to_turn_on(row) or board.newcomer_to(row)
        if helper is not None:
            board.plan(row, MoveKind.HELP_MEMORY, name, helper, why=why)
        return helper is not None
    if not next_home_answers(board, place):
        return False
    if board.member_load(place).is_empty:
        board.plan(row, MoveKind.RELEASE, name, why=why)
        return True
    others = board.others_on(place)
    heir = board.helper_among(others)
    if heir is not None:
        board.plan(row, MoveKind.DRAIN, name, heir, why=why)
        return True
    helper = board.newcomer_to(row) if others else None
    if helper is not None and not any(map(board.has_room, others)):
        board.plan(row, MoveKind.HELP_PROCESSING, others[0], helper, why=why)
        return True
    return False


def next_home_answers(board: Board, place: Place) -> bool:
    """Whoever is home once this member has left must be there to confirm it."""
    line, leaving = board.line(place), board.member(place).name
    if line.home != leaving:
        return board.answers(line.home)
    on = [name for name in line.accumulatable if name != leaving]
    return bool(on) and board.answers(on[0])
