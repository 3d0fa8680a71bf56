"""The templates of one family: by address, or as boxes in segments. Pure.

Templates that are added are only noted, and put into a segment together when someone asks or there are many:
one by one they cost numpy's overhead each. Removing one clears a bit, and its slot is used again. When more than
half of all slots are free, each removal also moves a few templates out of the emptiest segment, until that is
empty and goes: no step is long, however many templates there are.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from utuple.model.condition import Equal, OneOf
from utuple.model.utuple import Template, UTuple
from utuple.server.matching.bitmaps import FIRST_SLOTS, PairBuffer, Segment
from utuple.server.matching.boxes import MAX_DIMENSIONS, NOWHERE, Dimensions, FamilyRows
from utuple.server.matching.kernels import Counts, Floats, Ints, Kernels

_NEVER_US = (1 << 63) - 1
_FIRST = 64


class TemplateArrays:
    """Every template of a box index under a small number, one list per thing known of it. Lists rather than an object a
    template: there may be millions, and what matching needs (who has expired, who must still be asked) is looked up for
    whole batches."""

    def __init__(self) -> None:
        self.number_of: dict[bytes, int] = {}
        self.utuples: list[UTuple | None] = []
        self._ids = np.empty(_FIRST, dtype=np.object_)
        """An array, since a batch asks for a million of them."""
        self.segments: list[Segment | None] = []
        """Where its box is, if it has one and it was put in."""
        self.slots: array[int] = array("i")
        self.is_open = bytearray()
        """Whether the template itself must be asked, beyond its box or address."""
        self._expires_us: array[int] = array("q")
        self._soonest_us = _NEVER_US
        """Nobody expires before."""
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self.number_of)

    def enter(self, utuples: Sequence[UTuple], expires_us: Sequence[int]) -> list[int]:
        """Their numbers. None of them is in it yet."""
        again = [self._free.pop() for _ in range(min(len(self._free), len(utuples)))]
        for number, utuple, at_us in zip(again, utuples, expires_us, strict=False):
            self.utuples[number] = utuple
            self._ids[number] = utuple.id
            self._expires_us[number] = at_us
        fresh = utuples[len(again) :]
        before = len(self.utuples)
        numbers = [*again, *range(before, before + len(fresh))]
        self.utuples.extend(fresh)
        if len(self.utuples) > len(self._ids):
            longer = np.empty(2 * len(self.utuples), dtype=np.object_)
            longer[:before] = self._ids[:before]
            self._ids = longer
        self._ids[before : len(self.utuples)] = [utuple.id for utuple in fresh]
        self.segments.extend([None] * len(fresh))
        self.slots.extend([0] * len(fresh))
        self.is_open.extend(bytes(len(fresh)))
        self._expires_us.extend(expires_us[len(again) :])
        self.number_of.update(zip([utuple.id for utuple in utuples], numbers, strict=True))
        self._soonest_us = min(self._soonest_us, min(expires_us, default=_NEVER_US))
        return numbers

    def leave(self, number: int) -> None:
        del self.number_of[self._ids[number]]
        self.utuples[number] = self.segments[number] = None
        self._ids[number] = None
        self._expires_us[number] = _NEVER_US
        self._free.append(number)

    def utuple(self, number: int) -> UTuple:
        utuple = self.utuples[number]
        assert utuple is not None
        return utuple

    def ids_of(self, numbers: NDArray[np.int32]) -> Sequence[bytes]:
        ids: list[bytes] = self._ids[numbers].tolist()
        return ids

    def renew(self, number: int, expires_us: int) -> None:
        self._expires_us[number] = expires_us
        self._soonest_us = min(self._soonest_us, expires_us)

    def dead(self, numbers: NDArray[np.int32], now_us: int) -> NDArray[np.bool_] | None:
        """Which of these are expired; None if nobody is."""
        if now_us < self._soonest_us:
            return None
        expires_us = np.frombuffer(self._expires_us, dtype=np.int64)
        self._soonest_us = int(expires_us.min())
        return expires_us[numbers] <= now_us

    def asking(self, numbers: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which of these must still be asked."""
        return np.frombuffer(self.is_open, dtype=np.bool_)[numbers]


_MAX_NAMED = 64
"""A template for more addresses than this is searched for as a box: its dictionary entries would cost more than they
save."""
_BULK = 2_048
"""So many new templates are put into segments although no batch has come: that takes some milliseconds."""
_MOVED = 8
"""Templates moved with each removal while there is too much room."""

Lists = tuple[Ints, Counts, Ints]
"""Templates that are met, how many rows each, the rows template by template."""


class FamilyIndex:
    def __init__(self, arrays: TemplateArrays, kernels: Kernels, segment_slots: int) -> None:
        self._arrays = arrays
        self._kernels = kernels
        self._segment_slots = segment_slots
        self._count = 0
        self._named: dict[str, int | dict[int, None]] = {}
        """By address, one template or several: mostly it is one."""
        self._dimensions = Dimensions()
        self._asked = np.zeros(MAX_DIMENSIONS, dtype=np.int64)
        """How many templates in segments ask something of each dimension."""
        self._noted: dict[int, list[float]] = {}
        self._segments: list[Segment] = []
        self._boxed = 0
        """Templates in segments."""
        self._filling: Segment | None = None
        self._emptying: Segment | None = None
        """Takes no new ones."""
        self._found = PairBuffer()

    def __len__(self) -> int:
        return self._count

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self._segments)

    def add_many(self, templates: Iterable[tuple[int, UTuple]]) -> None:
        noted, is_open, box_of = self._noted, self._arrays.is_open, self._dimensions.box
        for number, utuple in templates:
            self._count += 1
            assert isinstance(utuple.metadata, Template)
            names = _addresses(utuple.metadata)
            if names is None:
                noted[number], is_open[number] = box_of(utuple)
                if len(noted) >= _BULK:
                    self._put_in()
                    noted = self._noted
            else:
                is_open[number] = bool(utuple.where) or not _is_plain(utuple.metadata)
                for name in names:
                    self._name(name, number)

    def remove(self, number: int, utuple: UTuple) -> None:
        self._count -= 1
        assert isinstance(utuple.metadata, Template)
        names = _addresses(utuple.metadata)
        if names is not None:
            for name in names:
                self._unname(name, number)
            return
        self._dimensions.forget(utuple)
        if self._noted.pop(number, None) is None:
            self._take_out(number)
            self._make_less_room()

    def match(self, rows: FamilyRows) -> Iterator[Lists]:
        """Candidates by address and by box, before they are verified. Rows are counted as in `rows`."""
        if self._named:
            yield self._match_named(rows)
        self._put_in()
        if self._segments:
            values = rows.values(self._dimensions, self._asked)
            for segment in self._segments:
                yield segment.match(values, self._found)

    # --- by address ------------------------------------------------------------------------------

    def _match_named(self, rows: FamilyRows) -> Lists:
        found = list(map(self._named.get, rows.addresses()))
        if set(map(type, found)) == {int}:  # one template each: no work of Python's own a row
            numbers, at = np.array(found, dtype=np.int32), np.arange(len(found), dtype=np.int32)
        else:
            pairs = [(number, row) for row, held in enumerate(found) for number in _each(held)]
            numbers, at = np.array(pairs, dtype=np.int32).reshape(-1, 2).T
        order = np.argsort(numbers, kind="stable")
        numbers = numbers[order]
        firsts = np.flatnonzero(np.diff(numbers, prepend=-1))
        counts = np.diff(firsts, append=len(numbers))
        return numbers[firsts], counts, at[order]

    def _name(self, name: str, number: int) -> None:
        held = self._named.setdefault(name, number)
        if held is number:
            return
        if isinstance(held, int):
            self._named[name] = {held: None, number: None}
        else:
            held[number] = None

    def _unname(self, name: str, number: int) -> None:
        held = self._named[name]
        if not isinstance(held, int):
            del held[number]
            if held:
                return
        del self._named[name]

    # --- in segments -----------------------------------------------------------------------------

    def _put_in(self) -> None:
        """What was noted is in segments from now on."""
        if not self._noted:
            return
        numbers = list(self._noted)
        boxes = self._boxes(list(self._noted.values()))
        self._noted = {}
        first = 0
        while first < len(numbers):
            segment = self._with_room()
            some = numbers[first : first + segment.room]
            slots = segment.put(some, boxes[first : first + len(some)])
            for number, slot in zip(some, slots, strict=True):
                self._arrays.segments[number] = segment
                self._arrays.slots[number] = slot
            first += len(some)
        self._boxed += len(numbers)
        self._asked[: len(self._dimensions)] += (boxes[:, 0::2] > NOWHERE).sum(axis=0)

    def _boxes(self, rows: list[list[float]]) -> Floats:
        """Those that were noted before the newest dimension ask nothing of it."""
        ends = 2 * len(self._dimensions)
        boxes = np.empty((len(rows), ends))
        boxes[:, 0::2], boxes[:, 1::2] = -np.inf, np.inf
        for length in set(map(len, rows)):
            at = [place for place, row in enumerate(rows) if len(row) == length]
            some = np.fromiter(chain.from_iterable([rows[place] for place in at]), np.float64)
            boxes[at, :length] = some.reshape(len(at), length)
        return boxes

    def _with_room(self) -> Segment:
        """The fullest that is not full, so that those that are nearly empty become so."""
        if self._filling is None or not self._filling.room:
            some = (held for held in self._segments if held.room and held is not self._emptying)
            self._filling = max(some, key=len, default=None)
        if self._filling is None:
            self._filling = Segment(self._kernels, FIRST_SLOTS, self._segment_slots)
            self._segments.append(self._filling)
        return self._filling

    def _take_out(self, number: int) -> None:
        segment = self._arrays.segments[number]
        assert segment is not None
        asked = segment.remove(self._arrays.slots[number])
        self._asked[: len(asked)] -= asked
        self._arrays.segments[number] = None
        self._boxed -= 1
        if not len(segment):
            self._segments.remove(segment)
            if self._emptying is segment:
                self._emptying = None
            if self._filling is segment:
                self._filling = None

    def _make_less_room(self) -> None:
        if self._emptying is None:
            room = len(self._segments) * self._segment_slots
            if len(self._segments) < 2 or 2 * self._boxed > room:
                return
            self._emptying = min(self._segments, key=len)
            if self._filling is self._emptying:
                self._filling = None
        segment = self._emptying
        for number, box in segment.some(_MOVED):
            self._take_out(number)
            self._noted[number] = box


def _each(held: int | dict[int, None] | None) -> Iterable[int]:
    if held is None:
        return ()
    return (held,) if isinstance(held, int) else held


def _addresses(template: Template) -> tuple[str, ...] | None:
    """The addresses a template names one by one, if few; None if it must be searched for."""
    match template.address:
        case Equal(value):
            return (value,)
        case OneOf(values) if len(values) <= _MAX_NAMED:
            return tuple(dict.fromkeys(values))
        case _:
            return None


def _is_plain(template: Template) -> bool:
    """It asks nothing but the address."""
    return template.since_us is None and template.until_us is None and template.area is None
