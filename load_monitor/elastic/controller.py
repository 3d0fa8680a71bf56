"""The controller of both levels: what is seen goes in, what is to be done comes out. Pure.

It remembers waits and what it asked for, and nothing that matters: names come from what is seen, and everything that is asked for
by name may be asked for again. So one that is killed, or whose answers are lost, makes nothing twice, and leaves nothing behind: what
it had asked for shows up, and is used, or given back because it is empty.
"""

from __future__ import annotations

from dataclasses import dataclass

from load_monitor.elastic.actions import (
    Action,
    AddServer,
    CreateMachine,
    Decision,
    DeleteMachine,
    DrainServer,
    RemoveServer,
)
from load_monitor.elastic.inner import Wanted, are_needed, is_low, wanted
from load_monitor.elastic.outer import new_machines, room_on, what_fits
from load_monitor.elastic.policy import ElasticPolicy
from load_monitor.elastic.seen import Machine, Seen, next_number, number_of

AGAIN_S = 15.0
"""What was asked for and has not shown is asked for again after this: the answer may have been lost."""

OUT_S = 3.0
"""In no line for so long before a server is removed: clients with an old line are told of the new one."""


@dataclass(frozen=True, slots=True)
class Placing:
    """How a provisioner's servers come and go."""

    places_itself: bool = False
    """A scheduler finds places: servers that wait are asked for at once, and shown as waiting."""
    first_leaves: bool = False
    """Servers leave in the order they came; else the last that came leaves first."""
    makes_machines: bool = True
    """Else servers that find no place are warned of."""
    prefix: str = "server"
    """Of the servers' names: a number follows."""


class Controller:
    def __init__(
        self,
        policy: ElasticPolicy,
        placing: Placing = Placing(),
        decided_s: float | None = None,
    ) -> None:
        """`decided_s`: one that takes over does not know when the last one decided, and waits as if it had been then."""
        self.policy = policy
        self.waiting: dict[str, float] = {}
        """Servers that are wanted and have no place, with the moment that began."""
        self.wanted = Wanted(0, "nothing was seen yet")
        self._placing = placing
        self._asked_s: dict[tuple[str, str], float] = {}
        self._why: dict[str, str] = {}
        self._made: dict[str, Machine] = {}
        """Machines asked for that have not shown: asked for again as they were."""
        self.decided_s = decided_s
        """When the number of servers was last changed."""
        self._has_shrunk = False
        """By the last decision."""
        self._low_since_s: float | None = None
        self._unsettled_since_s: float | None = None
        self._empty_since_s: dict[str, float] = {}
        self._out_since_s: dict[str, float] = {}
        self._last_ready_s: float | None = None
        self._ready: set[str] = set()
        self.warning = ""
        """What cannot be done now; empty: nothing."""

    def step(self, seen: Seen) -> Decision:
        """One look, and what follows from it."""
        self._note(seen)
        self.wanted = wanted(seen, self.policy.servers, self._is_calm(seen.now_s))
        waits = self._what_to_wait_for(seen)
        actions: list[Action] = [] if waits else self._change_servers(seen)
        actions += self._place(seen)
        made, warning = self._make_machines(seen)
        actions += made
        actions += self._remove(seen)
        return Decision(tuple(actions), self.wanted.why, self._news(warning), waits)

    # ---------------------------------------------------------------------------------------- remembering

    def _note(self, seen: Seen) -> None:
        now_s = seen.now_s
        there = {server.name for server in seen.servers if not server.waits}
        for server in seen.servers:
            if server.waits:
                self.waiting.setdefault(server.name, now_s)
        self.waiting = {name: at for name, at in self.waiting.items() if name not in there}
        shown = {machine.name for machine in seen.machines}
        self._made = {name: made for name, made in self._made.items() if name not in shown}
        for machine in seen.machines:
            if machine.ready and machine.name not in self._ready:
                self._last_ready_s = now_s
            if machine.ready and not seen.on(machine.name):
                self._empty_since_s.setdefault(machine.name, now_s)
            else:
                self._empty_since_s.pop(machine.name, None)
        self._ready = {machine.name for machine in seen.machines if machine.ready}
        self._empty_since_s = {n: at for n, at in self._empty_since_s.items() if n in shown}
        out = [server.name for server in seen.servers if server.is_out]
        self._out_since_s = {name: self._out_since_s.get(name, now_s) for name in out}
        self._asked_s = {a: at for a, at in self._asked_s.items() if now_s - at < AGAIN_S}
        if not is_low(seen, self.policy.servers):
            self._low_since_s = None
        elif self._low_since_s is None:
            self._low_since_s = now_s

    def _is_calm(self, now_s: float) -> bool:
        since_s = self._low_since_s
        return since_s is not None and now_s - since_s >= self.policy.servers.calm_s

    def _is_asked(self, verb: str, name: str, now_s: float) -> bool:
        """Has it just been asked for? If not, it is now."""
        if (verb, name) in self._asked_s:
            return True
        self._asked_s[verb, name] = now_s
        return False

    def _news(self, warning: str) -> str:
        """A warning is said once, until something else is the matter."""
        is_new, self.warning = warning != self.warning, warning
        return warning if is_new else ""

    # -------------------------------------------------------------------------------------------- waiting

    def _what_to_wait_for(self, seen: Seen) -> str:
        """Before the number of servers may change again."""
        rules, now_s = self.policy.servers, seen.now_s
        if self.decided_s is not None:
            is_leaving_again = self._has_shrunk and self.wanted.count < len(seen.current)
            pause_s = rules.leave_s if is_leaving_again else rules.cooldown_s
            left_s = pause_s - (now_s - self.decided_s)
            if left_s > 0:
                return f"the last decision was {pause_s - left_s:.0f} s ago: {left_s:.0f} s more"
        unsettled = _unsettled(seen)
        if not unsettled:
            self._unsettled_since_s = None
            return ""
        if self._unsettled_since_s is None:
            self._unsettled_since_s = now_s
        if now_s - self._unsettled_since_s < rules.settle_limit_s:
            return unsettled
        return ""

    # ---------------------------------------------------------------------------------------- inner level

    def _change_servers(self, seen: Seen) -> list[Action]:
        count, why = self.wanted.count, self.wanted.why
        now = len(seen.current)
        if self.waiting:
            is_over = count <= now and not are_needed(seen, self.policy.servers)
            return self._give_up_waiting(seen) if is_over else []
        if count == now:
            return []
        if count > now:
            self.decided_s, self._has_shrunk = seen.now_s, False
            first = max(seen.next_server, next_number(server.name for server in seen.servers))
            for at in range(count - now):
                name = f"{self._placing.prefix}-{first + at}"
                self.waiting[name], self._why[name] = seen.now_s, why
            return []
        if self._unsettled_since_s is not None:
            return []  # only growth must not wait for ever
        leavers = [server for server in seen.current if server.is_ours]
        leavers.sort(key=lambda s: number_of(s.name), reverse=not self._placing.first_leaves)
        self.decided_s, self._has_shrunk = seen.now_s, True
        return [DrainServer(server.name, why) for server in leavers[: now - count]]

    def _give_up_waiting(self, seen: Seen) -> list[Action]:
        """Load fell before there was a place."""
        names, self.waiting = sorted(self.waiting, key=number_of, reverse=True), {}
        self.decided_s, self._has_shrunk = seen.now_s, True
        shown = {server.name for server in seen.servers}
        return [RemoveServer(name, self.wanted.why) for name in names if name in shown]

    # ---------------------------------------------------------------------------------------- outer level

    def _place(self, seen: Seen) -> list[Action]:
        """Those that wait go where there is room."""
        actions: list[Action] = []
        shown = {server.name for server in seen.servers}
        free = {} if self._placing.places_itself else room_on(seen, self.policy)
        for name in sorted(self.waiting, key=number_of):
            if name in shown:
                continue
            why = self._why.get(name, self.wanted.why)
            if self._placing.places_itself:
                if not self._is_asked("add", name, seen.now_s):
                    actions.append(AddServer(name, "", why))
                continue
            machine = next((m for m, places in free.items() if places > 0), None)
            if machine is None:
                break
            free[machine] -= 1
            if not self._is_asked("add", name, seen.now_s):
                actions.append(AddServer(name, machine, why))
        return actions

    def _make_machines(self, seen: Seen) -> tuple[list[Action], str]:
        """Servers that have waited for long enough, all machines ready: what they ask for, as one machine."""
        rules, now_s = self.policy.machines, seen.now_s
        if self._made:
            return self._ask_again(now_s), ""
        homeless = len(self.waiting) - self._being_placed(seen)
        waited = [at for at in self.waiting.values() if now_s - at >= rules.pending_s]
        if homeless <= 0 or not waited or not all(machine.ready for machine in seen.machines):
            return [], ""
        waiting = min(homeless, len(waited))
        who = "1 server has waited" if waiting == 1 else f"{waiting} servers have waited"
        if not self._placing.makes_machines:
            return [], f"{who} {rules.pending_s:g} s, and no machine has room"
        first = next_number(machine.name for machine in seen.machines)
        made, missing = what_fits(
            new_machines(waiting, first, self.policy), seen.machines, self.policy.area
        )
        why = f"{who} {rules.pending_s:g} s for a place"
        warning = f"{why}, and there is no machine to be had: {missing}" if missing else ""
        self._made = {machine.name: machine for machine in made}
        for machine in made:
            self._why[machine.name] = why
        return self._ask_again(now_s), warning

    def _being_placed(self, seen: Seen) -> int:
        """Of those that wait, how many have a place already."""
        if self._placing.places_itself:
            return 0
        return sum(max(0, places) for places in room_on(seen, self.policy).values())

    def _ask_again(self, now_s: float) -> list[Action]:
        return [
            CreateMachine(machine, self._why.get(machine.name, ""))
            for machine in self._made.values()
            if not self._is_asked("create", machine.name, now_s)
        ]

    # ------------------------------------------------------------------------------------------- removing

    def _remove(self, seen: Seen) -> list[Action]:
        """Servers that have left every line, and machines that nobody needs."""
        now_s, empty_s = seen.now_s, self.policy.machines.empty_s
        out = [
            server
            for server in seen.servers
            if server.is_ours and now_s - self._out_since_s.get(server.name, now_s) >= OUT_S
        ]
        actions: list[Action] = [
            RemoveServer(server.name, f"{server.name} is in no line any more")
            for server in out
            if not self._is_asked("remove", server.name, now_s)
        ]
        if self.waiting or self._last_ready_s is None or now_s - self._last_ready_s < empty_s:
            return actions
        for name, since_s in self._empty_since_s.items():
            if now_s - since_s >= empty_s and not self._is_asked("delete", name, now_s):
                why = f"{name} has had no server for {empty_s:g} s"
                actions.append(DeleteMachine(name, why))
        return actions


def _unsettled(seen: Seen) -> str:
    leaving = [server.name for server in seen.servers if server.leaving]
    if leaving:
        return f"{leaving[0]} is leaving"
    starting = [s.name for s in seen.servers if not (s.serves or s.waits) and s.is_ours]
    if starting:
        return f"{starting[0]} does not serve yet"
    return seen.settling
