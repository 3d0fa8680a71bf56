"""Moves, ordered continually at the homes, as a load monitor gone mad would. What becomes of them stands in the
homes' records."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

from benchmarks.chaos.ground import Ground
from benchmarks.chaos.moves import gist
from benchmarks.chaos.orders import Ordered, next_order
from benchmarks.chaos.sight import LOOK_S, Sight
from utuple.admin import transport
from utuple.cluster.line import Line
from utuple.cluster.move import Move, MoveKind
from utuple.errors import UTupleError
from utuple.local.keeper import Say
from utuple.runtime.clock import monotonic_s

EVERY_S = (2.0, 4.0)
WAITING = 8
"""Orders that wait for their answer, at homes that are away; beyond it none is given."""
PROXY_SHARE = 0.3
"""Of orders go through the proxy, so that some are lost as others' words are; not all, for new connections
are what a busy machine fails in first."""
LINES_MOST = 12
"""At the end of a run. Until then it grows with time, so that there is a split now and then to the last."""
RETURN_AGAIN_S = 3.0
"""A line's member is told to return again only then: the order before may be on its way."""
RETURN_LIMIT_S = 90.0


@dataclass(slots=True)
class Given:
    """Our orders so far, and what was answered. The load monitor's are not among them."""

    taken: int = 0
    unanswered: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    wrong_refused: int = 0
    wrong_taken: list[str] = field(default_factory=list)
    """Orders that no server may take, and one did: a bug."""

    @property
    def summary(self) -> dict[str, Any]:
        return {
            "taken": self.taken,
            "unanswered": self.unanswered,
            "refused": dict(sorted(self.refused.items())),
            "wrong_refused": self.wrong_refused,
            "wrong_taken": len(self.wrong_taken),
        }

    def answered(self, ordered: Ordered, *, accepted: bool, reason: str) -> None:
        if ordered.fits:
            self.taken += accepted
            self.refused.update([] if accepted else [gist(reason)])
        elif accepted:
            self.wrong_taken.append(f"{ordered.to} took an order that cannot be: {ordered.move}")
        else:
            self.wrong_refused += 1


class Ordering:
    def __init__(self, ground: Ground, sight: Sight, seed: int, lasts_s: float, say: Say) -> None:
        self.given = Given()
        self._ground = ground
        self._sight = sight
        self._dice = Random(f"orders {seed}")
        self._lasts_s = lasts_s
        self._say = say
        self._waiting: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until cancelled."""
        began_s = monotonic_s()
        while True:
            await asyncio.sleep(self._dice.uniform(*EVERY_S))
            share = min(1.0, (monotonic_s() - began_s) / max(self._lasts_s, 1.0))
            founding = self._ground.real.servers
            most = founding + 1 + round(share * (LINES_MOST - founding - 1))
            ordered = next_order(self._dice, self._sight.situation(most))
            if ordered is not None and len(self._waiting) < WAITING:
                task = asyncio.create_task(self._give(ordered))
                self._waiting.add(task)
                task.add_done_callback(self._waiting.discard)

    async def end(self) -> None:
        """The last orders are answered, or will not be."""
        await asyncio.gather(*self._waiting)

    async def _give(self, ordered: Ordered) -> None:
        move, address = ordered.move, self._ground.address_of(ordered.to)
        if self._dice.random() < PROXY_SHARE:
            address = self._ground.proxies[ordered.to].address
        try:
            answer = await transport.move(address, move)
        except UTupleError as error:
            self.given.unanswered += 1
            self._say(f"order to {ordered.to} not answered: {move}: {error}")
            return
        self.given.answered(ordered, accepted=answer.accepted, reason=answer.reason)
        said = f"taken as {answer.id.hex()}" if answer.accepted else f"refused: {answer.reason}"
        self._say(f"order to {ordered.to}: {move}{'' if ordered.fits else ' (wrong)'}: {said}")

    # --- before the calm -----------------------------------------------------------------------------

    async def all_return(self) -> list[str]:
        """Every suspended member is told to come back, until none is left; who does not."""
        deadline_s = monotonic_s() + RETURN_LIMIT_S
        told_s: dict[tuple[int, str], float] = {}
        await self._sight.look()
        while (away := self._sight.suspended) and monotonic_s() < deadline_s:
            for line, name in away:
                place = (line.section.start, name)
                if monotonic_s() - told_s.get(place, -RETURN_AGAIN_S) >= RETURN_AGAIN_S:
                    told_s[place] = monotonic_s()
                    await self._give(_return(line, name))
            await asyncio.sleep(LOOK_S)
            await self._sight.look()
        return [f"{name} does not return to {line}" for line, name in away]


def _return(line: Line, name: str) -> Ordered:
    move = Move(MoveKind.RETURN, line.section, line.epoch, name, why="chaos is over")
    return Ordered(line.home, move)
