"""The changes of the table: pure functions from a line to the lines of the next epoch.

They reproduce figures 3 (help for processing load), 4 (help for memory load) and 5 (split for a new
server), and the flag flips and releases of Appendix A; and what a split left over becomes one line again. A line can be
partitioned by a layout; then whoever changes its members says what becomes of their segments.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from utuple.cluster.layout import NO_LAYOUT, Layout
from utuple.cluster.line import Line, Member
from utuple.cluster.past import History, followed
from utuple.errors import InvalidInput
from utuple.model.section import Section


def helped(line: Line, overloaded: str, helper: str, *, memory: bool = False) -> Line:
    """The helper joins (or comes back on); with memory load the overloaded member goes off. The helper learns every EF, so
    that it can own what the overloaded member owns of a partitioned line: beside it, or instead of it."""
    _require(line, overloaded)
    if helper == overloaded:
        raise InvalidInput("helper", helper, "must be another server than the overloaded one")
    members = [
        replace(member, accumulatable=False)
        if memory and member.name == overloaded
        else replace(member, accumulatable=True, suspended=False)
        if member.name == helper
        else member
        for member in line.members
    ]
    if line.member(helper) is None:
        members.append(Member(helper))
    layout = line.layout.with_beside(overloaded, helper)
    return _next(line, members, layout.without(overloaded) if memory else layout)


def split(line: Line, key: int, overloaded: str, newcomer: str) -> tuple[Line, Line]:
    """Divided at this key; the newcomer helps the second part for memory load."""
    _require(line, overloaded)
    first, second = line.section.split_at(key)
    kept = replace(line, section=first, epoch=line.epoch + 1)
    given = helped(replace(line, section=second), overloaded, newcomer, memory=True)
    return kept, given


def joined(first: Line, second: Line) -> Line:
    """Two neighbouring lines as one, at the higher of their epochs: the line a merge is planned by. They must agree in
    everything but their sections and epochs. Were their members others, the one line would name a server that does not
    know the EFs of the other part, or leave one out that holds EAs of it."""
    if first.section.end != second.section.start:
        raise InvalidInput("merge", f"{first}; {second}", "the sections must be neighbours")
    # The home decides the new epoch, so it must be the same. In which order the others stand does not matter.
    alike = replace(second, section=first.section, epoch=first.epoch, members=first.members)
    if first.home != second.home or set(first.members) != set(second.members) or alike != first:
        rule = "the lines must have the same home, and the same members with the same flags"
        raise InvalidInput("merge", f"{first}; {second}", rule)
    whole = Section(first.section.start, second.section.end)
    return replace(first, section=whole, epoch=max(first.epoch, second.epoch))


def merged(line: Line) -> Line:
    """What `joined` has made one line is one from this epoch on, which is new to both of its parts."""
    return replace(line, epoch=line.epoch + 1)


def flagged(line: Line, name: str, *, accumulatable: bool) -> Line:
    """A member's flag is flipped (A.1). Going off copies nothing; a member that goes on again must first
    learn the EFs and CAs it was only asked once while it was off (decision 27)."""
    if _require(line, name).suspended:
        raise InvalidInput("flag", name, "a suspended member must catch up before anything else")
    members = tuple(
        replace(member, accumulatable=accumulatable) if member.name == name else member
        for member in line.members
    )
    return _next(line, members, line.layout if accumulatable else line.layout.without(name))


def released(line: Line, name: str) -> Line:
    """A member that is off and holds nothing leaves (A.3); if it was home, the first member that is on
    becomes home, because it has every EF and CA (decision 28)."""
    member = _require(line, name)
    if member.accumulatable:
        raise InvalidInput("release", name, "a member must be off before it is released")
    rest = [other for other in line.members if other.name != name]
    if name == line.home:
        home = next(at for at, other in enumerate(rest) if other.accumulatable)
        rest = [rest[home], *rest[:home], *rest[home + 1 :]]
    return _next(line, rest, line.layout)


def suspended(line: Line, name: str) -> Line:
    """A silent member is passed over by EFs and CAs until it has caught up."""
    _require(line, name)
    if name == line.home:
        raise InvalidInput("suspend", name, "a home that is down keeps its section unchanged")
    members = tuple(
        replace(member, accumulatable=False, suspended=True) if member.name == name else member
        for member in line.members
    )
    return _next(line, members, line.layout.without(name))


def returned(line: Line, name: str) -> Line:
    """A suspended member that has learned what it missed serves again, and is on."""
    if not _require(line, name).suspended:
        raise InvalidInput("return", name, f"is not suspended in the line {line}")
    members = tuple(
        replace(member, accumulatable=True, suspended=False) if member.name == name else member
        for member in line.members
    )
    return _next(line, members, line.layout)


def partitioned(line: Line, layout: Layout) -> Line:
    """Every member that is on knows every EF, so that nobody has to learn anything, whatever the layout."""
    if line.layout.axes:
        rule = (
            "is partitioned already: undo that first, so that everyone learns what it did not keep"
        )
        raise InvalidInput("layout", str(line), rule)
    if not layout.axes:
        raise InvalidInput("layout", "", "a partition needs at least one axis")
    return _next(line, line.members, layout)


def recut(line: Line, layout: Layout, learner: str) -> Line:
    """Another layout of a line that is partitioned. One member is asked for more, and learns it; the home has every EF, and the
    others may only give something up: they would not have learned."""
    if not line.layout.axes or not layout.axes:
        raise InvalidInput("layout", str(line), "a line that is partitioned is cut anew")
    if learner == line.home or layout == line.layout:
        raise InvalidInput("layout", str(layout), "must ask for more of a member beside the home")
    unready = sorted(
        name
        for name in layout.owners - {line.home, learner}
        if not layout.asks_no_more_of(name, line.layout)
    )
    if unready:
        rule = f"only {learner} learns, and {', '.join(unready)} would have to as well"
        raise InvalidInput("layout", str(layout), rule)
    return _next(line, line.members, layout)


def gathered(line: Line) -> Line:
    """The layout is given up. Only the home knows every EF: it serves alone, and the others come on again one by one, each
    when it has learned what it did not keep."""
    if not line.layout.axes:
        raise InvalidInput("layout", str(line), "is not partitioned")
    members = (
        member if member.name == line.home else replace(member, accumulatable=False)
        for member in line.members
    )
    return _next(line, members, NO_LAYOUT)


def pruned(line: Line, past: History) -> Line:
    """Earlier layouts of which nothing is left are forgotten, and members that hold nothing of one. It is the home that has
    asked everyone; so nobody may be missing."""
    if not line.layout.axes:
        raise InvalidInput("past", str(line), "is not partitioned")
    if missing := [member.name for member in line.members if member.suspended]:
        rule = "a member that is suspended may hold, and take, anything: it must return first"
        raise InvalidInput("past", ", ".join(missing), rule)
    if not all(any(one.is_within(known) for known in line.past) for one in past):
        raise InvalidInput("past", len(past), "can only become less")
    if past == line.past:
        rule = "there is nothing to forget: members hold EAs of earlier layouts, or none is known"
        raise InvalidInput("past", str(line), rule)
    return replace(line, epoch=line.epoch + 1, past=past)


def _next(line: Line, members: Iterable[Member], layout: Layout) -> Line:
    """What is taken by the layout before this one is remembered."""
    past = followed(line.past, line.layout, layout)
    return replace(line, epoch=line.epoch + 1, members=tuple(members), layout=layout, past=past)


def _require(line: Line, name: str) -> Member:
    member = line.member(name)
    if member is None:
        raise InvalidInput("member", name, f"is not in the line {line}")
    return member
