"""Many readers that come and go, each with a family of its own: arrivals and the work on each event are exponential, as in paper 004, and
so are the visits, unless they are those of a recording. What each saw is compared with what the model says of the very same visits,
arrivals and work (`ops_sim/dropping/following.py`)."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import utuple
from benchmarks.child import Answer, answer_questions, settings
from benchmarks.dropping.visits import Period, drawn, recorded
from ops_sim.dropping.following import Visit, followed
from utuple import Drop, DropPolicy

ADDRESSES = 3
_TRIED = 20
"""Draws of who joins by ζ, of which the mean is the model's."""
_EMPTY_S = 2.0
"""Without any event, in the last visit: everything was given."""


@dataclass
class Seen:
    """By one reader, on one clock."""

    arrivals_s: list[float] = field(default_factory=list)
    """By the event's number."""
    registered_s: list[float] = field(default_factory=list)
    """When its sensor heard that it is durable: it has passed the queue before the reader's, as in the paper's figure 1."""
    works_s: list[float] = field(default_factory=list)
    left_s: dict[int, float] = field(default_factory=dict)
    """Work that is not done yet."""
    worked_s: dict[int, float] = field(default_factory=dict)
    """As it was, of those begun."""
    response_s: dict[int, float] = field(default_factory=dict)
    visits: list[Visit] = field(default_factory=list)
    zetas: dict[int, float] = field(default_factory=dict)
    """By visit: the ζ of the absence before it, if something was dropped."""
    dropped: int = 0
    repeated: int = 0


class Intermittent:
    def __init__(
        self,
        space: Any,
        name: str,
        policy: DropPolicy,
        periods: Iterator[Period],
        given: Mapping[str, Any],
    ) -> None:
        self._space, self._given, self._policy, self._periods = space, given, policy, periods
        self._dice = random.Random(name)
        self._asked = {"subject": name, "type": "visit"}
        self.seen = Seen()

    async def run(self, seconds: float) -> None:
        began_s = time.monotonic()
        emitting = asyncio.create_task(self._emit(began_s, seconds))
        here_s = self._given["on_s"]
        while time.monotonic() - began_s < seconds:
            await self._be_here(here_s)
            away_s, here_s = next(self._periods, (self._given["off_s"], self._given["on_s"]))
            await asyncio.sleep(away_s)
        await emitting
        await self._be_here(3_600.0, until_empty=True)

    async def _emit(self, began_s: float, seconds: float) -> None:
        due_s, seen = began_s, self.seen
        while due_s - began_s < seconds:
            due_s += self._dice.expovariate(self._given["arrival_per_s"])
            await asyncio.sleep(max(0.0, due_s - time.monotonic()))
            number = len(seen.arrivals_s)
            seen.arrivals_s.append(time.monotonic())
            seen.works_s.append(self._dice.expovariate(self._given["service_per_s"]))
            address = f"{number % ADDRESSES}"
            await self._space.emit(**self._asked, address=address, data={"n": number})
            seen.registered_s.append(time.monotonic())

    def _told(self, drop: Drop) -> None:
        self.seen.dropped += drop.count
        if drop.zeta is not None:
            self.seen.zetas[len(self.seen.visits)] = drop.zeta

    async def _be_here(self, seconds: float, *, until_empty: bool = False) -> None:
        watch = self._space.watch(
            **self._asked, reader="intermittent", absent=self._policy, on_dropped=self._told
        )
        async with watch as events:
            began_s = time.monotonic()
            until_s = began_s + seconds
            while (left_s := until_s - time.monotonic()) > 0:
                some = await events.take(1, timeout_s=_EMPTY_S if until_empty else left_s)
                if not some and until_empty:
                    break
                for event in some:
                    await self._work(event, until_s)
            self.seen.visits.append(Visit(began_s, time.monotonic()))

    async def _work(self, event: Any, until_s: float) -> None:
        """What is interrupted by the end of the visit is not acknowledged, and comes again."""
        seen, number, began_s = self.seen, event.data["n"], time.monotonic()
        work_s = seen.left_s.get(number, seen.works_s[number])
        await asyncio.sleep(min(work_s, max(0.0, until_s - began_s)))
        if began_s + work_s > until_s:
            seen.left_s[number] = work_s - max(0.0, until_s - began_s)
            seen.worked_s[number] = seen.worked_s.get(number, 0.0) + time.monotonic() - began_s
            return
        await event.ack()
        now_s = time.monotonic()
        seen.worked_s[number] = seen.worked_s.get(number, 0.0) + now_s - began_s
        seen.repeated += number in seen.response_s
        seen.response_s[number] = now_s - seen.arrivals_s[number]

    # --- beside the model ------------------------------------------------------------------------

    def modelled(self) -> list[list[float | None]]:
        """The response of each event by the model, in one draw or several; the work, and the time until an event was registered,
        are the run's own."""
        seen = self.seen
        works_s = [seen.worked_s.get(n, work_s) for n, work_s in enumerate(seen.works_s)]
        draws = _TRIED if self._policy.kind == "respond_within" else 1

        def drawn() -> list[float | None]:
            queued_s = followed(seen.visits, seen.registered_s, works_s, self._kept)
            known_s = zip(queued_s, seen.arrivals_s, seen.registered_s, strict=True)
            return [None if own is None else own + until - since for own, since, until in known_s]

        return [drawn() for _ in range(draws)]

    def _kept(self, away: Sequence[int], visit: int) -> Iterable[int]:
        count = int(self._policy.number)
        match self._policy.kind:
            case "newest":
                return away[-count:]
            case "oldest":
                return away[:count]
            case "latest_per_address":
                return away[-ADDRESSES:]
            case "expire":
                since_s = self.seen.visits[visit].began_s - self._policy.number
                return [n for n in away if self.seen.arrivals_s[n] >= since_s]
            case "respond_within":
                zeta = self.seen.zetas.get(visit, 1.0)
                return [n for n in away if self._dice.random() < zeta]
        return away


def _answer(crowd: Sequence[Intermittent], warm_up_s: float) -> Answer:
    """Of what arrived after the warm-up."""
    live: list[float] = []
    model: list[float] = []
    counted = model_counted = 0
    for one in crowd:
        seen = one.seen
        first_s = seen.arrivals_s[0] + warm_up_s
        numbers = [n for n, at_s in enumerate(seen.arrivals_s) if at_s >= first_s]
        counted += len(numbers)
        live += [seen.response_s[n] for n in numbers if n in seen.response_s]
        for drawn_s in one.modelled():
            model_counted += len(numbers)
            model += [given_s for n in numbers if (given_s := drawn_s[n]) is not None]
    every = [one.seen for one in crowd]
    visits = [visit for seen in every for visit in seen.visits[:-1]]
    return {
        "counted": len(live),
        "mean_response_s": _mean(live),
        "model_s": _mean(model),
        "success_rate": len(live) / max(1, counted),
        "model_success_rate": len(model) / max(1, model_counted),
        "zeta": _mean([zeta for seen in every for zeta in seen.zetas.values()]) or 1.0,
        "on_s": _mean([visit.ended_s - visit.began_s for visit in visits]),
        "work_s": _mean([work_s for seen in every for work_s in seen.worked_s.values()]),
        "matched": sum(len(seen.arrivals_s) for seen in every),
        "delivered": sum(len(seen.response_s) for seen in every),
        "declared": sum(seen.dropped for seen in every),
        "repeated": sum(seen.repeated for seen in every),
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


async def main() -> None:
    given = settings()
    async with utuple.connect(*given["managers"]) as space:

        async def run(question: Mapping[str, Any]) -> Answer:
            crowds = {}
            for name, policy in question["policies"].items():
                periods = _periods(name, given)
                crowds[name] = [
                    Intermittent(space, f"{name}-{number}", DropPolicy(*policy), own, given)
                    for number, own in enumerate(periods)
                ]
            every = [one for crowd in crowds.values() for one in crowd]
            await asyncio.gather(*(one.run(question["seconds"]) for one in every))
            return {name: _answer(crowd, given["warm_up_s"]) for name, crowd in crowds.items()}

        await answer_questions({"run": run}, asyncio.Event())


def _periods(name: str, given: Mapping[str, Any]) -> list[Iterator[Period]]:
    readers, on_s, off_s = given["readers"], given["on_s"], given["off_s"]
    if name.startswith("recorded"):
        return [iter(periods) for periods in recorded(readers, on_s + off_s)]
    return [drawn(on_s, off_s, random.Random(f"{name}/{number}")) for number in range(readers)]


if __name__ == "__main__":
    asyncio.run(main())
