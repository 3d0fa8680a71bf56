"""Events and devices to one accumulatable member each: routed, sent, and sent again as `retry` says.

A member that has just failed is passed over for a moment by everything else too, so that one that is cut
off, full or has not heard of an epoch yet costs one attempt now and then and not one for every batch.
"""

from __future__ import annotations

import asyncio
import random
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from utuple.client.config import Config
from utuple.client.routing.choice import choose
from utuple.client.routing.lines import Lines
from utuple.client.routing.outcome import (
    BEHIND_REASONS,
    Behind,
    fate_of,
    refused,
    retry_after_s,
)
from utuple.client.routing.retrier import Retrier
from utuple.client.routing.retry import Fate, Tries
from utuple.client.routing.route import candidates, device_member
from utuple.client.sending.batcher import Batcher, Parcel, RowRefusal
from utuple.cluster.line import Line
from utuple.errors import Unavailable, UTupleError
from utuple.model.columns import Columns, columns_of
from utuple.model.key import key_of
from utuple.model.utuple import Family, UTuple
from utuple.wire import utuple_pb2 as pb

Pick = Callable[[Line, Tries], str]


@dataclass(frozen=True, slots=True)
class Failure:
    """Rows that were not registered, or may not be."""

    error: UTupleError
    columns: Columns
    numbers: Sequence[int]


@dataclass(frozen=True, slots=True)
class Shipment:
    """Rows on their way, with the numbers the caller knows them by. Each family of the columns has a row:
    where the others of a family go is no news of one that has none."""

    part: pb.Part.ValueType
    columns: Columns
    numbers: Sequence[int]
    tries: Tries

    def some(self, rows: Sequence[int]) -> Shipment:
        if len(rows) == len(self.columns):
            return self
        columns = _without_idle_families(self.columns.take(rows))
        return replace(self, columns=columns, numbers=[self.numbers[row] for row in rows])


Left = tuple[list[Shipment], list[Failure]]
"""What is to be sent again, and what is given up."""


class Registrar:
    def __init__(
        self,
        lines: Lines,
        batcher: Batcher,
        retrier: Retrier,
        dice: random.Random,
        config: Config,
    ) -> None:
        self._lines = lines
        self._batcher = batcher
        self._retrier = retrier
        self._dice = dice
        self._config = config
        self._passed_over: dict[str, float] = {}
        """Members that have failed, and until when they are passed over."""

    async def events(self, columns: Columns, tries: Tries) -> list[Failure]:
        """Register these EAs; what comes back was not, or may not be."""
        columns = _without_idle_families(columns)
        shipment = Shipment(pb.EVENTS, columns, range(len(columns)), tries)
        return await self._register(shipment, self._cheapest)

    async def device(self, device: UTuple, tries: Tries, visited: set[str]) -> str:
        """Register this CF; the member that has it. `visited` hears of every member that may have it."""
        member = ""

        def pick(line: Line, tries: Tries) -> str:
            nonlocal member
            member = tries.member if tries.member in line.accumulatable else ""
            member = member or device_member(device, line, tries.avoid)
            visited.add(member)
            return member

        shipment = Shipment(pb.DEVICES, columns_of([device]), range(1), tries)
        for failure in await self._register(shipment, pick):
            raise failure.error
        return member

    def takers(self, families: Iterable[Family]) -> int:
        """How many servers take events of these families, as far as is known."""
        lines = {self._lines.known(key_of(*family)) for family in families}
        return len({name for line in lines if line is not None for name in line.accumulatable})

    def _cheapest(self, line: Line, tries: Tries) -> str:
        if tries.member in line.accumulatable:
            return tries.member or ""
        names: Sequence[str] = candidates(line, tries.avoid)
        if len(names) == 1:
            return names[0]
        now_s = asyncio.get_running_loop().time()
        names = [name for name in names if self._passed_over.get(name, now_s) <= now_s] or names
        return choose(
            names,
            self._batcher.standing(names),
            now_s=now_s,
            dice=self._dice.random(),
            policy=self._config.choice,
        )

    def _pass_over(self, member: str, fate: Fate, asked_s: float) -> None:
        """Others do not try it either, for a moment: it is cut off, full, or has not heard of an epoch yet."""
        is_short = fate in (Fate.BEHIND, Fate.FULL)
        wait_s = max(asked_s, self._config.first_wait_s) if is_short else self._config.most_wait_s
        self._passed_over[member] = asyncio.get_running_loop().time() + wait_s

    async def _register(self, first: Shipment, pick: Pick) -> list[Failure]:
        work, failures = await self._round(first, pick)
        while work:
            rounds = await asyncio.gather(*(self._round(one, pick) for one in work))
            work = [one for again, _ in rounds for one in again]
            failures += [failure for _, given in rounds for failure in given]
        return failures

    async def _round(self, shipment: Shipment, pick: Pick) -> Left:
        """One attempt for every row, each by its line."""
        lines: dict[Family, Line] = {}
        for family in shipment.columns.families:
            try:
                lines[family] = await self._lines.line(key_of(*family), shipment.tries.deadline_s)
            except Unavailable as error:
                return await self._after(shipment, error, "", lines)
        if len(lines) == 1:
            (line,) = lines.values()
            return await self._send(shipment, pick(line, shipment.tries), lines)
        sections = {line.section: line for line in lines.values()}
        members = {at: pick(line, shipment.tries) for at, line in sections.items()}
        groups: dict[str, set[int]] = {}
        for number, family in enumerate(shipment.columns.families):
            groups.setdefault(members[lines[family].section], set()).add(number)
        if len(groups) == 1:
            return await self._send(shipment, next(iter(groups)), lines)
        parts = [
            self._send(shipment.some(_rows_of(shipment.columns, numbers)), member, lines)
            for member, numbers in groups.items()
        ]
        found = await asyncio.gather(*parts)
        return [s for again, _ in found for s in again], [f for _, given in found for f in given]

    async def _send(self, shipment: Shipment, member: str, lines: dict[Family, Line]) -> Left:
        tries = shipment.tries
        if len(lines) > 1:
            lines = {family: lines[family] for family in shipment.columns.families}
        epochs = {family: line.epoch for family, line in lines.items()}
        parcel = Parcel(shipment.part, epochs, tries.retry, shipment.columns)
        parcel.may_move = not tries.failed and _has_others(lines, frozenset({member}))
        try:
            refusals = await self._batcher.send(member, parcel, tries.deadline_s)
        except UTupleError as error:
            return await self._after(shipment, error, member, lines)
        if not refusals:
            self._passed_over.pop(member, None)
            return [], []
        behind, failures = _sorted_out(shipment, refusals)
        if not behind:
            return [], failures
        reason = pb.Reason.Name(refusals[0].refusal.reason)
        late = shipment.some(behind)
        lines = {family: lines[family] for family in late.columns.families}
        again, given = await self._after(late, Behind(reason), member, lines)
        return again, failures + given

    async def _after(
        self, shipment: Shipment, error: Exception, member: str, lines: dict[Family, Line]
    ) -> Left:
        """Wait and go on, or give up. `lines`: those of this shipment's families, as far as they are known."""
        by_key = {key_of(*family): lines.get(family) for family in shipment.columns.families}
        fate = fate_of(error)
        if fate is not None and not self._retrier.is_overtaken(error, by_key):
            self._pass_over(member, fate, retry_after_s(error))
        tries = shipment.tries
        others = _has_others(lines, tries.avoid | {member})
        try:
            tries = await self._retrier.next_attempt(
                tries, error, by_key, member=member, has_others=others
            )
        except UTupleError as given:
            return [], [Failure(given, shipment.columns, shipment.numbers)]
        return [replace(shipment, tries=tries)], []


def _without_idle_families(columns: Columns) -> Columns:
    if len(columns.families) == 1:
        return columns
    used = sorted(set(columns.family))
    if len(used) == len(columns.families):
        return columns
    places = {number: place for place, number in enumerate(used)}
    return replace(
        columns,
        families=tuple(columns.families[number] for number in used),
        family=array("I", [places[number] for number in columns.family]),
    )


def _rows_of(columns: Columns, numbers: set[int]) -> list[int]:
    return [row for row, number in enumerate(columns.family) if number in numbers]


def _has_others(lines: dict[Family, Line], tried: frozenset[str]) -> bool:
    return any(not tried.issuperset(line.accumulatable) for line in lines.values())


def _sorted_out(shipment: Shipment, refusals: list[RowRefusal]) -> tuple[list[int], list[Failure]]:
    """Rows to be routed again, and rows refused for good."""
    behind: list[int] = []
    failures = []
    for found in refusals:
        if found.refusal.reason in BEHIND_REASONS:
            behind += found.rows
            continue
        for row in found.rows:
            one = shipment.some([row])
            failures.append(Failure(refused(found.refusal), one.columns, one.numbers))
    return sorted(behind), failures
