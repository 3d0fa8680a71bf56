"""The shell around the controller: look, decide, have it done. What it asks for takes minutes at times, so it runs beside the
poller, on its newest snapshot, and never waits for an answer before it looks again."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol, TypeVar

from load_monitor.elastic.actions import (
    Action,
    AddServer,
    CreateMachine,
    Decision,
    DeleteMachine,
    DrainServer,
    RemoveServer,
)
from load_monitor.elastic.controller import Controller
from load_monitor.elastic.forecast import Floor, floor_of
from load_monitor.elastic.seeing import seen_of
from load_monitor.elastic.seen import Machine, Seen
from load_monitor.elastic.settings import ElasticSettings
from load_monitor.planning.policy import Policy
from load_monitor.planning.snapshot import ClusterSnapshot
from load_monitor.provisioning.contract import Provisioner, ProvisioningFailed
from utuple.errors import InvalidInput, UTupleError
from utuple.runtime.clock import now_us
from utuple.runtime.logs import Log
from utuple.runtime.tasks import Tasks

DONE_KEPT = 20
"""Of the latest, for the operator's eyes."""
_MICROSECONDS = 1e6

_log = Log("load_monitor.elastic")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class View:
    """The poller's newest look at the cluster."""

    snapshot: ClusterSnapshot
    places: Mapping[str, str]
    """The servers' addresses."""


class Cluster(Protocol):
    """What elasticity asks of servers and managers."""

    async def leave(self, address: str) -> bool:
        """Is it leaving now?"""

    async def forget(self, name: str, address: str) -> None:
        """It is gone for good: managers need not remember it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Something that was asked for, and what came of it."""

    at_us: int
    what: str
    why: str
    failed: str = ""


@dataclass(slots=True)
class ElasticState:
    """What it says of itself."""

    acts: bool = False
    """Of several controllers one acts."""
    seen: Seen | None = None
    decision: Decision = field(default_factory=Decision)
    warning: str = ""
    waiting: tuple[str, ...] = ()
    wanted: int = 0
    machines: tuple[Machine, ...] = ()
    done: deque[Asked] = field(default_factory=lambda: deque(maxlen=DONE_KEPT))


class Elasticity:
    def __init__(
        self,
        name: str,
        settings: ElasticSettings,
        provisioner: Provisioner,
        cluster: Cluster,
        policy: Policy,
        floor: Floor | None = None,
    ) -> None:
        self.state = ElasticState()
        self._name = name
        self._settings = settings
        self._provisioner = provisioner
        self._cluster = cluster
        self._policy = policy
        self._floor = floor
        self._controller = self._new_controller()
        self.tasks = Tasks()
        self._doing: set[str] = set()
        self._trouble = ""

    def _new_controller(self, now_s: float | None = None) -> Controller:
        return Controller(self._settings.policy, self._provisioner.placing, now_s)

    async def run(self, latest: Callable[[], View | None], every_s: float) -> None:
        """Until cancelled."""
        try:
            while True:
                view = latest()
                if view is not None:
                    await self.look(view)
                await asyncio.sleep(every_s)
        finally:
            await self.tasks.close()
            await self._provisioner.close()

    async def look(self, view: View) -> None:
        """One look, and what follows from it."""
        try:
            is_held = await self._limited(self._provisioner.hold(self._name))
            inventory = await self._limited(self._provisioner.inventory())
        except (UTupleError, OSError, TimeoutError) as error:
            self._note_trouble(f"{type(error).__name__}: {error}")
            return
        self._note_trouble("")
        if is_held and not self.state.acts:
            self._controller = self._new_controller(view.snapshot.now_s)
        self._note_holding(is_held)
        policy = self._policy
        seen = seen_of(
            view.snapshot,
            inventory,
            settle_s=policy.settle_s,
            silent_s=policy.silent_s,
            floor=today(self._floor),
        )
        decision = self._controller.step(seen)
        self._say(seen, decision)
        if not is_held:
            self._controller = self._new_controller()  # it waits for nothing: another one acts
            return
        for action in decision.actions:
            if str(action) not in self._doing:
                self._doing.add(str(action))
                self.tasks.start(self._carry_out(action, view.places), str(action))

    # ------------------------------------------------------------------------------------------- doing

    async def _carry_out(self, action: Action, places: Mapping[str, str]) -> None:
        failed = ""
        try:
            await self._limited(self._do(action, places))
        except TimeoutError:
            failed = f"no answer within {self._settings.provisioner.limit_s:g} s"
        except (UTupleError, OSError) as error:
            failed = f"{type(error).__name__}: {error}"
        finally:
            self._doing.discard(str(action))
        self.state.done.appendleft(Asked(now_us(), str(action), action.why, failed))
        if failed:
            _log.warning("not done", what=str(action), why=action.why, reason=failed)
        else:
            _log.info("done", what=str(action), why=action.why)

    async def _do(self, action: Action, places: Mapping[str, str]) -> None:
        match action:
            case AddServer():
                await self._provisioner.create_server(action.name, action.machine)
            case DrainServer():
                if not await self._cluster.leave(places.get(action.name, "")):
                    raise ProvisioningFailed(f"{action.name} does not leave now")
            case RemoveServer():
                if await self._provisioner.delete_server(action.name) and action.name in places:
                    await self._cluster.forget(action.name, places[action.name])
            case CreateMachine():
                await self._provisioner.create_machine(action.machine)
            case DeleteMachine():
                await self._provisioner.delete_machine(action.name)

    async def _limited(self, work: Awaitable[_T]) -> _T:
        async with asyncio.timeout(self._settings.provisioner.limit_s):
            return await work

    # ------------------------------------------------------------------------------------------- saying

    def _say(self, seen: Seen, decision: Decision) -> None:
        state, controller = self.state, self._controller
        if decision.warning:
            _log.warning("warning", say=decision.warning)
        state.seen, state.decision = seen, decision
        state.waiting, state.wanted = tuple(controller.waiting), controller.wanted.count
        state.machines, state.warning = seen.machines, controller.warning

    def _note_holding(self, is_held: bool) -> None:
        if is_held != self.state.acts:
            _log.info("this controller acts" if is_held else "another controller acts")
        self.state.acts = is_held

    def _note_trouble(self, trouble: str) -> None:
        """One line when the provisioner stops answering, one when it answers again."""
        if trouble and not self._trouble:
            _log.warning("the provisioner does not answer", reason=trouble)
        if self._trouble and not trouble:
            _log.info("the provisioner answers")
        self._trouble = trouble


def read_floor(file: str) -> Floor | None:
    """What `[forecast] file` wants; None: nothing, or there is none."""
    if not file:
        return None
    try:
        return floor_of(Path(file).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("forecast.file", file, f"cannot be read: {error}") from None


def today(floor: Floor | None) -> int:
    """At least so many servers are wanted today."""
    now = datetime.fromtimestamp(now_us() / _MICROSECONDS, UTC)
    return floor.on(now.date()) if floor is not None else 0
