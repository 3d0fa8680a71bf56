"""A move of load: one type for whoever plans, orders, carries out, records or shows it. Pure.

The load monitor plans moves, and the monitor, the operator and the tests order them at the home of a section. The
home carries them out and keeps a `MoveRecord` of each (see `record`). `KINDS` is the table of what is known of each
kind of move, and `target` is the one place that says what a move makes of its line.

To add a kind: a member of `MoveKind`, with the same name in the protocol's enum; its entry in `KINDS`, whose function
on the line is in `changes`; and, if the home has to prepare anybody for it, its steps in utuple/server/moving.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from utuple.cluster import changes
from utuple.cluster.layout import NO_LAYOUT, Layout
from utuple.cluster.line import Line
from utuple.cluster.past import History
from utuple.errors import InvalidInput
from utuple.model.section import Section
from utuple.model.value import check_name


class MoveKind(Enum):
    HELP_PROCESSING = "help-processing"
    """Section 3.4, figure 3: the helper joins; both take EAs and CFs."""
    HELP_MEMORY = "help-memory"
    """Section 3.5, figure 4: the helper joins, or comes on; the overloaded member goes off."""
    FLIP_ON = "flip-on"
    """A.1: a member that is off comes on. EFs and CAs reached it with lifetime 0 while it was off: it must be taught
    those before it takes EAs and CFs, so this is a help to a member, not a bare flag."""
    FLIP_OFF = "flip-off"
    """A.1: a member goes off because the others that are on suffice. Nothing is copied."""
    SPLIT = "split"
    """Section 3.6, figure 5: a server that has no section yet takes the part from the key on."""
    DRAIN = "drain"
    """The last step of a drain: what the member, which is off, still holds is brought to the heir, and the member
    leaves the line."""
    RELEASE = "release"
    """A.3: a member that is off and holds nothing leaves the line."""
    SUSPEND = "suspend"
    """EFs and CAs no longer wait for a member that is silent."""
    RETURN = "return"
    """A suspended member answers again: it is taught what it missed, and comes back on, as a helper does."""
    MERGE = "merge"
    """Two neighbouring sections with the same members become one again (section 3.6, backwards). Nothing is copied."""
    PARTITION = "partition"
    """The EFs are partitioned by a layout (paper 002): each member keeps its share from now on. Nothing is copied."""
    RECUT = "recut"
    """A partitioned line is cut elsewhere: one member is asked for more, and is taught that."""
    GATHER = "gather"
    """The layout is given up: the home serves alone, until the others have learned every EF and come on again."""
    PRUNE = "prune"
    """Earlier layouts of a partitioned line are forgotten where nothing is left of them, so that EFs visit fewer members."""


@dataclass(frozen=True, slots=True)
class Move:
    kind: MoveKind
    section: Section
    """Of the line it was planned by; of a merge, of both."""
    epoch: int
    """Of the line it was planned by, the higher one of a merge's: a move planned on an older line is refused."""
    member: str
    """Who is overloaded, flipped, drained, released, suspended or returning; the home of what is merged,
    partitioned, cut anew, gathered or pruned."""
    helper: str = ""
    """The helper, newcomer or heir, where the kind has one; of a recut who learns."""
    key: int = 0
    """SPLIT: where, the key of a stored uTuple. 0 as long as it is not chosen: no section can be split there.
    MERGE: where the two sections meet."""
    why: str = field(default="", compare=False)
    layout: Layout = NO_LAYOUT
    """PARTITION, RECUT: by which."""
    past: History = ()
    """PRUNE: what is left of earlier layouts. The home finds that out when the move is ordered."""

    def __post_init__(self) -> None:
        check_name("member", self.member)
        if KINDS[self.kind].has_helper:
            check_name("helper", self.helper)
        elif self.helper:
            raise InvalidInput("helper", self.helper, f"a {self.kind.value} has none")
        if self.layout.axes and self.kind not in (MoveKind.PARTITION, MoveKind.RECUT):
            raise InvalidInput("layout", str(self.layout), f"a {self.kind.value} has none")
        if self.past and self.kind is not MoveKind.PRUNE:
            raise InvalidInput("past", len(self.past), f"a {self.kind.value} has none")

    @property
    def servers(self) -> tuple[str, ...]:
        """The servers it names: they are at work in it."""
        return (self.member, self.helper) if self.helper else (self.member,)

    @property
    def learner(self) -> str | None:
        """Who must know every EF and CA of the section before the new epoch, because it takes EAs and CFs in it and
        may not have before."""
        if not KINDS[self.kind].teaches:
            return None
        return self.helper or self.member

    @property
    def learned(self) -> Section:
        """The section whose EFs and CAs are taught: of a split only the half that is given away."""
        if self.kind is MoveKind.SPLIT:
            return self.section.split_at(self.key)[1]
        return self.section

    @property
    def goes_off(self) -> str | None:
        """Who no longer takes EAs and CFs of the section, or of a part of it."""
        return self.member if KINDS[self.kind].goes_off else None

    @property
    def leaves(self) -> str | None:
        """Who is not in the line any more."""
        return self.member if KINDS[self.kind].leaves else None

    def __str__(self) -> str:
        with_helper = f" -> {self.helper}" if self.helper else ""
        return f"{self.kind.value} {self.member}{with_helper} {self.section} e{self.epoch}"


def line_of(move: Move, lines: Sequence[Line]) -> Line:
    """The line the move is about, given those that overlap its section. Of a merge it is the two as one: both have the same
    members, so all that is said of a line is true of them together."""
    if move.kind is not MoveKind.MERGE:
        if not lines:
            raise InvalidInput("section", str(move.section), "no line of it is known")
        return lines[0]
    if len(lines) != 2 or lines[1].section.start != move.key:
        said = "; ".join(map(str, lines))
        raise InvalidInput("merge", said, f"must be two lines that meet at {move.key:016x}")
    return changes.joined(*lines)


def merge_of(first: Line, second: Line, why: str = "") -> Move:
    """Refused if the two cannot be merged."""
    line = changes.joined(first, second)
    key = second.section.start
    return Move(MoveKind.MERGE, line.section, line.epoch, line.home, key=key, why=why)


def target(move: Move, line: Line) -> tuple[Line, ...]:
    """What the move makes of its line: the lines of the next epoch. Refuses a move that does not fit the line."""
    if line.section != move.section or line.epoch != move.epoch:
        raise InvalidInput("line", str(line), f"is not what the order was planned by: {move}")
    return KINDS[move.kind].change(move, line)


@dataclass(frozen=True, slots=True)
class KindOfMove:
    change: Callable[[Move, Line], tuple[Line, ...]]
    """From the line to the lines of the next epoch."""
    sentence: str
    """What it does, for people; {0} is the move as it is shown, its key in hexadecimal."""
    has_helper: bool = False
    teaches: bool = False
    """Somebody must learn the section's EFs and CAs first: the helper, or the member if there is no helper."""
    goes_off: bool = False
    """The member takes no EAs and CFs afterwards, but did before."""
    leaves: bool = False
    """The member is not in the line afterwards. It was off."""


def _drained(move: Move, line: Line) -> tuple[Line, ...]:
    heir = line.member(move.helper)
    if heir is None or not heir.accumulatable:
        raise InvalidInput("helper", move.helper, f"an heir is on in the line {line}")
    if line.layout.axes and move.helper != line.home:
        # A reader that is away goes on at the heir where it was, so the heir must keep its EF. Of a partitioned line only
        # the home keeps all of them.
        raise InvalidInput("helper", move.helper, f"the heir in a partitioned line is {line.home}")
    return (changes.released(line, move.member),)


KINDS: dict[MoveKind, KindOfMove] = {
    MoveKind.HELP_PROCESSING: KindOfMove(
        lambda move, line: (changes.helped(line, move.member, move.helper),),
        "{0.helper} helps {0.member} (processing load)",
        has_helper=True,
        teaches=True,
    ),
    MoveKind.HELP_MEMORY: KindOfMove(
        lambda move, line: (changes.helped(line, move.member, move.helper, memory=True),),
        "{0.helper} helps {0.member} (memory load)",
        has_helper=True,
        teaches=True,
        goes_off=True,
    ),
    MoveKind.FLIP_ON: KindOfMove(
        lambda move, line: (changes.flagged(line, move.member, accumulatable=True),),
        "{0.member} goes on",
        teaches=True,
    ),
    MoveKind.FLIP_OFF: KindOfMove(
        lambda move, line: (changes.flagged(line, move.member, accumulatable=False),),
        "{0.member} goes off",
        goes_off=True,
    ),
    MoveKind.SPLIT: KindOfMove(
        lambda move, line: changes.split(line, move.key, move.member, move.helper),
        "{0.member} gives {0.helper} the part from {0.key} on",
        has_helper=True,
        teaches=True,
        goes_off=True,
    ),
    MoveKind.DRAIN: KindOfMove(
        _drained,
        "{0.member} brings what it holds to {0.helper} and leaves",
        has_helper=True,
        leaves=True,
    ),
    MoveKind.RELEASE: KindOfMove(
        lambda move, line: (changes.released(line, move.member),),
        "{0.member} leaves",
        leaves=True,
    ),
    MoveKind.SUSPEND: KindOfMove(
        lambda move, line: (changes.suspended(line, move.member),),
        "{0.member} is suspended",
        goes_off=True,
    ),
    MoveKind.RETURN: KindOfMove(
        lambda move, line: (changes.returned(line, move.member),),
        "{0.member} is back",
        teaches=True,
    ),
    MoveKind.MERGE: KindOfMove(
        lambda move, line: (changes.merged(line),),
        "{0.member} makes one of the two sections that meet at {0.key}",
    ),
    MoveKind.PARTITION: KindOfMove(
        lambda move, line: (changes.partitioned(line, move.layout),),
        "{0.member} has the EFs of its section partitioned",
    ),
    MoveKind.RECUT: KindOfMove(
        lambda move, line: (changes.recut(line, move.layout, move.helper),),
        "{0.helper} learns what it keeps of the section that {0.member} has cut anew",
        has_helper=True,
        teaches=True,
    ),
    MoveKind.GATHER: KindOfMove(
        lambda move, line: (changes.gathered(line),),
        "{0.member} takes back the EFs of its partitioned section, alone at first",
    ),
    MoveKind.PRUNE: KindOfMove(
        lambda move, line: (changes.pruned(line, move.past),),
        "{0.member} has earlier layouts of its section forgotten",
    ),
}
