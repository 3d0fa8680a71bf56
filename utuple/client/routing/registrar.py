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
from utuple.client.routing.route import ORDERED, choose, device_member, untried
from utuple.client.routing.slots import Slots
from utuple.client.sending.batcher import Batcher, RowRefusal, Submission
from utuple.cluster.line import Line
from utuple.errors import Unavailable, UTupleError
from utuple.model.columns import Columns, columns_of
from utuple.model.key import key_of
from utuple.model.section import Section
from utuple.model.utuple import Family, UTuple
from utuple.wire import utuple_pb2 as pb

Pick = Callable[[Line, Tries, str, tuple[str, ...]], str]
"""The member for an event or device of this line and address, of those that may take it."""

_LINES_MOST = 4_096
"""Lines whose slots are remembered; beyond it they are given out anew."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Rows that were not registered, or may not be."""

    error: UTupleError
    columns: Columns
    numbers: Sequence[int]


@dataclass(frozen=True, slots=True)
class RowBatch:
    """Rows on their way, with the numbers the caller knows them by. Each family of the columns has a row:
    where the others of a family go is no news of one that has none."""

    part: pb.Part.ValueType
    columns: Columns
    numbers: Sequence[int]
    tries: Tries
    by_address: bool = False
    """Rows of one line may go to different members."""
    takers: frozenset[str] | None = None
    """The members that may take each of these rows, of a partitioned line; None: whoever is on."""

    def some(self, rows: Sequence[int]) -> RowBatch:
        if len(rows) == len(self.columns):
            return self
        columns = _without_idle_families(self.columns.take(rows))
        return replace(self, columns=columns, numbers=[self.numbers[row] for row in rows])


Left = tuple[list[RowBatch], list[Failure]]
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
        self._slots: dict[Section, Slots] = {}

    async def events(
        self, columns: Columns, tries: Tries, *, in_order: bool = False
    ) -> list[Failure]:
        """Register these EAs; what comes back was not, or may not be. `in_order`: each address goes to a member of its own,
        so that what is emitted one after the other is registered in one order."""
        columns = _without_idle_families(columns)
        in_order = in_order and self._config.choice in ORDERED
        batch = RowBatch(pb.EVENTS, columns, range(len(columns)), tries, by_address=in_order)
        return await self._register(batch, self._own_member if in_order else self._cheapest)

    async def device(self, device: UTuple, tries: Tries, visited: set[str]) -> str:
        """Register this CF; the member that has it. `visited` hears of every member that may have it."""
        member = ""

        def pick(line: Line, tries: Tries, _: str, names: tuple[str, ...]) -> str:
            nonlocal member
            member = tries.member if tries.member in names else ""
            member = member or device_member(device, line, tries.avoid)
            visited.add(member)
            return member

        batch = RowBatch(pb.DEVICES, columns_of([device]), range(1), tries)
        for failure in await self._register(batch, pick):
            raise failure.error
        return member

    def takers(self, families: Iterable[Family]) -> int:
        """How many servers take events of these families, as far as is known."""
        lines = {self._lines.known(key_of(*family)) for family in families}
        return len({name for line in lines if line is not None for name in line.accumulatable})

    def _cheapest(self, line: Line, tries: Tries, _: str, takers: tuple[str, ...]) -> str:
        if tries.member in takers:
            return tries.member or ""
        names = self._able(takers, tries)
        if len(names) == 1:
            return names[0]
        return choose(
            names,
            self._batcher.standing(names),
            now_s=asyncio.get_running_loop().time(),
            dice=self._dice.random(),
            policy=self._config.choice,
        )

    def _own_member(self, line: Line, tries: Tries, address: str, names: tuple[str, ...]) -> str:
        """Of this address, while the line stands still; of a partitioned one, while its events lie in one segment."""
        if tries.member in names:
            return tries.member or ""
        if len(names) == 1:
            return names[0]
        slots = self._slots.get(line.section)
        if slots is None or slots.epoch != line.epoch:
            if len(self._slots) >= _LINES_MOST:
                self._slots.clear()
            slots = self._slots[line.section] = Slots(line.epoch)
        able = self._able(names, tries)
        return slots.member(address, names, able, self._batcher.standing(names))

    def _able(self, takers: tuple[str, ...], tries: Tries) -> Sequence[str]:
        """Members that have not failed just now, or all if all have."""
        names = untried(takers, tries.avoid)
        now_s = asyncio.get_running_loop().time()
        return [name for name in names if self._passed_over.get(name, now_s) <= now_s] or names

    def _pass_over(self, member: str, fate: Fate, asked_s: float) -> None:
        """Others do not try it either, for a moment: it is cut off, full, or has not heard of an epoch yet."""
        is_short = fate in (Fate.BEHIND, Fate.FULL)
        wait_s = max(asked_s, self._config.first_wait_s) if is_short else self._config.most_wait_s
        self._passed_over[member] = asyncio.get_running_loop().time() + wait_s

    async def _register(self, first: RowBatch, pick: Pick) -> list[Failure]:
        work, failures = await self._round(first, pick)
        while work:
            rounds = await asyncio.gather(*(self._round(one, pick) for one in work))
            work = [one for again, _ in rounds for one in again]
            failures += [failure for _, given in rounds for failure in given]
        return failures

    async def _round(self, batch: RowBatch, pick: Pick) -> Left:
        """One attempt for every row, each by its line."""
        lines: dict[Family, Line] = {}
        for family in batch.columns.families:
            try:
                lines[family] = await self._lines.line(key_of(*family), batch.tries.deadline_s)
            except Unavailable as error:
                return await self._after(batch, error, "", lines)
        parts = _cut_by_member(batch, lines, pick)
        if len(parts) == 1:
            return await self._send(*parts[0], lines)
        found = await asyncio.gather(*(self._send(*part, lines) for part in parts))
        return [s for again, _ in found for s in again], [f for _, given in found for f in given]

    async def _send(self, member: str, batch: RowBatch, lines: dict[Family, Line]) -> Left:
        tries = batch.tries
        if len(lines) > 1:
            lines = {family: lines[family] for family in batch.columns.families}
        epochs = {family: line.epoch for family, line in lines.items()}
        submission = Submission(batch.part, epochs, tries.retry, batch.columns)
        submission.may_go_elsewhere = not tries.failed and _has_others(
            batch, lines, frozenset({member})
        )
        try:
            refusals = await self._batcher.send(member, submission, tries.deadline_s)
        except UTupleError as error:
            return await self._after(batch, error, member, lines)
        if not refusals:
            self._passed_over.pop(member, None)
            return [], []
        behind, failures = _sorted_out(batch, refusals)
        if not behind:
            return [], failures
        reason = pb.Reason.Name(refusals[0].refusal.reason)
        late = batch.some(behind)
        lines = {family: lines[family] for family in late.columns.families}
        again, given = await self._after(late, Behind(reason), member, lines)
        return again, failures + given

    async def _after(
        self, batch: RowBatch, error: Exception, member: str, lines: dict[Family, Line]
    ) -> Left:
        """Wait and go on, or give up. `lines`: those of this batch's families, as far as they are known."""
        by_key = {key_of(*family): lines.get(family) for family in batch.columns.families}
        fate = fate_of(error)
        if fate is not None and not self._retrier.is_overtaken(error, by_key):
            self._pass_over(member, fate, retry_after_s(error))
        tries = batch.tries
        others = _has_others(batch, lines, tries.avoid | {member})
        try:
            tries = await self._retrier.next_attempt(
                tries, error, by_key, member=member, has_others=others
            )
        except UTupleError as given:
            return [], [Failure(given, batch.columns, batch.numbers)]
        return [replace(batch, tries=tries)], []


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


def _cut_by_member(
    batch: RowBatch, lines: dict[Family, Line], pick: Pick
) -> list[tuple[str, RowBatch]]:
    """Each member with the rows that go there. All rows of one line go to one member, unless each has its own by its
    address; families of one section share a line, and so a choice. This is the only place that says which row goes where:
    whatever sends, retries and reports failures works with rows, whoever they were cut by."""
    if batch.part == pb.EVENTS and any(line.layout.axes for line in lines.values()):
        return _cut_by_segment(batch, lines, pick)
    if batch.takers is not None:
        batch = replace(batch, takers=None)  # the line was partitioned when it was tried before
    if batch.by_address and any(len(line.accumulatable) > 1 for line in lines.values()):
        return _cut_by_address(batch, lines, pick)
    sections = {line.section: line for line in lines.values()}
    first = batch.columns.addresses[0]
    members = {
        section: pick(line, batch.tries, first, line.accumulatable)
        for section, line in sections.items()
    }
    groups: dict[str, set[int]] = {}
    for number, family in enumerate(batch.columns.families):
        groups.setdefault(members[lines[family].section], set()).add(number)
    if len(groups) == 1:
        return [(next(iter(groups)), batch)]
    numbers = batch.columns.family
    return [
        (member, batch.some([row for row, number in enumerate(numbers) if number in own]))
        for member, own in groups.items()
    ]


def _cut_by_address(
    batch: RowBatch, lines: dict[Family, Line], pick: Pick
) -> list[tuple[str, RowBatch]]:
    columns = batch.columns
    groups: dict[str, list[int]] = {}
    for row, (number, address) in enumerate(zip(columns.family, columns.addresses, strict=True)):
        line = lines[columns.families[number]]
        member = pick(line, batch.tries, address, line.accumulatable)
        groups.setdefault(member, []).append(row)
    return [(member, batch.some(rows)) for member, rows in groups.items()]


def _cut_by_segment(
    batch: RowBatch, lines: dict[Family, Line], pick: Pick
) -> list[tuple[str, RowBatch]]:
    """Some line is partitioned: each row goes to one of the members that own a segment its values lie in. The member is chosen
    once for all rows that have the same to choose from, unless each address keeps to its own."""
    columns = batch.columns
    takers = _takers(columns, lines)
    chosen: dict[tuple[Section, str, tuple[str, ...]], str] = {}
    groups: dict[str, list[int]] = {}
    for row, (number, names) in enumerate(zip(columns.family, takers, strict=True)):
        line, address = lines[columns.families[number]], columns.addresses[row]
        place = (line.section, address if batch.by_address else "", names)
        if (member := chosen.get(place)) is None:
            member = chosen[place] = pick(line, batch.tries, address, names)
        groups.setdefault(member, []).append(row)
    return [
        (
            member,
            replace(
                batch.some(rows),
                takers=frozenset.intersection(*(frozenset(takers[row]) for row in rows)),
            ),
        )
        for member, rows in groups.items()
    ]


def _takers(columns: Columns, lines: dict[Family, Line]) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = [()] * len(columns)
    for number, family in enumerate(columns.families):
        line = lines[family]
        rows = [row for row, of in enumerate(columns.family) if of == number]
        names = line.layout.takers(columns, rows) if line.layout.axes else None
        for at, row in enumerate(rows):
            found[row] = line.accumulatable if names is None else names[at]
    return found


def _has_others(batch: RowBatch, lines: dict[Family, Line], tried: frozenset[str]) -> bool:
    if batch.takers is not None:
        return not tried.issuperset(batch.takers)
    return any(not tried.issuperset(line.accumulatable) for line in lines.values())


def _sorted_out(batch: RowBatch, refusals: list[RowRefusal]) -> tuple[list[int], list[Failure]]:
    """Rows to be routed again, and rows refused for good."""
    behind: list[int] = []
    failures = []
    for found in refusals:
        if found.refusal.reason in BEHIND_REASONS:
            behind += found.rows
            continue
        for row in found.rows:
            one = batch.some([row])
            failures.append(Failure(refused(found.refusal), one.columns, one.numbers))
    return sorted(behind), failures
