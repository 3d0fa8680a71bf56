"""The uTuple: two halves, metadata and data, each exact or a template; the kind follows from that.

EA  exact metadata, actual data        EF  template metadata, template data
CF  exact metadata, template data      CA  template metadata, actual data
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from utuple.errors import InvalidInput
from utuple.model.area import Area, Box, Circle, Position, check_position
from utuple.model.condition import ANY, AddressCondition, DataCondition
from utuple.model.limits import MAX_LIFETIME_S, MAX_TIME_US, MIN_TIME_US
from utuple.model.terms import Terms
from utuple.model.value import Value, check_name, check_value, plain_scalar

ID_BYTES = 16
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Kind(Enum):
    EA = "EA"
    EF = "EF"
    CF = "CF"
    CA = "CA"


class Family(NamedTuple):
    """Subject and type: always exact, hashed together into the key."""

    subject: str
    type: str


def family(subject: object, type_: object) -> Family:
    if type(subject) is str and type(type_) is str:
        return _family(subject, type_)
    return Family(check_name("subject", subject), check_name("type", type_))


@lru_cache(maxsize=10_000)
def _family(subject: str, type_: str) -> Family:
    """There are few families and many uTuples: each is checked once."""
    return Family(check_name("subject", subject), check_name("type", type_))


@dataclass(frozen=True, slots=True)
class Exact:
    """Metadata of one device at one instant."""

    address: str
    time_us: int
    position: Position | None = None

    def __post_init__(self) -> None:
        check_name("address", self.address)
        check_time("time", self.time_us)
        object.__setattr__(self, "position", check_position("position", self.position))


@dataclass(frozen=True, slots=True)
class Template:
    """Metadata conditions; None means any. Time is half-open: since <= time < until."""

    address: AddressCondition = ANY
    since_us: int | None = None
    until_us: int | None = None
    area: Area | None = None

    def __post_init__(self) -> None:
        for name, instant in (("since", self.since_us), ("until", self.until_us)):
            if instant is not None:
                check_time(name, instant)
        ends = (self.since_us, self.until_us)
        if ends[0] is not None and ends[1] is not None and ends[0] >= ends[1]:
            raise InvalidInput("until", datetime_of(ends[1]), must_lie_after(datetime_of(ends[0])))
        if self.area is not None and not isinstance(self.area, Box | Circle):
            raise InvalidInput("area", self.area, "must be a Box or a Circle")

    def accepts(self, exact: Exact) -> bool:
        return (
            self.address.meets(exact.address)
            and (self.since_us is None or self.since_us <= exact.time_us)
            and (self.until_us is None or exact.time_us < self.until_us)
            and (
                self.area is None
                or (exact.position is not None and self.area.contains(exact.position))
            )
        )


@dataclass(frozen=True, slots=True)
class UTuple:
    id: bytes
    family: Family
    metadata: Exact | Template
    data: Mapping[str, Value] | None
    """Actual values, or None where the data half is the template `where`."""
    where: Mapping[str, DataCondition] | None
    lifetime_s: float
    reader: str | None = None
    """Who gets deliveries: named on formals (EF, CF), absent on actuals."""
    terms: Terms | None = None
    """Of an EF, if its reader asks for others than the default."""

    def __post_init__(self) -> None:
        check_id(self.id)
        if (self.data is None) == (self.where is None):
            raise InvalidInput("data", self.data, "is either actual values or a template")
        if self.data is not None:
            check_value("data", self.data)
        check_lifetime(self.lifetime_s)
        if self.reader is not None:
            check_name("reader", self.reader)

    @property
    def kind(self) -> Kind:
        if isinstance(self.metadata, Exact):
            return Kind.EA if self.where is None else Kind.CF
        return Kind.CA if self.where is None else Kind.EF


def check_id(id_: object) -> bytes:
    if not isinstance(id_, bytes) or len(id_) != ID_BYTES:
        raise InvalidInput("id", id_, f"must be {ID_BYTES} bytes (a UUID)")
    return id_


def check_time(field: str, time_us: object) -> int:
    if isinstance(time_us, bool) or not isinstance(time_us, int):
        raise InvalidInput(field, time_us, "must be an instant in whole microseconds")
    if not MIN_TIME_US <= time_us < MAX_TIME_US:
        raise InvalidInput(field, time_us, "must lie in the years 1 to 9999")
    return time_us


def datetime_of(time_us: int) -> datetime:
    return EPOCH + timedelta(microseconds=time_us)


def must_lie_after(since: datetime) -> str:
    """The rule for `until`."""
    return f"must lie after since, which is {since.isoformat()}, or nothing can match"


def check_lifetime(lifetime_s: object, field: str = "lifetime_s") -> float:
    lifetime_s = plain_scalar(lifetime_s)
    if isinstance(lifetime_s, bool) or not isinstance(lifetime_s, int | float):
        raise InvalidInput(field, lifetime_s, "must be a number of seconds")
    if not 0 <= lifetime_s <= MAX_LIFETIME_S:
        raise InvalidInput(field, lifetime_s, f"must lie between 0 and {MAX_LIFETIME_S} seconds")
    return float(lifetime_s)
