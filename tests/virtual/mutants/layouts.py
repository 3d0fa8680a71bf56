"""The rules of partitioned lines, each with a switch that turns it off. (A server that takes events outside its segments is no
mutant by itself: clients send it none, since both work from one line. tests/unit/server/writing/test_writer.py has that rule.)"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

from tests.replacing import replaced
from tests.virtual.mutants.serving import Mutant
from utuple.client.receiving import watch
from utuple.client.routing import every_member
from utuple.client.routing.route import Target, targets
from utuple.cluster import changes
from utuple.cluster.dimension import Spans
from utuple.cluster.layout import NO_LAYOUT, Axis, Layout, Owners
from utuple.cluster.line import Line
from utuple.model.columns import Columns
from utuple.model.utuple import Kind, UTuple
from utuple.server.moving.participant import Participant


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


@contextmanager
def what_lies_at_others_than_its_keepers_is_not_looked_for() -> Iterator[None]:
    """As if there had been no line before this layout."""

    def keepers_alone(line: Line, kind: Kind, formal: UTuple | None = None) -> tuple[Target, ...]:
        found = targets(line, kind, formal)
        return tuple(one for one in found if one.keeps) if line.layout.axes else found

    with (
        replaced(every_member, "targets", keepers_alone),
        replaced(watch, "targets", keepers_alone),
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


LAYOUTS: dict[str, Mutant] = {
    "an EF skips an axis": an_ef_skips_an_axis,
    "an unconstrained EF is not in every segment": an_unconstrained_ef_is_not_in_every_segment,
    "events go to any member of a partitioned line": events_go_to_any_member_of_a_partitioned_line,
    "EFs are not looked for beside their keepers": what_lies_at_others_than_its_keepers_is_not_looked_for,
    "everyone stays on in a line that is gathered": everyone_stays_on_in_a_line_that_is_gathered,
    "segments go to who has not learned": segments_go_to_who_has_not_learned,
}
