"""Every hypothesis strategy of the project, so that a new condition is tried everywhere at once.

Values come from small pools mixed with the unusual, so that matches actually happen; `formal_near` and
`command_near` build templates around a given uTuple, which makes hits and near misses common.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from utuple.cluster.dimension import in_order
from utuple.cluster.layout import Axis, Layout
from utuple.cluster.line import Line, Member
from utuple.model.area import Area, Box, Circle, Position
from utuple.model.condition import (
    ABSENT,
    ANY,
    AddressCondition,
    DataCondition,
    Equal,
    OneOf,
    Prefix,
    Range,
    TypeIs,
)
from utuple.model.key import HASH_SPACE
from utuple.model.section import Section
from utuple.model.terms import (
    Terms,
    expire,
    keep,
    latest_per_address,
    newest,
    oldest,
    respond_within,
)
from utuple.model.utuple import Exact, Family, Template, UTuple
from utuple.model.value import TYPE_NAMES, Value, is_number, number_key
from utuple.security.grants import Action, FamilyPattern, Grant, Grants
from utuple.security.identity import Role
from utuple.security.within import Scope

NOW_US = 1_800_000_000_000_000
"""The present of generated uTuples; their times lie around it."""

TEXT = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
_LAST = "\U0010ffff"
_BEFORE_SURROGATES = "\ud7ff"

# --------------------------------------------------------------------------------------------- names

names = st.one_of(
    st.sampled_from(
        ["truck", "aircon", "load", "power", "温度", "été", "%s", "a'b\"c", "\\", "$1"]
    ),
    st.text(TEXT, min_size=1, max_size=12),
)
families = st.builds(Family, names, names)
few_families = st.sampled_from(
    [
        Family("truck", "load"),
        Family("truck", "speed"),
        Family("aircon", "power"),
        Family("ab", "c"),
    ]
)

_ADDRESSES = (
    "a",
    "b",
    "truck-1",
    "truck-10",
    "truck-2",
    "truck-2" + _LAST,
    "trucj",
    "Truck-1",
    "room-101",
    "%",
    "_",
    "\\",
    "é",
    "e\u0301",
    "z" + _BEFORE_SURROGATES,
    "z" + _BEFORE_SURROGATES + "1",
    "z\ue000",
    "z\U0001f600",
    _LAST,
    _LAST + _LAST,
    " ",
)
addresses = st.one_of(st.sampled_from(_ADDRESSES), st.text(TEXT, min_size=1, max_size=6))
ids = st.uuids().map(lambda made: made.bytes)

# ---------------------------------------------------------------------------------- times, positions

_STEP_US = 1_000_000
times_us = st.one_of(
    st.integers(-5, 5).map(lambda step: NOW_US + step * _STEP_US),
    st.integers(NOW_US - 3, NOW_US + 3),
    st.sampled_from([-62_135_596_800_000_000, 253_402_300_799_999_999, 0, -1]),
)
lifetimes_s = st.sampled_from([0.0, 0.5, 60.0, 3_600.0, 86_400.0, 7 * 86_400.0, 366 * 86_400.0])

latitudes = st.one_of(
    st.sampled_from([-90.0, -89.999, -0.0, 0.0, 10.0, 35.68, 89.999, 90.0]),
    st.floats(-90, 90),
)
longitudes = st.one_of(
    st.sampled_from([-180.0, -179.999, -10.0, 0.0, 10.0, 139.76, 179.999, 180.0]),
    st.floats(-180, 180),
)
positions: st.SearchStrategy[Position] = st.tuples(latitudes, longitudes)
maybe_positions: st.SearchStrategy[Position | None] = st.one_of(st.none(), positions)


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    """West may lie east of east: such a box crosses the antimeridian."""
    south, north = sorted((draw(latitudes), draw(latitudes)))
    return Box(south, draw(longitudes), north, draw(longitudes))


radii_m = st.one_of(
    st.sampled_from([0.0, 1.0, 500.0, 111_195.0, 1_000_000.0, 10_007_600.0, 20_015_200.0]),
    st.floats(0, 20_015_200),
)
circles = st.builds(Circle, latitudes, longitudes, radii_m)
areas: st.SearchStrategy[Area] = st.one_of(boxes(), circles)

# ---------------------------------------------------------------------------------------------- data

field_names = st.one_of(
    st.sampled_from(["a", "b", "kg", "on"]),
    st.sampled_from(["a.b", "%s", ":x", "?", "'", '"', "\\", "$1", "{a}", "é", "\U0001f600", "0"]),
)
integers = st.one_of(
    st.integers(-2, 3),
    st.sampled_from(
        [
            2**53 - 1,
            2**53,
            2**53 + 1,
            -(2**53) - 1,
            10**17,
            10**17 + 1,
            2**63,
            -(2**63),
            2**64 - 1,
            10**16,
        ]
    ),
)
floats = st.one_of(
    st.sampled_from([-0.0, 0.0, 1.0, 2.0, 0.1, 0.5, 2.5, 1e16, 1e17, 1e23, 5e-324, 1.5e300]),
    st.sampled_from([float(2**53), float(2**53 + 2), float(2**63), float(2**64), -1e16]),
    st.floats(allow_nan=False, allow_infinity=False),
)
numbers: st.SearchStrategy[int | float] = st.one_of(integers, floats)
texts = st.one_of(
    st.sampled_from(["", "a", "A", "ab", "b", "1", "true", "$bytes", "é", "\ue000", "\U0001f600"]),
    st.text(TEXT, max_size=5),
)
blobs = st.one_of(st.sampled_from([b"", b"a", b"\x00\xff"]), st.binary(max_size=4))
scalars: st.SearchStrategy[Value] = st.one_of(st.none(), st.booleans(), numbers, texts, blobs)


def _nested(inner: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    return st.one_of(st.lists(inner, max_size=3), st.dictionaries(field_names, inner, max_size=2))


values: st.SearchStrategy[Value] = st.one_of(
    scalars, scalars, st.recursive(scalars, _nested, max_leaves=4)
)
data = st.dictionaries(field_names, values, max_size=4)

# ---------------------------------------------------------------------------------------- conditions


def _half_open(ends: st.SearchStrategy[Any]) -> st.SearchStrategy[Range]:
    def order(end: Any) -> Any:
        return end if isinstance(end, str) else number_key(end)

    def build(pair: tuple[Any, Any]) -> Range:
        low, high = sorted(pair, key=order)
        return Range(low, high)

    both = st.tuples(ends, ends).filter(lambda pair: bool(order(pair[0]) != order(pair[1])))
    above = ends.map(lambda low: Range(low, None))
    below = ends.filter(lambda high: high != "").map(lambda high: Range(None, high))
    return st.one_of(both.map(build), above, below)


number_ranges = _half_open(numbers)
text_ranges = _half_open(texts)
data_conditions: st.SearchStrategy[DataCondition] = st.one_of(
    st.just(ANY),
    st.just(ABSENT),
    st.builds(Equal, values),
    st.lists(values, min_size=1, max_size=4).map(lambda some: OneOf(tuple(some))),
    number_ranges,
    text_ranges,
    st.sampled_from(sorted(set(TYPE_NAMES.values()))).map(TypeIs),
)
wheres = st.dictionaries(field_names, data_conditions, max_size=3)

prefixes = st.builds(
    lambda address, length: Prefix(address[: max(1, length)]), addresses, st.integers(1, 4)
)
address_conditions: st.SearchStrategy[AddressCondition] = st.one_of(
    st.just(ANY),
    st.builds(Equal, addresses),
    st.lists(addresses, min_size=1, max_size=4).map(lambda some: OneOf(tuple(some))),
    _half_open(addresses),
    prefixes,
)

# ----------------------------------------------------------------------------------------- templates


def _spans() -> st.SearchStrategy[tuple[int | None, int | None]]:
    ends = st.one_of(st.none(), times_us)
    return st.tuples(ends, ends).filter(
        lambda span: span[0] is None or span[1] is None or span[0] < span[1]
    )


spans_us = _spans()
exacts = st.builds(Exact, addresses, times_us, maybe_positions)
templates = st.builds(
    lambda address, span, area: Template(address, span[0], span[1], area),
    address_conditions,
    spans_us,
    st.one_of(st.none(), areas),
)

# ------------------------------------------------------------------------------------------- uTuples


def event_actuals(family: st.SearchStrategy[Family] = few_families) -> st.SearchStrategy[UTuple]:
    return st.builds(UTuple, ids, family, exacts, data, st.none(), lifetimes_s)


drop_policies = st.one_of(
    st.sampled_from([keep(), latest_per_address()]),
    st.builds(newest, st.integers(1, 100)),
    st.builds(oldest, st.integers(1, 100)),
    st.builds(expire, st.floats(0.001, 1e6)),
    st.builds(respond_within, st.floats(0.001, 1e6), st.none() | st.floats(0.01, 0.99)),
)
terms = st.builds(
    lambda absent, within_s, attempts, share: Terms(absent, within_s, attempts, *share),
    drop_policies,
    st.none() | st.floats(0.1, 1e6),
    st.none() | st.integers(1, 1_000),
    st.sampled_from([(False, False), (True, False), (True, True)]),
).map(lambda said: None if said == Terms() else said)


def event_formals(family: st.SearchStrategy[Family] = few_families) -> st.SearchStrategy[UTuple]:
    return st.builds(UTuple, ids, family, templates, st.none(), wheres, lifetimes_s, names, terms)


def command_formals(family: st.SearchStrategy[Family] = few_families) -> st.SearchStrategy[UTuple]:
    return st.builds(UTuple, ids, family, exacts, st.none(), wheres, lifetimes_s, names)


def command_actuals(family: st.SearchStrategy[Family] = few_families) -> st.SearchStrategy[UTuple]:
    return st.builds(UTuple, ids, family, templates, data, st.none(), lifetimes_s)


def utuples(family: st.SearchStrategy[Family] = few_families) -> st.SearchStrategy[UTuple]:
    """Of every kind."""
    return st.one_of(
        event_actuals(family),
        event_formals(family),
        command_formals(family),
        command_actuals(family),
    )


# ------------------------------------------------------------------- templates around a given uTuple


@st.composite
def address_near(draw: st.DrawFn, address: str) -> AddressCondition:
    """Mostly met by this address."""
    match draw(st.integers(0, 5)):
        case 0:
            return ANY
        case 1:
            return Equal(address)
        case 2:
            return OneOf((draw(addresses), address))
        case 3:
            return Prefix(address[: draw(st.integers(1, len(address)))])
        case 4:
            return Range(address, draw(st.none() | addresses.filter(lambda end: end > address)))
        case _:
            return draw(address_conditions)


@st.composite
def area_near(draw: st.DrawFn, position: Position | None) -> Area | None:
    """Any, something at random, or a box or circle that just holds (or just misses) the position."""
    if position is None:
        return draw(st.one_of(st.none(), areas))
    lat, lon = position
    match draw(st.integers(0, 4)):
        case 0:
            return None
        case 1:
            return Box(lat, lon, draw(st.sampled_from([lat, 90.0])), draw(longitudes))
        case 2:
            return Box(draw(st.sampled_from([lat, -90.0])), draw(longitudes), lat, lon)
        case 3:
            centre_lat = min(90.0, lat + draw(st.sampled_from([0.0, 0.5])))
            return Circle(centre_lat, draw(st.just(lon) | longitudes), draw(radii_m))
        case _:
            return draw(areas)


@st.composite
def span_near(draw: st.DrawFn, time_us: int) -> tuple[int | None, int | None]:
    match draw(st.integers(0, 4)):
        case 0:
            return None, None
        case 1:
            return time_us, None
        case 2:
            return (None, time_us + 1) if time_us < NOW_US * 2 else (time_us, None)
        case 3:
            return (time_us, time_us + 1) if time_us < NOW_US * 2 else (time_us, None)
        case _:
            return draw(spans_us)


@st.composite
def template_near(draw: st.DrawFn, exact: Exact) -> Template:
    span = draw(span_near(exact.time_us))
    return Template(draw(address_near(exact.address)), *span, draw(area_near(exact.position)))


@st.composite
def condition_near(draw: st.DrawFn, value: Value) -> DataCondition:
    """Mostly met by this value."""
    choice = draw(st.integers(0, 5))
    if choice == 0:
        return ANY
    if choice == 1:
        return OneOf((draw(values), value))
    if choice == 2 and is_number(value):
        high = draw(st.none() | numbers.filter(lambda end: number_key(end) > number_key(value)))
        return Range(value, high)
    if choice == 2 and isinstance(value, str):
        return Range(value, draw(st.none() | texts.filter(lambda end: end > value)))
    if choice == 3:
        return TypeIs(TYPE_NAMES[type(value)])
    if choice == 4 and is_number(value) and float(value) == value:
        return Equal(float(value))
    return draw(st.just(Equal(value)) | data_conditions)


@st.composite
def where_near(draw: st.DrawFn, actual: Mapping[str, Value]) -> dict[str, DataCondition]:
    """Conditions on some of the fields, now and then one on a field that is missing."""
    asked = (
        draw(st.lists(st.sampled_from(sorted(actual)), unique=True, max_size=2)) if actual else []
    )
    where = {name: draw(condition_near(actual[name])) for name in asked}
    if draw(st.integers(0, 3)) == 0:
        where.setdefault(draw(field_names), ABSENT)
    return where


@st.composite
def formal_near(draw: st.DrawFn, event: UTuple) -> UTuple:
    """An EF around this EA."""
    assert isinstance(event.metadata, Exact) and event.data is not None
    metadata = draw(template_near(event.metadata))
    where = draw(where_near(event.data))
    return UTuple(draw(ids), event.family, metadata, None, where, 3600.0, draw(names))


@st.composite
def command_near(draw: st.DrawFn, device: UTuple) -> UTuple:
    """A CA around this CF; its data is drawn to meet equalities and single alternatives."""
    assert isinstance(device.metadata, Exact) and device.where is not None
    metadata = draw(template_near(device.metadata))
    wanted = {name: draw(value_near(asked)) for name, asked in device.where.items()}
    met = {name: value[0] for name, value in wanted.items() if value}
    return UTuple(draw(ids), device.family, metadata, {**draw(data), **met}, None, 0.0)


@st.composite
def value_near(draw: st.DrawFn, asked: DataCondition) -> list[Value]:
    """A value that mostly meets the condition, in a list; an empty list stands for a missing field."""
    match asked:
        case Equal(value):
            return [value]
        case OneOf(alternatives):
            return [draw(st.sampled_from(alternatives))]
        case Range(low, high):
            return [low if low is not None else draw(texts if isinstance(high, str) else numbers)]
    return draw(st.one_of(st.just([]), values.map(lambda value: [value])))


# ------------------------------------------------------------------------------------ the hash space

_CORNERS = (0, 1, 2, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1)
keys = st.one_of(st.sampled_from(_CORNERS), st.integers(0, HASH_SPACE - 1))
sections = (
    st.tuples(keys, st.one_of(st.just(HASH_SPACE), keys))
    .filter(lambda ends: ends[0] != ends[1])
    .map(lambda ends: Section(min(ends), max(ends)))
)


@st.composite
def members(draw: st.DrawFn, name: str) -> Member:
    flag = draw(st.sampled_from(["on", "on", "off", "suspended"]))
    return Member(name, accumulatable=flag == "on", suspended=flag == "suspended")


@st.composite
def lines(draw: st.DrawFn) -> Line:
    """At least one member is accumulatable; any may be home. Where the home is on, some are partitioned."""
    others = draw(st.lists(names, unique=True, max_size=3))
    on = draw(names.filter(lambda name: name not in others))
    listed = [*(draw(members(name)) for name in others), Member(on)]
    line = Line(
        draw(sections), draw(st.integers(1, 2**64 - 1)), tuple(draw(st.permutations(listed)))
    )
    if line.home in line.accumulatable and draw(st.booleans()):
        line = replace(line, layout=draw(layouts_of(line)))
    return line


SERVERS = ("s1", "s2", "s3", "s4")
_DIMENSIONS = ("address", "lat", "lon", "time", "data.a", "data.b", "data.kg", "data.on")


def _bounds(dimension: str) -> st.SearchStrategy[Any]:
    by_name = {"address": addresses, "lat": latitudes, "lon": longitudes, "time": times_us}
    return by_name.get(dimension, numbers)


@st.composite
def axes(draw: st.DrawFn, dimension: str, servers: Sequence[str] = SERVERS) -> Axis:
    drawn = draw(st.lists(_bounds(dimension), max_size=4))
    cuts = sorted({in_order(bound): bound for bound in drawn}.items())
    owners = st.lists(st.sampled_from(servers), min_size=1, max_size=3, unique=True).map(tuple)
    owned = tuple(draw(owners) for _ in range(len(cuts) + 1))
    return Axis(dimension, tuple(bound for _, bound in cuts), owned)


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """One to three axes; their cuts come from the pools that uTuples come from, so that values lie on them."""
    cut = draw(st.lists(st.sampled_from(_DIMENSIONS), min_size=1, max_size=3, unique=True))
    return Layout(tuple(draw(axes(dimension)) for dimension in cut))


@st.composite
def layouts_of(draw: st.DrawFn, line: Line) -> Layout:
    """By which this line can be partitioned: the home, which is on, owns every segment."""
    cut = draw(st.lists(st.sampled_from(_DIMENSIONS), min_size=1, max_size=3, unique=True))
    drawn = [draw(axes(dimension, line.accumulatable)) for dimension in cut]
    return Layout(
        tuple(
            replace(
                axis, owners=tuple(tuple(dict.fromkeys((line.home, *own))) for own in axis.owners)
            )
            for axis in drawn
        )
    )


# --------------------------------------------------------------------------------------------- grants

family_patterns = st.builds(
    FamilyPattern,
    st.just("*") | few_families.map(lambda family: family.subject),
    st.just("*") | few_families.map(lambda family: family.type),
)
scopes: st.SearchStrategy[Scope] = st.one_of(
    st.none(), addresses.map(Equal), st.text(TEXT, max_size=3).map(Prefix)
)
identity_names = st.from_regex(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,8}", fullmatch=True)


def grants_of(name: st.SearchStrategy[str]) -> st.SearchStrategy[Grant]:
    return st.builds(
        Grant,
        name,
        st.sampled_from([role for role in Role if role is not Role.PROGRAM]),
        st.dictionaries(st.sampled_from(Action), st.lists(family_patterns, max_size=3).map(tuple)),
        scopes,
        st.none() | areas,
        st.none() | lifetimes_s,
    )


@st.composite
def grant_documents(draw: st.DrawFn) -> Grants:
    named = draw(st.lists(grants_of(identity_names), max_size=4))
    void = draw(st.dictionaries(identity_names, st.integers(0, 2**60), max_size=3))
    number = draw(st.integers(0, 2**60))
    return Grants("here", number, {grant.name: grant for grant in named}, void)


@st.composite
def grants_near(draw: st.DrawFn, utuple: UTuple) -> Grants:
    """A document that grants an application `fleet` something around this uTuple: often just it, often just not."""
    place = utuple.metadata
    scope: Scope = draw(scopes)
    area = draw(st.none() | areas)
    if isinstance(place, Exact):
        scope = draw(
            st.sampled_from([scope, Equal(place.address), Prefix(place.address[:1]), None])
        )
        area = draw(st.just(area) | area_near(place.position))
    else:
        match place.address:
            case Equal(value) | Range(str(value), _) | Prefix(value) | OneOf((value, *_)):
                near = Prefix(str(value)[: draw(st.integers(0, 3))])
                scope = draw(st.sampled_from([scope, near, None]))
        area = draw(st.sampled_from([area, place.area, None]))
    patterns = (FamilyPattern(*utuple.family), *draw(st.lists(family_patterns, max_size=1)))
    families = {Action.WATCH: patterns, Action.EMIT: patterns}
    return Grants("here").granted(
        Grant("fleet", Role.APPLICATION, families, scope, area, draw(st.none() | lifetimes_s))
    )
