"""The history of a line's layouts: which members may hold EAs that were routed by an earlier one. Pure.

An EF is brought to the members that keep it by the layout of today. EAs of earlier layouts may lie at others, and a member that
has not heard of today's layout still takes EAs by the one before. So a line keeps its earlier layouts, and an EF is looked
for wherever one of them says that a match may lie. A layout is forgotten in two steps, each by a new epoch (the move
`prune`): first everyone has heard of a later one, and each says up to which seq it may hold EAs of it; later a member
that holds none of those any more is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from utuple.cluster.layout import NO_LAYOUT, Layout, layout_from_list, layout_to_list
from utuple.errors import InvalidInput
from utuple.model.utuple import UTuple
from utuple.model.value import decode_data, encode_data

MAX_PAST = 8
"""Layouts that are remembered one by one: a line is sent with every refusal, so it stays small. Beyond it any member may hold
anything, as after help."""


@dataclass(frozen=True, slots=True)
class Past:
    """An earlier layout, by which EAs were taken that may still be there."""

    layout: Layout
    """Without axes it was help: every member may hold any EA."""
    upto: tuple[tuple[str, int], ...] | None = None
    """The members that hold such EAs, each with the last seq of its own that one of them can have. None: not everyone is known to
    have heard of a later layout, so that EAs may still be taken by this one."""

    def __post_init__(self) -> None:
        if self.upto is not None and len({name for name, _ in self.upto}) != len(self.upto):
            raise InvalidInput("past", self.upto, "each member is named once")

    def holders(self, formal: UTuple, members: Iterable[str]) -> frozenset[str]:
        """Who may hold a match of this EF, of the line's members."""
        names = self.layout.keepers(formal) if self.layout.axes else frozenset(members)
        return names if self.upto is None else names.intersection(name for name, _ in self.upto)

    def upto_at(self, member: str) -> int | None:
        """The last seq of what this member may hold: 0, if nothing; None, if that is not known."""
        if self.upto is not None:
            return dict(self.upto).get(member, 0)
        return None if not self.layout.axes or member in self.layout.owners else 0

    def is_within(self, other: Past) -> bool:
        """It says that no more is held than the other one does."""
        return self.layout == other.layout and (
            other.upto is None or (self.upto is not None and set(self.upto) <= set(other.upto))
        )


History = tuple[Past, ...]
"""The oldest first."""


def followed(history: History, before: Layout, after: Layout) -> History:
    """The history of a line whose layout was `before` and is `after` from now on."""
    if not after.axes or before == after:  # under help every EF visits every member
        return history if after.axes else ()
    if before.axes and all(before.asks_no_more_of(name, after) for name in before.owners):
        return history  # whoever may hold a match of an EF keeps it from now on
    longer = (*(one for one in history if one.layout != before), Past(before))
    return longer if len(longer) <= MAX_PAST else (Past(NO_LAYOUT),)


def encode_history(history: History) -> bytes:
    """As it is stored and as it travels; nothing, where there is none."""
    if not history:
        return b""
    past = [
        [layout_to_list(one.layout), None if one.upto is None else list(map(list, one.upto))]
        for one in history
    ]
    return encode_data({"past": past})


def decode_history(encoded: bytes) -> History:
    """Refuses whatever is none."""
    if not encoded:
        return ()
    try:
        return tuple(
            Past(
                layout_from_list(layout),
                None if upto is None else tuple((str(name), int(seq)) for name, seq in upto),
            )
            for layout, upto in decode_data(encoded)["past"]
        )
    except InvalidInput:
        raise
    except (TypeError, ValueError, KeyError) as error:
        raise InvalidInput("past", encoded[:80], f"is no history: {error}") from None
