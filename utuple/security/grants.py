"""Grants: what each identity may do, as one numbered document. Pure.

A server judges by the document it holds durably. The highest number wins, so it does not matter by which way or how often
one comes; who may make one is a matter of its signature (`signed`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeVar

import orjson

from utuple.errors import InvalidInput
from utuple.model.area import Area, Box, Circle
from utuple.model.condition import Equal, Prefix
from utuple.model.limits import MAX_LIFETIME_S
from utuple.model.utuple import Family
from utuple.model.value import check_name as check_text_name
from utuple.security.identity import Role, check_cluster, check_name, check_role
from utuple.security.within import Scope

_T = TypeVar("_T")
ANY_NAME = "*"
GRANTS_MAX = 100_000
FAMILIES_MAX = 1_000
"""Of one action of one grant. Both keep the document at a size that every server can hold and every call be judged by."""


class Action(StrEnum):
    EMIT = "emit"
    WATCH = "watch"
    """And read."""
    SERVE = "serve"
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class FamilyPattern:
    subject: str
    type: str

    def __post_init__(self) -> None:
        check_text_name("subject", self.subject)
        check_text_name("type", self.type)

    def covers(self, family: Family) -> bool:
        return self.subject in (ANY_NAME, family.subject) and self.type in (ANY_NAME, family.type)

    def __str__(self) -> str:
        return f"{self.subject}/{self.type}"


def family_pattern(text: str) -> FamilyPattern:
    """SUBJECT/TYPE, either of them * for any."""
    subject, slash, type_ = text.partition("/")
    if not slash or not subject or not type_ or "/" in type_:
        raise InvalidInput("family", text, "must be SUBJECT/TYPE; * stands for any")
    return FamilyPattern(subject, type_)


@dataclass(frozen=True, slots=True)
class Grant:
    name: str
    role: Role
    families: Mapping[Action, tuple[FamilyPattern, ...]] = field(default_factory=dict)
    scope: Scope = None
    """Of addresses; None is any, but for a device that emits or serves: then its own name."""
    area: Area | None = None
    max_lifetime_s: float | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.role is Role.PROGRAM:
            raise InvalidInput(
                "role", self.role, "programs are not granted anything: their certificate is enough"
            )
        for action, patterns in self.families.items():
            if len(patterns) > FAMILIES_MAX:
                rule = f"must be at most {FAMILIES_MAX} families"
                raise InvalidInput(action, f"{len(patterns)} families", rule)
        if self.max_lifetime_s is not None and not 0 <= self.max_lifetime_s <= MAX_LIFETIME_S:
            rule = f"must lie between 0 and {MAX_LIFETIME_S} seconds"
            raise InvalidInput("max_lifetime_s", self.max_lifetime_s, rule)

    def scope_of(self, action: Action) -> Scope:
        if (
            self.scope is None
            and self.role is Role.DEVICE
            and action in (Action.EMIT, Action.SERVE)
        ):
            return Equal(self.name)
        return self.scope


@dataclass(frozen=True, slots=True)
class Grants:
    cluster: str
    number: int = 0
    grants: Mapping[str, Grant] = field(default_factory=dict)
    void_before_us: Mapping[str, int] = field(default_factory=dict)
    """By name: certificates issued before this are void. A name stays here after its grant is gone."""
    authorities: tuple[str, ...] = ()
    """Certificates of the authorities that hold, as PEM: two while one is being replaced. None: those that each program's
    credentials came with."""

    def __post_init__(self) -> None:
        check_cluster(self.cluster)
        if self.number < 0:
            raise InvalidInput("number", self.number, "must not be negative")
        for kind, names in (("grants", self.grants), ("revocations", self.void_before_us)):
            if len(names) > GRANTS_MAX:
                raise InvalidInput(kind, len(names), f"must be at most {GRANTS_MAX}")

    def granted(self, grant: Grant) -> Grants:
        """The next document, in which this name may do this and nothing else."""
        return self._next({**self.grants, grant.name: grant}, self.void_before_us)

    def revoked(self, name: str, now_us: int) -> Grants:
        """The next document, in which this name may do nothing, and what was issued to it until now is void."""
        rest = {other: grant for other, grant in self.grants.items() if other != name}
        return self._next(rest, {**self.void_before_us, check_name(name): now_us})

    def authorised_by(self, authorities: tuple[str, ...]) -> Grants:
        """The next document, by which these authorities hold and no others."""
        return replace(self, number=self.number + 1, authorities=authorities)

    def _next(self, grants: Mapping[str, Grant], void: Mapping[str, int]) -> Grants:
        return Grants(self.cluster, self.number + 1, grants, void, self.authorities)


def encode(grants: Grants) -> bytes:
    """The bytes that are signed: the same for the same grants, whatever the order they were given in."""
    form = {
        "cluster": grants.cluster,
        "number": grants.number,
        "grants": [_to_json(grants.grants[name]) for name in sorted(grants.grants)],
        "void_before_us": dict(grants.void_before_us),
        "authorities": list(grants.authorities),
    }
    return orjson.dumps(form, option=orjson.OPT_SORT_KEYS)


def decode(encoded: bytes) -> Grants:
    form = _mapping("grants", _parsed(encoded), _DOCUMENT)
    listed = [_from_json(item) for item in _typed("grants", form["grants"], list)]
    by_name = {grant.name: grant for grant in listed}
    if len(by_name) != len(listed):
        raise InvalidInput("grants", len(listed), "must have each name once")
    void = _typed("void_before_us", form["void_before_us"], dict)
    for name, instant in void.items():
        _typed(f"void_before_us.{check_name(name)}", instant, int)
    cluster, number = _typed("cluster", form["cluster"], str), _typed("number", form["number"], int)
    listed_pem = _typed("authorities", form["authorities"], list)
    authorities = tuple(_typed("authorities", pem, str) for pem in listed_pem)
    return Grants(cluster, number, by_name, void, authorities)


_DOCUMENT = {"cluster", "number", "grants", "void_before_us", "authorities"}


def _to_json(grant: Grant) -> dict[str, Any]:
    match grant.scope:
        case Equal(value):
            scope: list[Any] | None = ["address", value]
        case Prefix(text):
            scope = ["prefix", text]
        case _:
            scope = None
    return {
        "name": grant.name,
        "role": grant.role.value,
        "families": {
            action.value: [[pattern.subject, pattern.type] for pattern in patterns]
            for action, patterns in grant.families.items()
        },
        "scope": scope,
        "area": _area_to_json(grant.area),
        "max_lifetime_s": grant.max_lifetime_s,
    }


_FIELDS = {"name", "role", "families", "scope", "area", "max_lifetime_s"}


def _from_json(item: object) -> Grant:
    form = _mapping("grant", item, _FIELDS)
    families = {
        _action(name): tuple(_pattern(pattern) for pattern in _typed(name, patterns, list))
        for name, patterns in _typed("families", form["families"], dict).items()
    }
    lifetime_s = form["max_lifetime_s"]
    if lifetime_s is not None and (
        isinstance(lifetime_s, bool) or not isinstance(lifetime_s, int | float)
    ):
        raise InvalidInput("max_lifetime_s", lifetime_s, "must be a number of seconds")
    return Grant(
        _typed("name", form["name"], str),
        check_role(_typed("role", form["role"], str)),
        families,
        _scope(form["scope"]),
        _area(form["area"]),
        lifetime_s,
    )


def _action(name: str) -> Action:
    try:
        return Action(name)
    except ValueError:
        raise InvalidInput("action", name, f"must be one of {', '.join(Action)}") from None


def _pattern(form: object) -> FamilyPattern:
    match form:
        case [str(subject), str(type_)]:
            return FamilyPattern(subject, type_)
    raise InvalidInput("family", form, "must be a list of subject and type")


def _scope(form: object) -> Scope:
    match form:
        case None:
            return None
        case ["address", str(address)]:
            return Equal(check_text_name("address", address))
        case ["prefix", str(text)]:
            return Prefix(text)
    raise InvalidInput("scope", form, 'must be null, ["address", …] or ["prefix", …]')


def _area_to_json(area: Area | None) -> list[Any] | None:
    match area:
        case Box(south, west, north, east):
            return ["box", south, west, north, east]
        case Circle(lat, lon, radius_m):
            return ["circle", lat, lon, radius_m]
        case _:
            return None


def _area(form: Any) -> Area | None:
    """Box and Circle check their own numbers."""
    match form:
        case None:
            return None
        case ["box", _, _, _, _]:
            return Box(*form[1:])
        case ["circle", _, _, _]:
            return Circle(*form[1:])
    raise InvalidInput(
        "area",
        form,
        'must be null, ["box", south, west, north, east] or ["circle", lat, lon, radius_m]',
    )


def _parsed(encoded: bytes) -> object:
    try:
        return orjson.loads(encoded)
    except orjson.JSONDecodeError as error:
        raise InvalidInput("grants", f"{len(encoded)} bytes", f"must be JSON: {error}") from None


def _mapping(field: str, form: object, names: set[str]) -> dict[str, Any]:
    if not isinstance(form, dict):
        raise InvalidInput(field, form, "must be a mapping")
    if form.keys() != names:
        wrong = sorted(form.keys() ^ names)[0]
        raise InvalidInput(
            f"{field}.{wrong}", form.get(wrong), f"must have exactly {', '.join(sorted(names))}"
        )
    return form


def _typed(field: str, value: object, kind: type[_T]) -> _T:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise InvalidInput(field, value, f"must be {kind.__name__}")
    return value
