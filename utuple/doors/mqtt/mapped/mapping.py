"""Which names are events, which commands, which just messages: the rules of mapping.toml. Pure.

`place` says what a name that is published is; `wanted` says what a filter asks of the space, family by family. A filter is
never narrower in the space than in MQTT: the space finds at least what it matches (an address, some addresses, a prefix),
and `names.matches` decides.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping as Table
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from utuple.doors.mqtt.codec import names


class MappingError(ValueError):
    """A mapping file that breaks a rule."""


class Family(NamedTuple):
    subject: str
    type: str

    def __str__(self) -> str:
        return f"{self.subject}/{self.type}"


class Event(NamedTuple):
    family: Family
    address: str
    is_message: bool = False
    """Of the family for everything else."""


class Command(NamedTuple):
    family: Family
    address: str


class Addresses(NamedTuple):
    """Some addresses, or all that begin with a prefix."""

    some: tuple[str, ...] = ()
    prefix: str = ""


class Wanted(NamedTuple):
    """What a filter asks for. `several`: also of every family that fits the filter, those that come later too."""

    families: tuple[tuple[Family, Addresses], ...] = ()
    device: Command | None = None
    several: bool = False


@dataclass(frozen=True)
class Mapping:
    """The keys of mapping.toml, `section_key`; checked together when it is made."""

    unmapped: str
    events_families: tuple[str, ...]
    events_known: tuple[str, ...]
    events_lifetime_s: float
    fields_latitude: str
    fields_longitude: str
    fields_time: str
    fields_value: str
    commands_prefix: str
    messages_subject: str
    messages_type: str
    messages_lifetime_s: float
    subscriptions_late_s: float

    def __post_init__(self) -> None:
        if self.unmapped not in ("carry", "refuse"):
            raise MappingError(f'unmapped: {self.unmapped!r} must be "carry" or "refuse"')
        for key in ("events_families", "events_known"):
            for family in getattr(self, key):
                if _split(family) is None:
                    raise MappingError(f"{_dotted(key)}: {family!r} must be SUBJECT/TYPE")
        for key in ("fields_value", "commands_prefix", "messages_subject", "messages_type"):
            value = getattr(self, key)
            if not value or names.has_wildcard(value) or "/" in value:
                raise MappingError(f"{_dotted(key)}: {value!r} must be one level without wildcards")
        for key in ("events_lifetime_s", "messages_lifetime_s", "subscriptions_late_s"):
            if not 0 < getattr(self, key) < float("inf"):
                raise MappingError(f"{_dotted(key)}: {getattr(self, key)} must be above 0")

    @property
    def messages(self) -> Family:
        return Family(self.messages_subject, self.messages_type)

    @property
    def known(self) -> frozenset[Family]:
        """Families of events that are known before anything was published."""
        said = (*self.events_families, *self.events_known)
        return frozenset(family for one in said if (family := _split(one)) is not None)

    def lifetime_s(self, event: Event) -> float:
        return self.messages_lifetime_s if event.is_message else self.events_lifetime_s

    # --- names that are published ---------------------------------------------------------------

    def place(self, topic: str) -> Event | Command | None:
        """None: refused."""
        levels = topic.split("/", 3)
        if levels[0] == self.commands_prefix:
            if len(levels) == 4 and all(levels):
                return Command(Family(levels[1], levels[2]), levels[3])
        elif (found := self._event(topic)) is not None:
            return found
        return Event(self.messages, topic, True) if self.unmapped == "carry" else None

    def _event(self, topic: str) -> Event | None:
        levels = topic.split("/", 2)
        if len(levels) < 3 or not all(levels) or not self.is_event_family(*levels[:2]):
            return None
        return Event(Family(levels[0], levels[1]), levels[2])

    def is_event_family(self, subject: str, type_: str) -> bool:
        if subject in (self.messages_subject, self.commands_prefix) or subject.startswith("$"):
            return False  # the first keeps what the doors themselves remember
        return not self.events_families or f"{subject}/{type_}" in self.events_families

    def topic_of(self, subject: str, type_: str, address: str) -> str:
        """The name that an event of the space has in MQTT."""
        return address if (subject, type_) == self.messages else f"{subject}/{type_}/{address}"

    # --- filters --------------------------------------------------------------------------------

    def wanted(self, pattern: str) -> Wanted | None:
        """None: the space cannot be asked this."""
        if not names.has_wildcard(pattern):
            return self._exactly(pattern)
        levels = pattern.split("/")
        if levels[0] == self.commands_prefix:
            return None  # a device has one address
        carries = self.unmapped == "carry"
        first, second = levels[0], levels[1] if len(levels) > 1 else "#"
        is_one = not {first, second} & {"+", "#"}
        if is_one and first and second and self.is_event_family(first, second):
            family = Family(first, second)
            # Names without an address, `truck/load` and `truck/load/`, are no events.
            short = (str(family), f"{family}/")
            left = tuple(name for name in short if carries and names.matches(pattern, name))
            rest = Addresses(prefix=names.fixed_prefix("/".join(levels[2:])))
            others = ((self.messages, Addresses(left)),) if left else ()
            return Wanted((*(((family, rest),) if len(levels) > 2 else ()), *others))
        anything = Addresses(prefix=names.fixed_prefix(pattern))
        several = (
            not is_one and not first.startswith("$") and (len(levels) > 2 or levels[-1] == "#")
        )
        return Wanted(((self.messages, anything),) if carries else (), several=several)

    def _exactly(self, topic: str) -> Wanted | None:
        match self.place(topic):
            case Command() as device:
                return Wanted(device=device)
            case Event(family, address):
                return Wanted(((family, Addresses((address,))),))
        return None

    def fits(self, pattern: str, family: Family) -> Addresses | None:
        """What a filter over several families asks of this one."""
        if not self.is_event_family(*family):
            return None
        levels = pattern.split("/")
        for wanted, level in zip(levels, family, strict=False):
            if wanted == "#":
                return Addresses()
            if wanted not in ("+", level):
                return None
        return Addresses(prefix=names.fixed_prefix("/".join(levels[2:])))


def _split(family: object) -> Family | None:
    levels = family.split("/") if isinstance(family, str) else []
    if len(levels) != 2 or not all(levels) or names.has_wildcard("".join(levels)):
        return None
    return Family(*levels)


def _dotted(key: str) -> str:
    return key.replace("_", ".", 1) if key != "unmapped" else key


def mapping_of(default: Table[str, Any], given: Table[str, Any]) -> Mapping:
    """The tables of two TOML files, the second over the first."""
    base, own = _flat(default), _flat(given)
    types = {field.name: base[field.name] for field in fields(Mapping)}
    for key, value in own.items():
        if key not in types:
            near = difflib.get_close_matches(key, types, n=1, cutoff=0.0)[0]
            raise MappingError(f"{_dotted(key)}: no such key; the nearest is {_dotted(near)}")
        if not _alike(types[key], value):
            kind = "a number" if isinstance(types[key], int) else type(types[key]).__name__
            raise MappingError(f"{_dotted(key)}: {value!r} must be {kind}")
    both: dict[str, Any] = {**base, **own}
    for key in ("events_families", "events_known"):
        both[key] = tuple(both[key])
    return Mapping(**both)


def _alike(default: object, value: object) -> bool:
    if isinstance(default, int):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, type(default))


def _flat(tables: Table[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in tables.items():
        if isinstance(value, dict):
            found |= {f"{name}_{key}": one for key, one in value.items()}
        else:
            found[name] = value
    return found
