"""The rules of moving load (docs/moving.md), each with a switch that turns it off."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

from tests.replacing import replaced
from utuple.client.receiving import watch
from utuple.client.routing import every_member
from utuple.client.routing.route import Target, targets
from utuple.cluster import changes
from utuple.cluster.line import Line
from utuple.cluster.move import Move, MoveKind
from utuple.model.key import key_of
from utuple.model.portions import portions
from utuple.model.section import Section
from utuple.model.utuple import Family, UTuple
from utuple.server.delivering.dispatcher import Dispatcher
from utuple.server.moving import apply, teaching
from utuple.server.moving.announcing import Announcing
from utuple.server.moving.home import HomeMoves
from utuple.server.moving.participant import Participant
from utuple.server.moving.shipping import Shipping
from utuple.server.moving.steps import Commit, EndShipping, Learn, Outcome, Promise
from utuple.server.moving.teaching import Teaching
from utuple.server.writing.engine import Engine
from utuple.server.writing.transaction import Draft, PreparedBatch
from utuple.server.writing.writer import Writer
from utuple.store.contract import OWN_ORIGIN

_BESIDE_S = 0.05


def epoch_checked_outside_the_order() -> AbstractContextManager[None]:
    """When the call comes, not when its turn does."""
    register = Engine.register

    async def early(self: Engine, request: Any, *rest: Any) -> Any:
        judged = [
            self.writer.lines.judge(family, epoch, accumulates=False)[0]
            for family, epoch in request.epochs.items()
        ]
        if request.epochs and not any(judged):
            request = replace(request, epochs=_CurrentEpochs(self, request.epochs))
            await asyncio.sleep(_BESIDE_S)
        return await register(self, request, *rest)

    return replaced(Engine, "register", early)


class _CurrentEpochs(dict[Family, int]):
    def __init__(self, engine: Engine, epochs: Any) -> None:
        super().__init__(epochs)
        self._engine = engine

    def get(self, family: Family, default: int = 0) -> int:  # type: ignore[override]
        return self._engine.writer.lines.epoch_of(family)


def cut_not_checked() -> AbstractContextManager[None]:
    commit = HomeMoves.commit

    def trusting(self: HomeMoves, step: Commit, draft: Draft, now_us: int) -> Outcome:
        return commit(self, replace(step, cut=None), draft, now_us)

    return replaced(HomeMoves, "commit", trusting)


def what_came_meanwhile_is_not_taught() -> AbstractContextManager[None]:
    async def nothing(self: Teaching) -> int:
        self._changes()
        return 0

    return replaced(Teaching, "_send_changes", nothing)


def wiping_on_relearning() -> AbstractContextManager[None]:
    learn = apply._learn

    def wiping(
        writer: Writer, step: Learn, draft: Draft, prepared: PreparedBatch, now: int
    ) -> Outcome:
        if step.number == 0:
            for family in {half.family for half in step.templates}:
                key = key_of(*family)
                draft.removed.append(Section(key, key + 1))
                for id_ in [
                    id_ for id_, s in writer.templates.items() if s.packed.family == family
                ]:
                    writer.forget(id_)
                    prepared.cancelled.append(id_)
        return learn(writer, step, draft, prepared, now)

    return replaced(apply, "_learn", wiping)


def a_suspended_member_is_forgotten() -> AbstractContextManager[None]:
    def without(line: Line, name: str) -> Line:
        rest = tuple(member for member in line.members if member.name != name)
        return Line(line.section, line.epoch + 1, rest)

    return replaced(changes, "suspended", without)


@contextmanager
def _begins_at_its_seq(chosen: str) -> Iterator[None]:
    """When a reader comes for one of these EFs, the EAs stored before it was registered are not searched."""
    attach = Dispatcher.attach

    def late(
        self: Dispatcher, stream: int, formal: bytes, window: int, after: Any, *rest: Any
    ) -> None:
        writer = self._engine.writer
        stored = writer.templates.get(formal)
        positions = dict(after or {})
        if stored is not None and formal in writer.__dict__.get(chosen, ()):
            positions.setdefault(
                OWN_ORIGIN, max(stored.seq, self.cursors.acknowledged(formal, OWN_ORIGIN))
            )
        attach(self, stream, formal, window, positions, *rest)

    with replaced(Dispatcher, "attach", late):
        yield


@contextmanager
def r5_not_kept() -> Iterator[None]:
    """An EF that comes again under a newer epoch is a no-op, like any retry: nothing is searched. (A CA was
    searched when it came first, and a device that attaches searches all CAs; its case shows nothing.)"""
    templates = Writer._templates

    def noting(self: Writer, request: Any, *rest: Any) -> None:
        epochs = self.__dict__.setdefault("first_epochs", {})
        again = self.__dict__.setdefault("again", set())
        for _, utuple in request.templates:
            epoch = request.epochs.get(utuple.family, 0)
            if utuple.id in self.templates and epochs.setdefault(utuple.id, epoch) < epoch:
                again.add(utuple.id)
        templates(self, request, *rest)
        for _, utuple in request.templates:
            if utuple.id in self.templates:
                epochs.setdefault(utuple.id, request.epochs.get(utuple.family, 0))

    with replaced(Writer, "_templates", noting), _begins_at_its_seq("again"):
        yield


@contextmanager
def learned_without_matching() -> Iterator[None]:
    """What a member learns that it did not know is not matched with what it holds."""
    learn = apply._learn

    def learning(
        writer: Writer, step: Learn, draft: Draft, prepared: PreparedBatch, now: int
    ) -> Outcome:
        new = {half.id for half in step.templates} - set(writer.templates)
        before = len(prepared.commands)
        outcome = learn(writer, step, draft, prepared, now)
        known = [stored for stored in prepared.commands[before:] if stored.packed.id not in new]
        prepared.commands[before:] = known
        writer.__dict__.setdefault("learned", set()).update(new)
        return outcome

    with replaced(apply, "_learn", learning), _begins_at_its_seq("learned"):
        yield


@contextmanager
def the_drained_deletes_before_the_commit() -> Iterator[None]:
    """As soon as everything was shipped; whether the move will be committed or given up is not known yet."""
    bring, end = Shipping.bring, Participant.end_shipping

    async def eager(self: Shipping, move: bytes, line: Line, heir: Any) -> int:
        rows = await bring(self, move, line, heir)
        await self._port.step(EndShipping(move))
        return rows

    def unasked(self: Participant, id_: bytes, draft: Draft) -> Outcome:
        shipment = self.shipments.get(id_)
        if shipment is None or shipment.is_settled:
            return end(self, id_, draft)
        draft.removed.append(shipment.section)
        return Outcome(done=True)

    with replaced(Shipping, "bring", eager), replaced(Participant, "end_shipping", unasked):
        yield


@contextmanager
def flipped_on_as_printed() -> Iterator[None]:
    """Section 3.5 and Appendix A.1: members that are off get CAs with lifetime 0, and going on again copies
    nothing (decision 27). Were CAs kept by members that are off, as they are, a flip would miss only EFs, and
    their readers bring those anew under every epoch: so both are turned off together. The home keeps all."""
    learner = Move.learner

    def unless_flipped(self: Move) -> str | None:
        return None if self.kind is MoveKind.FLIP_ON else learner.fget(self)  # type: ignore[attr-defined]

    def printed(line: Line, half: UTuple) -> tuple[Target, ...]:
        return tuple(
            Target(one.name, one.accumulatable or one.name == line.home) for one in line.serving
        )

    with (
        replaced(Move, "learner", property(unless_flipped)),
        replaced(Participant, "_knows_its_templates", lambda self, line: True),
        replaced(every_member, "targets", printed),
        replaced(watch, "targets", printed),
    ):
        yield


def who_is_leaving_joins_lines() -> AbstractContextManager[None]:
    """An operator's help may come between the look that finds it in no line and its removal for good."""
    return replaced(Participant, "_is_member_of", lambda self, line: True)


@contextmanager
def a_home_that_is_off_keeps_nothing() -> Iterator[None]:
    """Section 3.5 as it is printed (decision 28)."""

    def printed(line: Line, half: UTuple) -> tuple[Target, ...]:
        return tuple(
            Target(stop.member, line.member(stop.member).accumulatable)  # type: ignore[union-attr]
            for stop in targets(line, half)
        )

    with replaced(every_member, "targets", printed), replaced(watch, "targets", printed):
        yield


def a_promise_is_not_durable() -> AbstractContextManager[None]:
    """A helper that starts again does not know that it may serve, and refuses for ever."""
    promise = Participant.promise

    def forgetful(self: Participant, step: Promise, draft: Draft) -> Outcome:
        before = dict(draft.notes)
        outcome = promise(self, step, draft)
        draft.notes.clear()
        draft.notes.update(before)
        return outcome

    return replaced(Participant, "promise", forgetful)


def what_was_revealed_is_not_read() -> AbstractContextManager[None]:
    """Readers at the heir go on with its own seqs: what a drain brought there has others (origins)."""

    async def silent(self: Engine) -> None:
        return

    return replaced(Engine, "_reveal", silent)


def neighbours_merge_whoever_serves_them() -> AbstractContextManager[None]:
    """Who serves the first of two sections serves both: what others hold of the second one is not looked for any more."""

    def careless(first: Line, second: Line) -> Line:
        whole = Section(first.section.start, second.section.end)
        return replace(first, section=whole, epoch=max(first.epoch, second.epoch))

    return replaced(changes, "joined", careless)


def nobody_is_told() -> AbstractContextManager[None]:
    """Members that have not heard of an epoch hold back EFs and CAs for ever."""

    async def silent(self: Announcing, record: Any) -> None:
        return

    return replaced(Announcing, "announce", silent)


def portions_are_limited_by_count_alone() -> AbstractContextManager[None]:
    """A few large EFs make a message nobody takes."""

    def counted(sizes: Iterable[int], most_bytes: int, most: int) -> Iterator[tuple[int, int]]:
        return portions((0 for _ in sizes), most_bytes, most)

    return replaced(teaching, "portions", counted)


MOVING = {
    "epoch checked outside the order": epoch_checked_outside_the_order,
    "cut not checked": cut_not_checked,
    "what came meanwhile is not taught": what_came_meanwhile_is_not_taught,
    "wiping on re-learning": wiping_on_relearning,
    "a suspended member is forgotten": a_suspended_member_is_forgotten,
    "R5 not kept": r5_not_kept,
    "learned without matching": learned_without_matching,
    "the drained deletes before the commit": the_drained_deletes_before_the_commit,
    "flipped on as printed": flipped_on_as_printed,
    "who is leaving joins lines": who_is_leaving_joins_lines,
    "a home that is off keeps nothing": a_home_that_is_off_keeps_nothing,
    "a promise is not durable": a_promise_is_not_durable,
    "what was revealed is not read": what_was_revealed_is_not_read,
    "neighbours merge whoever serves them": neighbours_merge_whoever_serves_them,
    "nobody is told": nobody_is_told,
    "portions are limited by count alone": portions_are_limited_by_count_alone,
}
