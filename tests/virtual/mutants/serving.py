"""The rules of one server and of the members of a line, each with a switch that turns it off."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from itertools import count
from typing import Any

from tests.replacing import replaced
from utuple.client.reading import paging
from utuple.client.reading.paging import MemberPage, Row
from utuple.client.receiving import watch
from utuple.client.routing import every_member
from utuple.client.routing.route import Target, targets
from utuple.client.routing.slots import Slots
from utuple.cluster.line import Line
from utuple.cluster.table import Table
from utuple.model.columns import Columns
from utuple.model.utuple import Family, UTuple
from utuple.runtime.clock import now_us
from utuple.server.delivering.commands import CommandDispatcher
from utuple.server.delivering.cursor import Reading
from utuple.server.delivering.cursors import Cursors
from utuple.server.delivering.devices import Device
from utuple.server.delivering.reading import searching
from utuple.server.delivering.reading.searching import StoredSearches, searches
from utuple.server.delivering.standings import Standings
from utuple.server.matching.matched import Matches, matches_of
from utuple.server.writing.engine import Engine
from utuple.server.writing.lines import OwnLines
from utuple.server.writing.transaction import PreparedBatch
from utuple.server.writing.writer import Writer
from utuple.store.contract import NO_SEQ, OWN_ORIGIN, Search, StoredTemplate

_BESIDE_S = 0.05
_SEARCHES = 3

Mutant = Callable[[], AbstractContextManager[None]]


# --- one server ------------------------------------------------------------------------------------------


def _answered_early(is_chosen: Callable[[Any], bool]) -> AbstractContextManager[None]:
    """What is chosen is answered, and new lines are handed out, before anything is stored."""
    prepare = Engine._prepare

    async def early(self: Engine, batch: Any) -> PreparedBatch:
        prepared = await prepare(self, batch)
        for waiting, answer in zip(batch, prepared.answers, strict=True):
            if is_chosen(waiting.request) and not waiting.answer.done():
                waiting.answer.set_result(answer)
                if prepared.transaction.lines is not None:
                    self.lines = Table(prepared.transaction.lines)
        return prepared

    return replaced(Engine, "_prepare", early)


def answer_before_commit() -> AbstractContextManager[None]:
    return _answered_early(lambda request: request.step is None)


def a_move_goes_on_before_its_step_is_durable() -> AbstractContextManager[None]:
    """R3, and B being durably ready."""
    return _answered_early(lambda request: request.step is not None)


@contextmanager
def match_outside_the_order() -> Iterator[None]:
    """An EA meets the templates that are there when its call comes, beside the writer, and takes its turn
    a little later: an EF that comes in between and is searched before that turn never meets it."""
    submit, events, meet = Engine.submit, Writer._events, Writer.match
    stamps: dict[int, frozenset[bytes]] = {}
    seen: dict[int, frozenset[bytes]] = {}

    def stamped(self: Engine, request: Any, *rest: Any) -> asyncio.Future[Any]:
        if not len(request.events):
            return submit(self, request, *rest)
        stamps[id(request)] = frozenset(self.writer.templates)

        async def later() -> Any:
            try:
                await asyncio.sleep(_BESIDE_S)
                return await submit(self, request, *rest)
            finally:
                stamps.pop(id(request), None)

        return asyncio.ensure_future(later())

    def matched_early(
        self: Writer, request: Any, answer: Any, prepared: PreparedBatch, *rest: Any
    ) -> None:
        before = len(prepared.unmatched)
        events(self, request, answer, prepared, *rest)
        there = stamps.get(id(request))
        if there is not None:
            seen.update((id(batch), there) for batch in prepared.unmatched[before:])

    def met_early(self: Writer, prepared: PreparedBatch) -> None:
        meet(self, prepared)
        for at, (batch, found) in enumerate(prepared.events):
            there = seen.pop(id(batch), None)
            if there is not None:
                prepared.events[at] = (
                    batch,
                    matches_of((row, id_) for row, id_ in found.pairs() if id_ in there),
                )

    with (
        replaced(Engine, "submit", stamped),
        replaced(Writer, "_events", matched_early),
        replaced(Writer, "match", met_early),
    ):
        yield


@contextmanager
def what_is_not_kept_takes_a_seq() -> Iterator[None]:
    """EAs of lifetime 0 are numbered like all others, and nothing is committed for them: after a crash their seqs are
    given again."""
    prepare = Writer.prepare

    def numbered(self: Writer, *given: Any) -> PreparedBatch:
        with replaced(Writer, "_fleeting", Writer._stored):
            prepared = prepare(self, *given)
        transaction = prepared.transaction
        kept = [batch for batch in transaction.events if 0 not in batch.columns.lifetimes_us]
        prepared.transaction = replace(transaction, events=kept)
        prepared.is_idle = prepared.transaction.is_empty
        return prepared

    with replaced(Writer, "prepare", numbered):
        yield


def a_command_that_is_not_kept_takes_a_seq() -> AbstractContextManager[None]:
    """Nothing is committed for it: after a crash its seq is given again, to a command that is kept."""
    prepare = Writer.prepare

    def numbered(self: Writer, *given: Any) -> PreparedBatch:
        prepared = prepare(self, *given)
        for at, stored in enumerate(prepared.commands):
            if stored.seq == NO_SEQ:
                self.seq += 1
                prepared.commands[at] = stored._replace(seq=self.seq)
        return prepared

    return replaced(Writer, "prepare", numbered)


def acknowledged_commands_are_given_again() -> AbstractContextManager[None]:
    """A device that attaches is given every command that is kept for it, whatever it said it had done."""

    def match(self: CommandDispatcher, device: Device) -> None:
        for id_ in self._engine.writer.commands_for(device.row, now_us()).ids:
            self._give(device.id, id_)

    return replaced(CommandDispatcher, "match", match)


def positions_speak_of_commands_that_are_over() -> AbstractContextManager[None]:
    """Who has acknowledged a later one has acknowledged them, too."""

    def unseen(self: Standings, formal: bytes, after: int, upto: int, now_us: int) -> None:
        return

    return replaced(Standings, "advance", unseen)


def commands_outlive_their_lifetime() -> AbstractContextManager[None]:
    """As long as they are remembered: expired ones are collected by and by."""
    commands_for = Writer.commands_for

    def late(self: Writer, devices: Columns, now_us: int) -> Matches:
        return commands_for(self, devices, 0)

    return replaced(Writer, "commands_for", late)


def a_reopened_store_is_not_read_again() -> AbstractContextManager[None]:
    def stay_live(self: Cursors, committed: int) -> None:
        self.committed = committed

    return replaced(Cursors, "fall_behind", stay_live)


@contextmanager
def a_search_that_waits_holds_nothing() -> Iterator[None]:
    """Three searches at a time; what is committed before a search begins is left to it, though it may have expired by
    then."""
    next_reading = Cursors.next_reading

    def late(self: Cursors) -> Reading | None:
        reading = next_reading(self)
        cursor = self.get(reading.formal) if reading is not None else None
        if reading is None or cursor is None or reading.origin != OWN_ORIGIN:
            return reading
        self._drop_pending(cursor)
        cursor.search = replace(reading, upto=self.committed)
        return cursor.search

    def a_few(self: StoredSearches) -> None:
        while self._engine.is_serving and self._running < _SEARCHES:
            reading = self._cursors.next_reading()
            if reading is None:
                return
            self._running += 1
            self._tasks.start(self._run([reading]), "reading")

    with replaced(Cursors, "next_reading", late), replaced(StoredSearches, "pump", a_few):
        yield


def bytes_that_were_taken_are_not_given_back() -> AbstractContextManager[None]:
    taken = Cursors.taken

    def in_rows(self: Cursors, formal: bytes, count: int, weight: int = 0) -> None:
        taken(self, formal, count)

    return replaced(Cursors, "taken", in_rows)


@contextmanager
def commands_that_come_again_wait_again() -> Iterator[None]:
    """Every visit of a command is searched for in its turn, though nobody may wait for it any more."""
    queue = CommandDispatcher.queue
    numbers = count()

    def again(self: CommandDispatcher, stored: StoredTemplate) -> None:
        is_waiting = stored.packed.id in self._commands.get(stored.packed.family, ())
        queue(self, stored)
        if is_waiting:
            self._commands[stored.packed.family][next(numbers).to_bytes(16, "big")] = stored

    def always(self: CommandDispatcher, command: bytes) -> bool:
        return True

    with (
        replaced(CommandDispatcher, "queue", again),
        replaced(CommandDispatcher, "_is_wanted", always),
    ):
        yield


# --- the members of a line -------------------------------------------------------------------------------


@contextmanager
def ef_answered_by_the_home_alone() -> Iterator[None]:
    def home_alone(line: Line, half: UTuple) -> tuple[Target, ...]:
        return targets(line, half)[:1]

    with replaced(every_member, "targets", home_alone), replaced(watch, "targets", home_alone):
        yield


def epoch_of_ea_not_checked() -> AbstractContextManager[None]:
    """Whatever its sender's line says counts. A server's own flags would do for EAs: one that is on by its own
    line has every EF of that epoch, and gets those of later ones after the EA, which they then find stored.
    So what R1 does is seen only when a member that is off, suspended or gone by its own line takes EAs of
    those who have not heard of it."""
    judge = OwnLines.judge

    def lenient(self: OwnLines, family: Family, epoch: int, *, accumulates: bool) -> Any:
        reason, line = judge(self, family, epoch, accumulates=accumulates)
        if accumulates and line is not None and epoch < line.epoch:
            return None, line
        return reason, line

    return replaced(OwnLines, "judge", lenient)


def epoch_of_ef_not_checked() -> AbstractContextManager[None]:
    """Of EFs and CAs. (A reader hears of the new line when it attaches, and registers its EF again: CAs show
    this.)"""
    judge = OwnLines.judge

    def lenient(self: OwnLines, family: Family, epoch: int, *, accumulates: bool) -> Any:
        reason, line = judge(self, family, epoch, accumulates=accumulates)
        if not accumulates and line is not None:
            return judge(self, family, line.epoch, accumulates=accumulates)
        return reason, line

    return replaced(OwnLines, "judge", lenient)


def pages_are_merged_beyond_where_they_were_cut() -> AbstractContextManager[None]:
    """A `read` in order of time takes all rows of all members for certain, and goes on after the last."""
    merged = paging.merged

    def eager(pages: Iterable[MemberPage], *, newest_first: bool) -> tuple[list[Row], bool]:
        pages = list(pages)
        uncut = [MemberPage(page.rows, is_cut=False) for page in pages]
        rows, _ = merged(uncut, newest_first=newest_first)
        return rows, not any(page.is_cut for page in pages)

    return replaced(paging, "merged", eager)


def what_expired_meanwhile_is_not_found() -> AbstractContextManager[None]:
    """An event that met an EF and expired before its reader was back is not given to it."""

    def strict(reading: Reading, stored: Any, now_us: int, late_s: float) -> Iterator[Search]:
        return searches(reading, stored, now_us, 0.0)

    return replaced(searching, "searches", strict)


def every_event_is_given_a_member_anew() -> AbstractContextManager[None]:
    """Also single ones of one address: two members' streams may overtake each other."""

    def any_of_them(
        self: Slots, address: str, names: Sequence[str], able: Sequence[str], known: Any
    ) -> str:
        self.turn = getattr(self, "turn", 0) + 1  # type: ignore[attr-defined]
        return able[self.turn % len(able)]  # type: ignore[attr-defined]

    return replaced(Slots, "member", any_of_them)


SERVING: dict[str, Mutant] = {
    "every event is given a member anew": every_event_is_given_a_member_anew,
    "what expired meanwhile is not found": what_expired_meanwhile_is_not_found,
    "answer before commit": answer_before_commit,
    "a move goes on before its step is durable": a_move_goes_on_before_its_step_is_durable,
    "match outside the writer's order": match_outside_the_order,
    "what is not kept takes a seq": what_is_not_kept_takes_a_seq,
    "a command that is not kept takes a seq": a_command_that_is_not_kept_takes_a_seq,
    "acknowledged commands are given again": acknowledged_commands_are_given_again,
    "positions speak of commands that are over": positions_speak_of_commands_that_are_over,
    "commands outlive their lifetime": commands_outlive_their_lifetime,
    "a reopened store is not read again": a_reopened_store_is_not_read_again,
    "a search that waits holds nothing": a_search_that_waits_holds_nothing,
    "bytes that were taken are not given back": bytes_that_were_taken_are_not_given_back,
    "commands that come again wait again": commands_that_come_again_wait_again,
    "EF answered by the home alone": ef_answered_by_the_home_alone,
    "epoch of EA not checked": epoch_of_ea_not_checked,
    "epoch of EF not checked": epoch_of_ef_not_checked,
    "pages are merged beyond where they were cut": pages_are_merged_beyond_where_they_were_cut,
}
