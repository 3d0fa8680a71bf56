"""The poller: look at the cluster, plan, give the orders, again and again. It keeps nothing that matters: a
monitor that dies changes nothing but that no new move starts, and two of them only get in each other's way."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from load_monitor.config import Config
from load_monitor.observing import PollResult, Report, SnapshotBuilder
from load_monitor.planning.advice import AddServers, Advice, AskLess
from load_monitor.planning.planner import plan
from load_monitor.planning.snapshot import ClusterSnapshot, ServerLoad
from load_monitor.recorder import Recorder
from load_monitor.transport import Calls, KnownCluster, OrderAnswer
from utuple.cluster.line import NO_TABLE, ServerInfo
from utuple.cluster.move import Move
from utuple.model.section import tiles
from utuple.runtime.clock import monotonic_s, now_us
from utuple.runtime.logs import Log

ORDERS_KEPT = 20
"""Of the latest, for the operator's eyes; the homes keep the records."""
_NO_ANSWER = OrderAnswer(accepted=False, reason="no answer in time")
_SHORTEST_PAUSE_S = 0.05
_REFUSALS_KEPT = 10
"""A refusal is forgotten after so many times the pause that follows it."""
_SERVER = "server"

_log = Log("load_monitor")


@dataclass(frozen=True, slots=True)
class OrderedMove:
    """An order, and what its home said."""

    at_us: int
    home: str
    move: Move
    answer: OrderAnswer


@dataclass(slots=True)
class MonitorState:
    """What the monitor says of itself."""

    polls: int = 0
    seen_us: int = 0
    """When it last saw the cluster."""
    accepted: int = 0
    refused: int = 0
    orders: deque[OrderedMove] = field(default_factory=lambda: deque(maxlen=ORDERS_KEPT))
    advice: tuple[Advice, ...] = ()
    snapshot: ClusterSnapshot | None = None
    """The newest of the whole table."""

    @property
    def servers(self) -> tuple[ServerLoad, ...]:
        return self.snapshot.servers if self.snapshot is not None else ()


class Poller:
    def __init__(
        self,
        config: Config,
        calls: Calls,
        managers: Callable[[], Iterable[str]],
        recorder: Recorder | None = None,
    ) -> None:
        """`managers` gives the addresses of all that are known now; the recorder keeps what is seen."""
        self.recorder = recorder
        self.state = MonitorState()
        self._config = config
        self._calls = calls
        self._managers = managers
        self._snapshots = SnapshotBuilder(config.policy)
        self._manager = ""
        self._known = KnownCluster((), ())
        self._refused_s: dict[Move, float] = {}
        """As they were planned: another key makes no other split of it."""
        self._advised: set[tuple[str, ...]] = set()
        self._is_blind = self._is_waiting = False

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                began_s = monotonic_s()
                await self.poll(began_s, now_us())
                spent_s = monotonic_s() - began_s
                await asyncio.sleep(max(_SHORTEST_PAUSE_S, self._config.poll_s - spent_s))
        finally:
            await self._calls.keep_only(())

    async def poll(self, now_s: float, at_us: int) -> None:
        """One look, and what follows from it."""
        seen = await self._ask_servers()
        self.state.polls += 1
        self._log_sight(seen)
        if not seen.reports:
            return
        if self.recorder is not None:
            self.recorder.record(seen.reports, now_s, at_us)
        snapshot = self._snapshots.snapshot(seen, now_s, at_us)
        if not tiles(load.line.section for load in snapshot.lines):
            return  # being created, or not all known yet: who seems to have no line may have one
        planned = plan(snapshot, self._config.policy)
        self.state.seen_us = at_us
        self.state.snapshot = snapshot
        self._advise(planned.advice)
        await asyncio.gather(*(self._order(move, now_s, at_us) for move in planned.moves))

    # ------------------------------------------------------------------------------------------- looking

    async def _ask_servers(self) -> PollResult:
        """With every manager gone, the servers known so far are still watched (law 6)."""
        known = await self._ask_managers()
        if known is not None:
            self._known = known
        places = self.places
        await self._calls.keep_only([*self._managers(), *places.values()])
        reports = await asyncio.gather(
            *(self._report(name, address) for name, address in places.items())
        )
        return PollResult(
            self._known.lines,
            frozenset(places),
            tuple(report for report in reports if report is not None),
        )

    async def _ask_managers(self) -> KnownCluster | None:
        """The one that answered last comes first."""
        for address in sorted(self._managers(), key=lambda address: address != self._manager):
            known = await self._calls.table(address)
            if known is not None:
                self._manager = address
                return known
        return None

    async def _report(self, name: str, address: str) -> Report | None:
        report = await self._calls.report(address)
        # Another server by now at that address must not be taken for this one.
        return report if report is not None and report.name == name else None

    @property
    def places(self) -> dict[str, str]:
        """The servers' addresses; those with another role by now are gone."""
        servers: Iterable[ServerInfo] = self._known.servers
        return {info.name: info.address for info in servers if info.role == _SERVER}

    def _log_sight(self, seen: PollResult) -> None:
        """One line when the cluster is lost from sight, one when it is back."""
        is_waiting = bool(seen.reports) and not seen.lines
        if is_waiting and not self._is_waiting:
            _log.warning("waiting", reason=NO_TABLE)
        self._is_waiting = is_waiting
        is_blind = not seen.reports
        if is_blind and not self._is_blind:
            _log.warning("no server answers", managers=",".join(self._managers()))
        if self._is_blind and not is_blind:
            _log.info("the cluster answers", servers=len(seen.reports))
        self._is_blind = is_blind

    # ------------------------------------------------------------------------------------------ ordering

    async def _order(self, planned: Move, now_s: float, at_us: int) -> None:
        wanted = self._snapshots.addressed(planned)
        if wanted is None:
            return
        home, move = wanted
        is_repeated = planned in self._refused_s
        if is_repeated and now_s - self._refused_s[planned] < self._config.again_s:
            return
        address = self.places.get(home, "")
        answer = (await self._calls.move(address, move) if address else None) or _NO_ANSWER
        if answer.accepted:
            self._snapshots.note_accepted(answer.id, move, now_s)
        self._note_refusal(planned, answer, now_s)
        self._log_order(OrderedMove(at_us, home, move, answer), is_repeated)

    def _note_refusal(self, planned: Move, answer: OrderAnswer, now_s: float) -> None:
        if answer.accepted:
            self._refused_s.pop(planned, None)
        else:
            self._refused_s[planned] = now_s
        oldest_s = now_s - _REFUSALS_KEPT * self._config.again_s
        self._refused_s = {at: when for at, when in self._refused_s.items() if when > oldest_s}

    def _log_order(self, ordered: OrderedMove, is_repeated: bool) -> None:
        """The same refusal again is counted, not said."""
        answer, move = ordered.answer, ordered.move
        self.state.accepted += answer.accepted
        self.state.refused += not answer.accepted
        if is_repeated and not answer.accepted:
            return
        self.state.orders.appendleft(ordered)
        said = {"home": ordered.home, "order": move, "why": move.why}
        if answer.accepted:
            _log.info("order accepted", **said, id=answer.id.hex())
        else:
            _log.info("order refused", **said, reason=answer.reason)

    # ------------------------------------------------------------------------------------------- advising

    def _advise(self, advice: tuple[Advice, ...]) -> None:
        """Said when it is news: the numbers in a sentence change with every look."""
        self.state.advice = advice
        now = {_gist(one): one for one in advice}
        for gist in now.keys() - self._advised:
            _log.warning("advice", say=now[gist].sentence)
        for gist in self._advised - now.keys():
            _log.info("advice withdrawn", was=" ".join(gist))
        self._advised = set(now)


def _gist(advice: Advice) -> tuple[str, ...]:
    if isinstance(advice, AddServers):
        return ("add servers", str(advice.count), advice.load)
    if isinstance(advice, AskLess):
        return ("ask less", advice.server)
    return ("start again", advice.server)
