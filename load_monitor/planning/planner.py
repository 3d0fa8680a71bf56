"""The planner: what shall move now. Pure: the same function decides live, in the virtual cluster and in the
operational simulation.

Sections 3.4 to 3.6 and Appendix A of the paper, as rules that each look at one board and take moves from it.
Their order is their priority. At most one move per line; what a plan leaves undone the next one sees again.
"""

from __future__ import annotations

from dataclasses import dataclass

from load_monitor.planning.advice import Advice, advise
from load_monitor.planning.board import Board
from load_monitor.planning.merging import merge
from load_monitor.planning.policy import Policy
from load_monitor.planning.relief import relieve
from load_monitor.planning.repair import bring_back, drain, suspend, welcome
from load_monitor.planning.shrink import shrink
from load_monitor.planning.snapshot import ClusterSnapshot
from utuple.cluster.move import Move

RULES = (
    suspend,  # EFs and CAs wait for silent members
    bring_back,  # what a suspended member holds is not searched
    welcome,  # a new server relieves the most loaded one better than any helper
    relieve,
    drain,
    shrink,
    merge,  # what is no more than tidy comes last
)


@dataclass(frozen=True, slots=True)
class Plan:
    moves: tuple[Move, ...] = ()
    """The most urgent first; independent of each other, so they may be driven at the same time."""
    advice: tuple[Advice, ...] = ()


def plan(snapshot: ClusterSnapshot, policy: Policy) -> Plan:
    board = Board(snapshot, policy)
    for rule in RULES:
        rule(board)
    return Plan(tuple(board.moves), advise(snapshot, board))
