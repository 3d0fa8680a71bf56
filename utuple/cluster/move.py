"""A move of load as it is ordered, and what it makes of its line. Pure.

The load monitor, the operator and the virtual cluster order moves at the home of a section; the home carries
them out. `target` is the one place that says what each kind does to the table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from utuple.cluster import changes
from utuple.cluster.line import Line
from utuple.errors import InvalidInput
from utuple.model.section import Section
from utuple.model.value import check_name


class MoveKind(Enum):
    HELP_PROCESSING = "help-processing"
    HELP_MEMORY = "help-memory"
    FLIP_ON = "flip-on"
    FLIP_OFF = "flip-off"
    SPLIT = "split"
    DRAIN = "drain"
    RELEASE = "release"
    SUSPEND = "suspend"
    RETURN = "return"


WITH_HELPER = frozenset(
    {MoveKind.HELP_PROCESSING, MoveKind.HELP_MEMORY, MoveKind.SPLIT, MoveKind.DRAIN}
)


@dataclass(frozen=True, slots=True)
class Order:
    kind: MoveKind
    section: Section
    epoch: int
    """Of the line it was planned by: a move planned on an old line is refused."""
    member: str
    """Who is overloaded, flipped, drained, released, suspended or returning."""
    helper: str = ""
    """The helper, newcomer or heir, where the kind has one."""
    key: int = 0
    """SPLIT: where; the key of a stored uTuple."""
    why: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        check_name("member", self.member)
        if self.kind in WITH_HELPER:
            check_name("helper", self.helper)
        elif self.helper:
            raise InvalidInput("helper", self.helper, f"a {self.kind.value} has none")

    @property
    def learner(self) -> str | None:
        """Who must know every EF and CA of the section before the new epoch."""
        match self.kind:
            case MoveKind.HELP_PROCESSING | MoveKind.HELP_MEMORY | MoveKind.SPLIT:
                return self.helper
            case MoveKind.FLIP_ON | MoveKind.RETURN:
                return self.member
            case _:
                return None

    @property
    def learned(self) -> Section:
        """The section whose EFs and CAs are taught: of a split only the half that is given away."""
        if self.kind is MoveKind.SPLIT:
            return self.section.split_at(self.key)[1]
        return self.section

    def __str__(self) -> str:
        with_helper = f" -> {self.helper}" if self.helper else ""
        return f"{self.kind.value} {self.member}{with_helper} {self.section} e{self.epoch}"


def target(order: Order, line: Line) -> tuple[Line, ...]:
    """The lines of the next epoch. Refuses an order that does not fit the line."""
    if line.section != order.section or line.epoch != order.epoch:
        raise InvalidInput("line", str(line), f"is not what the order was planned by: {order}")
    match order.kind:
        case MoveKind.HELP_PROCESSING | MoveKind.HELP_MEMORY:
            memory = order.kind is MoveKind.HELP_MEMORY
            return (changes.helped(line, order.member, order.helper, memory=memory),)
        case MoveKind.FLIP_ON | MoveKind.FLIP_OFF:
            on = order.kind is MoveKind.FLIP_ON
            return (changes.flagged(line, order.member, accumulatable=on),)
        case MoveKind.SPLIT:
            return changes.split(line, order.key, order.member, order.helper)
        case MoveKind.DRAIN:
            heir = line.member(order.helper)
            if heir is None or not heir.accumulatable:
                raise InvalidInput("helper", order.helper, f"an heir is on in the line {line}")
            return (changes.released(line, order.member),)
        case MoveKind.RELEASE:
            return (changes.released(line, order.member),)
        case MoveKind.SUSPEND:
            return (changes.suspended(line, order.member),)
        case MoveKind.RETURN:
            return (changes.returned(line, order.member),)
