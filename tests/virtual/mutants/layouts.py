"""The rules of partitioned lines, each with a switch that turns it off. (A server that takes events outside its segments is no
mutant by itself: clients send it none, since both work from one line. tests/unit/server/writing/test_writer.py has that rule.)"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

from tests.replacing import replaced
from tests.virtual.mutants.serving import Mutant
from utuple.cluster import changes
from utuple.cluster.dimension import Spans
from utuple.cluster.layout import NO_LAYOUT, Axis, Layout, Owners
from utuple.cluster.line import Line
from utuple.model.columns import Columns
from utuple.model.utuple import UTuple
from utuple.server.moving import older, participant
from utuple.server.moving.older import Older
from utuple.server.moving.participant import Participant
from utuple.server.moving.teaching import Teaching
from utuple.store.contract import StoredTemplate


def an_ef_skips_an_axis() -> AbstractContextManager[None]:
    keepers = Layout.keepers

    def by_the_first(self: Layout, formal: UTuple) -> frozenset[str]:
        return keepers(Layout(self.axes[:1]), formal)

    return replaced(Layout, "keepers", by_the_first)


def an_unconstrained_ef_is_not_in_every_segment() -> AbstractContextManager[None]:
    overlapped = Axis.overlapped

    def but_the_last(self: Axis, spans: Spans) -> Sequence[int]:
        found = overlapped(self, spans)
        return found if spans is not None else found[:-1]

    return replaced(Axis, "overlapped", but_the_last)


def events_go_to_any_member_of_a_partitioned_line() -> AbstractContextManager[None]:
    """By clients and servers alike."""

    def anybody(self: Layout, columns: Columns, rows: Sequence[int]) -> list[Owners]:
        return [tuple(sorted(self.owners))] * len(rows)

    return replaced(Layout, "takers", anybody)


def earlier_layouts_are_forgotten_at_once() -> AbstractContextManager[None]:
    """As if there had been no line before this layout."""
    return replaced(changes, "followed", lambda history, before, after: ())


def who_is_asked_for_earlier_events_need_not_answer() -> AbstractContextManager[None]:
    """Nobody has to have heard of the layout, or to hold nothing of earlier ones, before EFs leave members out."""

    async def nobody(self: Older, name: str, line: Line) -> list[int]:
        return [0] * len(line.past)

    return replaced(Older, "_held_by", nobody)


@contextmanager
def efs_go_before_the_prune_is_committed() -> Iterator[None]:
    """A member forgets EFs outside of its share as soon as it hears of the layout, though it holds what they have matched."""

    def has_a_share(line: Line, name: str) -> bool:
        return line.member(name) is not None and name != line.home and bool(line.layout.axes)

    with (
        replaced(older, "keeps_a_share", has_a_share),
        replaced(participant, "keeps_a_share", has_a_share),
    ):
        yield


@contextmanager
def everyone_stays_on_in_a_line_that_is_gathered() -> Iterator[None]:
    """Those who kept their share take events of the whole, and nobody has taught them."""

    def at_once(line: Line) -> Line:
        return replace(line, epoch=line.epoch + 1, layout=NO_LAYOUT)

    with (
        replaced(changes, "gathered", at_once),
        replaced(Participant, "_knows_its_templates", lambda self, line: True),
    ):
        yield


@contextmanager
def segments_go_to_who_has_not_learned() -> Iterator[None]:
    """What a member gives up goes to another than the home."""
    flagged = changes.flagged

    def given(line: Line, name: str, *, accumulatable: bool) -> Line:
        after = flagged(line, name, accumulatable=accumulatable)
        others = [one for one in after.accumulatable if one != after.home]
        if accumulatable or not after.layout.axes or not others:
            return after
        return replace(after, layout=after.layout.with_beside(after.home, others[0]))

    with (
        replaced(changes, "flagged", given),
        replaced(Participant, "_knows_its_templates", lambda self, line: True),
    ):
        yield


def who_is_asked_for_more_is_not_taught() -> AbstractContextManager[None]:
    """A partitioned line is cut anew, and its learner promises what it does not know."""
    needed = Teaching._needed

    def nothing(self: Teaching, known: Iterable[StoredTemplate]) -> list[StoredTemplate]:
        return needed(self, known) if self._after is None else []

    return replaced(Teaching, "_needed", nothing)


LAYOUTS: dict[str, Mutant] = {
    "who is asked for more is not taught": who_is_asked_for_more_is_not_taught,
    "an EF skips an axis": an_ef_skips_an_axis,
    "an unconstrained EF is not in every segment": an_unconstrained_ef_is_not_in_every_segment,
    "events go to any member of a partitioned line": events_go_to_any_member_of_a_partitioned_line,
    "earlier layouts are forgotten at once": earlier_layouts_are_forgotten_at_once,
    "who is asked for earlier events need not answer": who_is_asked_for_earlier_events_need_not_answer,
    "EFs go before the prune is committed": efs_go_before_the_prune_is_committed,
    "everyone stays on in a line that is gathered": everyone_stays_on_in_a_line_that_is_gathered,
    "segments go to who has not learned": segments_go_to_who_has_not_learned,
}
