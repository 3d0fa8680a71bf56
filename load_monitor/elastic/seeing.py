"""From the planner's snapshot and what a provisioner has made, to what a decision is made from. Pure."""

from __future__ import annotations

from load_monitor.elastic.seen import Inventory, Seen, SeenServer
from load_monitor.planning.snapshot import ClusterSnapshot, ServerLoad
from utuple.cluster.move import Move

HEARD_S = 5.0
"""Nobody is taken for out of every line unless every server was heard of within this."""


def seen_of(
    snapshot: ClusterSnapshot,
    inventory: Inventory,
    *,
    settle_s: float,
    silent_s: float,
    floor: int = 0,
) -> Seen:
    """`settle_s` and `silent_s` are the planner's: after a move load shows what it did, and who is silent does not serve."""
    members = {member.name for load in snapshot.lines for member in load.line.members}
    moving = {name for move in (*snapshot.under_way, *snapshot.announced) for name in move.servers}
    loads = {load.name: load for load in snapshot.servers}
    # Somebody who has not been heard may be home of a move that is about the one that leaves.
    are_all_heard = all(load.silent_s <= HEARD_S for load in snapshot.servers)
    made = {server.name: server for server in inventory.servers}

    def seen_server(name: str) -> SeenServer:
        load, ours = loads.get(name), made.get(name)
        serves = load is not None and load.silent_s <= silent_s
        leaving = load is not None and load.draining
        return SeenServer(
            name,
            ours.machine if ours is not None else "",
            ours is not None and ours.waits,
            serves,
            load.processing if load is not None else 0.0,
            load.processing_lately if load is not None else 0.0,
            load.memory if load is not None else 0.0,
            leaving,
            leaving and are_all_heard and not (name in members or name in moving or _owes(load)),
            ours is not None,
        )

    return Seen(
        snapshot.now_s,
        tuple(seen_server(name) for name in sorted(loads.keys() | made.keys())),
        inventory.machines,
        _settling(snapshot, settle_s),
        snapshot.trend.processing_per_s,
        inventory.next_server,
        floor,
    )


def _owes(load: ServerLoad | None) -> bool:
    return load is not None and load.shipments > 0


def _settling(snapshot: ClusterSnapshot, settle_s: float) -> str:
    if snapshot.under_way:
        return f"{_moves(snapshot.under_way)} under way"
    last_s = max((done.at_s for done in snapshot.recent), default=None)
    if last_s is None or snapshot.now_s - last_s >= settle_s:
        return ""
    return f"load moved {max(0.0, snapshot.now_s - last_s):.0f} s ago"


def _moves(moves: tuple[Move, ...]) -> str:
    return "1 move is" if len(moves) == 1 else f"{len(moves)} moves are"
