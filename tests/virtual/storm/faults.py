"""Faults from the seed: crashes, stops, lost databases, cut links, bad weather, clocks that are set.

Each seed knows only some kinds of them, and some seeds know few faults at all: a reader that is disturbed
all the time reads the store all the time, and so would hide what was never sent to it live.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

from tests.virtual.coverage import BETWEEN_SERVERS, PHASES, SIDES, struck
from tests.virtual.plan import BEGIN_S, STORM_S
from tests.virtual.programs.cluster import FARTHEST_S, Cluster
from tests.virtual.world.network import Call, Weather

_FAULTS_MOST = (3, 8, 14, 20)
_BAD_WEATHER = 0.6
"""The share of seeds whose network loses, doubles and delays all the time."""

_AMBUSHED = (
    frozenset({"register"}),
    frozenset({"command", "sca_command", "sca_register"}),
    frozenset(BETWEEN_SERVERS),
    *(frozenset({method}) for method in BETWEEN_SERVERS),
)

_USUAL_STEP_S = 12.0
"""Mostly a clock is set by no more than this."""


class Faults:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._world = cluster.world
        self._network = cluster.network
        self._dice = cluster.world.dice("faults")
        self.is_over = False
        self._bad_weather = False
        self._ambushes: list[tuple[str, str, frozenset[str]]] = []
        self._network.watchers.append(self._passes)
        self._kinds: list[tuple[int, Callable[[], str]]] = [
            (6, self._crash_server),
            (4, self._crash_database),
            (2, self._crash_both),
            (2, self._stop),
            (2, self._crash_client),
            (1, self._crash_manager),
            (1, self._crash_managers),
            (2, self._crash_sca),
            (2, self._join_sca),
            (2, self._leave_sca),
            (1, self._crash_monitor),
            (3, self._partition),
            (3, self._one_way),
            (3, self._reset),
            (3, self._storm),
            (2, self._set_clock),
            (4, self._ambush),
            (6, self._ambush_commit),
        ]

    async def run(self) -> None:
        dice = self._dice
        end_s = BEGIN_S + STORM_S
        most = dice.choice(_FAULTS_MOST)
        times = sorted(dice.uniform(BEGIN_S, end_s) for _ in range(dice.randint(most // 2, most)))
        weights = [weight if dice.random() < 0.5 else 0 for weight, _ in self._kinds]
        weights[0] = weights[0] or int(not any(weights))
        self._bad_weather = dice.random() < _BAD_WEATHER
        self._usual_weather()
        for at_s in times:
            await asyncio.sleep(max(0.0, at_s - self._world.now_s))
            _, happen = dice.choices(self._kinds, weights)[0]
            done = happen()
            if done:
                self._world.count(f"fault {done}")
        await asyncio.sleep(max(0.0, end_s - self._world.now_s))

    def heal(self) -> None:
        """No more faults, and everything runs."""
        self.is_over = True
        self._world.trace("all is healed")
        self._network.heal()
        self._network.weather = Weather()
        for name, process in self._cluster.processes.items():
            if process.disk is not None:
                process.disk.restart()
            if process.life is not None:
                self._world.loop.continue_life(process.life)
            self._cluster.start_if_wanted(name)

    # --- processes -----------------------------------------------------------------------------------

    def away_s(self) -> float:
        return self._dice.choice((0.05, 0.5, 2.0, 6.0, 15.0)) * (0.5 + self._dice.random())

    def _crash_server(self) -> str:
        died = self._cluster.crash(self._dice.choice(self._cluster.servers), self.away_s())
        return "server killed" if died else ""

    def _crash_database(self) -> str:
        name = self._dice.choice(self._cluster.servers)
        return "database killed" if self._cluster.crash_database(name, self.away_s()) else ""

    def _crash_both(self) -> str:
        name = self._dice.choice(self._cluster.servers)
        self._cluster.crash_database(name, self.away_s())
        died = self._cluster.crash(name, self.away_s())
        return "server and database killed" if died else ""

    def _stop(self) -> str:
        name = self._dice.choice(list(self._cluster.processes))
        stopped = self._cluster.stop(name, min(8.0, self.away_s()))
        return "process stopped for a while" if stopped else ""

    def _crash_client(self) -> str:
        clients = [name for name in self._cluster.processes if name.startswith("client")]
        died = self._cluster.crash(self._dice.choice(clients), self.away_s())
        return "client killed" if died else ""

    def _crash_manager(self) -> str:
        died = self._cluster.crash(self._dice.choice(self._cluster.managers), self.away_s())
        return "manager killed" if died else ""

    def _crash_managers(self) -> str:
        """Several at once: all who hold a line may be among them."""
        names = self._dice.sample(self._cluster.managers, (len(self._cluster.managers) + 2) // 2)
        died = [self._cluster.crash(name, self.away_s()) for name in names]
        return "managers killed at once" if any(died) else ""

    def _crash_sca(self) -> str:
        died = self._cluster.crash(self._dice.choice(self._cluster.scas), self.away_s())
        return "sCA server killed" if died else ""

    def _join_sca(self) -> str:
        joined = self._cluster.join_sca(self._dice.choice(self._cluster.scas))
        return "sCA server joins" if joined else ""

    def _leave_sca(self) -> str:
        left = self._cluster.leave_sca(self._dice.choice(self._cluster.scas))
        return "sCA server leaves" if left else ""

    def _crash_monitor(self) -> str:
        monitors = [name for name in self._cluster.processes if name.startswith("monitor")]
        if not monitors:
            return ""
        died = self._cluster.crash(self._dice.choice(monitors), self.away_s())
        return "monitor killed" if died else ""

    # --- in the middle of a call ---------------------------------------------------------------------

    def _ambush(self) -> str:
        """The next call of some kind kills one of its two sides, before it arrives or before its answer
        leaves."""
        methods = self._dice.choice(_AMBUSHED)
        self.ambush(self._dice.choice(PHASES), self._dice.choice(SIDES), methods)
        return "ambush"

    def ambush(self, phase: str, side: str, methods: Collection[str]) -> None:
        self._ambushes.append((phase, side, frozenset(methods)))

    def _ambush_commit(self) -> str:
        """The next commit of a server loses its database, or its server, before or after it is stored."""
        name, phase = self._dice.choice(self._cluster.servers), self._dice.choice(PHASES)
        server_dies, away_s = self._dice.random() < 0.4, self.away_s()
        disk = self._cluster.processes[name].disk
        assert disk is not None

        def spring() -> None:
            if not self.is_over:
                who = "server" if server_dies else "database"
                self._world.trace(f"ambush: {who} of {name} {phase} a commit")
                self._world.count(f"crash of {who} {phase} a commit")
                crash = self._cluster.crash if server_dies else self._cluster.crash_database
                crash(name, away_s)

        disk.traps[phase] = self._dice.random() < 0.6, spring
        return "ambush of a commit"

    def _passes(self, phase: str, call: Call) -> None:
        for ambush in self._ambushes:
            wanted, side, methods = ambush
            if wanted == phase and call.method in methods and not self.is_over:
                self._ambushes.remove(ambush)
                name = (call.caller if side == "caller" else call.target).name
                self._world.trace(f"ambush: {side} {name} {phase} {call.method}")
                if self._cluster.crash(name, self.away_s()):
                    self._world.count(struck(side, phase, call.method))
                return

    # --- the network ---------------------------------------------------------------------------------

    def _partition(self) -> str:
        names = list(self._cluster.processes)
        side = self._dice.sample(names, self._dice.randint(1, len(names) // 2))
        rest = [name for name in names if name not in side]
        self.cut(side, rest, self.away_s())
        return "partition"

    def _one_way(self) -> str:
        one, other = self._dice.sample(list(self._cluster.processes), 2)
        self.cut([one], [other], self.away_s(), both=False)
        return "one-way partition"

    def cut(self, froms: list[str], tos: list[str], for_s: float, *, both: bool = True) -> None:
        self._world.trace(f"cut for {for_s:.1f} s:", *froms, "<->" if both else "->", *tos)
        self._network.block(froms, tos, both=both)

        def mend() -> None:
            if not self.is_over:
                self._world.trace("mended:", *froms)
                self._network.unblock(froms, tos, both=both)

        self._world.loop.later(for_s, mend)

    def _reset(self) -> str:
        one, other = self._dice.sample(list(self._cluster.processes), 2)
        self._network.reset(one, other)
        return "connection reset"

    def _usual_weather(self) -> None:
        if not self.is_over:
            bad = Weather(lost=0.003, doubled=0.01, slow=0.01, slow_s=1.0)
            self._network.weather = bad if self._bad_weather else Weather()

    def _storm(self) -> str:
        self._world.trace("a storm")
        self._network.weather = Weather(lost=0.05, doubled=0.05, slow=0.2, slow_s=3.0)
        self._world.loop.later(self._dice.uniform(1.0, 6.0), self._usual_weather)
        return "storm on the network"

    # --- clocks --------------------------------------------------------------------------------------

    def _set_clock(self) -> str:
        process = self._cluster.processes[self._dice.choice(list(self._cluster.processes))]
        farthest_s = self._dice.choice((_USUAL_STEP_S, _USUAL_STEP_S, FARTHEST_S))
        process.clock.ahead_s = self._dice.uniform(-farthest_s, farthest_s)
        self._world.trace(process.name, f"its clock is set {process.clock.ahead_s:+.1f} s")
        return "clock set"
