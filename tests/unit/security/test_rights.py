"""Law 8, default deny: what the judge allows, and that a template it allows can match nothing it would not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.strategies import event_actuals, event_formals, formal_near, grants_near
from utuple.model.area import Box, Circle
from utuple.model.columns import columns_of
from utuple.model.condition import ANY, Equal, OneOf, Prefix, Range
from utuple.model.match import matches
from utuple.model.utuple import Exact, Family, Template, UTuple
from utuple.security.grants import Action, FamilyPattern, Grant, Grants
from utuple.security.identity import Identity, Role
from utuple.security.rights import allow, allow_rows, valid

LOAD = Family("truck", "load")
PATTERN = (FamilyPattern("truck", "load"),)
TRUCK = Identity("here", Role.DEVICE, "truck-17", 100)
FLEET = Identity("here", Role.APPLICATION, "fleet", 100)
AS_TRUCK = Exact("truck-17", 0)


def granting(grant: Grant) -> Grants:
    return Grants("here").granted(grant)


DEVICE = granting(Grant("truck-17", Role.DEVICE, {Action.EMIT: PATTERN, Action.SERVE: PATTERN}))
PREFIXED = granting(Grant("fleet", Role.APPLICATION, {Action.WATCH: PATTERN}, Prefix("truck-")))


def test_a_device_speaks_for_its_own_address() -> None:
    assert allow(DEVICE, TRUCK, Action.EMIT, LOAD, AS_TRUCK).is_allowed
    other = allow(DEVICE, TRUCK, Action.EMIT, LOAD, Exact("truck-18", 0))
    assert other.reason == (
        "truck-17 (device) may not emit for truck-18; "
        "it may emit truck/load as truck-17; serve truck/load as truck-17"
    )


def test_nothing_is_allowed_without_a_grant() -> None:
    empty = Grants("here")
    for identity in (
        TRUCK,
        FLEET,
        Identity("here", Role.OPERATOR, "ops"),
        Identity("here", Role.PROGRAM, "server-1"),
    ):
        for action in Action:
            assert not allow(empty, identity, action, LOAD, AS_TRUCK).is_allowed


def test_a_grant_of_another_role_is_none() -> None:
    assert not valid(DEVICE, replace(TRUCK, role=Role.APPLICATION)).is_allowed


def test_another_cluster_is_refused() -> None:
    assert "belongs to cluster there" in valid(DEVICE, replace(TRUCK, cluster="there")).reason


def test_what_was_issued_before_a_revocation_is_void_and_what_is_issued_after_a_new_grant_is_not() -> (
    None
):
    again = DEVICE.revoked("truck-17", 200).granted(DEVICE.grants["truck-17"])
    assert "revoked" in allow(again, TRUCK, Action.EMIT, LOAD, AS_TRUCK).reason
    assert allow(again, replace(TRUCK, issued_us=200), Action.EMIT, LOAD, AS_TRUCK).is_allowed


def test_a_batch_of_who_was_revoked_is_refused_though_his_name_was_granted_anew() -> None:
    again = DEVICE.revoked("truck-17", 200).granted(DEVICE.grants["truck-17"])
    rows = columns_of([UTuple(b"i" * 16, LOAD, AS_TRUCK, {}, None, 60)] * 2)
    assert set(allow_rows(again, TRUCK, Action.EMIT, rows)) == {0, 1}
    assert allow_rows(again, replace(TRUCK, issued_us=200), Action.EMIT, rows) == {}


def test_an_operator_that_is_revoked_is_not_heard() -> None:
    operator = Identity("here", Role.OPERATOR, "ops", 100)
    assert valid(Grants("here"), operator).is_allowed
    assert not valid(Grants("here").revoked("ops", 101), operator).is_allowed


@pytest.mark.parametrize(
    ("address", "is_allowed"),
    [
        (Equal("truck-17"), True),
        (Equal("bus-1"), False),
        (OneOf(("truck-1", "truck-2")), True),
        (OneOf(("truck-1", "bus-2")), False),
        (Prefix("truck-1"), True),
        (Prefix("tru"), False),
        (Range("truck-", "truck-9"), True),
        (Range("truck-", "truck."), True),
        (Range("truck-", "truck.1"), False),
        (Range("truck-", None), False),
        (Range(None, "truck-9"), False),
        (ANY, False),
    ],
    ids=repr,
)
def test_a_template_lies_within_the_grants_prefix(address: object, is_allowed: bool) -> None:
    template = Template(address=address)  # type: ignore[arg-type]  # one of the conditions on an address
    assert allow(PREFIXED, FLEET, Action.WATCH, LOAD, template).is_allowed == is_allowed


AREA = Box(35.0, 139.0, 36.0, 140.0)
IN_AREA = granting(
    Grant("fleet", Role.APPLICATION, {Action.WATCH: PATTERN, Action.EMIT: PATTERN}, area=AREA)
)
FIJI = granting(
    Grant("fleet", Role.APPLICATION, {Action.WATCH: PATTERN}, area=Box(-20.0, 175.0, -10.0, -175.0))
)
ROUND = granting(
    Grant("fleet", Role.APPLICATION, {Action.WATCH: PATTERN}, area=Circle(35.5, 139.5, 10_000.0))
)


@pytest.mark.parametrize(
    ("grants", "area", "is_allowed"),
    [
        (IN_AREA, AREA, True),
        (IN_AREA, Box(35.0, 139.0, 36.0, 140.1), False),
        (IN_AREA, Box(35.5, 139.9, 35.6, 139.1), False),
        (IN_AREA, Circle(35.5, 139.5, 1_000.0), True),
        (IN_AREA, Circle(35.5, 139.5, 100_000.0), False),
        (IN_AREA, None, False),
        (FIJI, Box(-15.0, 176.0, -14.0, 177.0), True),
        (FIJI, Box(-15.0, -177.0, -14.0, -176.0), True),
        (FIJI, Box(-15.0, 176.0, -14.0, -176.0), True),
        (FIJI, Box(-15.0, -177.0, -14.0, 177.0), False),
        (ROUND, Circle(35.5, 139.5, 9_999.0), True),
        (ROUND, Circle(35.5, 139.5, 10_000.0), True),
        (ROUND, Circle(35.55, 139.5, 9_000.0), False),
        (ROUND, Box(35.47, 139.47, 35.53, 139.53), True),
        (ROUND, AREA, False),
    ],
    ids=repr,
)
def test_a_template_lies_within_the_grants_area(
    grants: Grants, area: object, is_allowed: bool
) -> None:
    template = Template(area=area)  # type: ignore[arg-type]  # an area or None
    assert allow(grants, FLEET, Action.WATCH, LOAD, template).is_allowed == is_allowed


def test_an_event_lies_in_the_grants_area_and_one_without_a_position_does_not() -> None:
    assert allow(IN_AREA, FLEET, Action.EMIT, LOAD, Exact("a", 0, (35.5, 139.5))).is_allowed
    assert not allow(IN_AREA, FLEET, Action.EMIT, LOAD, Exact("a", 0, (34.5, 139.5))).is_allowed
    assert not allow(IN_AREA, FLEET, Action.EMIT, LOAD, Exact("a", 0)).is_allowed


def test_the_longest_lifetime_is_a_limit() -> None:
    grants = granting(Grant("truck-17", Role.DEVICE, {Action.EMIT: PATTERN}, max_lifetime_s=60.0))
    assert allow(grants, TRUCK, Action.EMIT, LOAD, AS_TRUCK, 60.0).is_allowed
    assert "a lifetime of 61 s" in allow(grants, TRUCK, Action.EMIT, LOAD, AS_TRUCK, 61.0).reason


@given(st.data())
def test_what_an_allowed_template_matches_could_be_seen_by_itself(data: st.DataObject) -> None:
    """The law: if a watch is allowed, every event it matches lies within the grant."""
    event = data.draw(event_actuals())
    formal = data.draw(st.one_of(formal_near(event), event_formals()))
    grants = data.draw(grants_near(formal))
    identity = Identity(grants.cluster, Role.APPLICATION, "fleet", 1)
    assert isinstance(event.metadata, Exact)
    assert isinstance(formal.metadata, Template)
    assume(matches(event, formal))
    assume(allow(grants, identity, Action.WATCH, formal.family, formal.metadata).is_allowed)
    assert allow(grants, identity, Action.WATCH, event.family, event.metadata).is_allowed


@given(st.data(), st.lists(event_actuals(), min_size=1, max_size=6))
def test_a_batch_is_judged_as_each_of_its_rows_is(
    data: st.DataObject, events: list[UTuple]
) -> None:
    grants = data.draw(grants_near(events[0]))
    identity = Identity(grants.cluster, Role.APPLICATION, "fleet", 1)
    one_by_one = {
        row
        for row, event in enumerate(events)
        if isinstance(event.metadata, Exact)
        and not allow(
            grants, identity, Action.EMIT, event.family, event.metadata, event.lifetime_s
        ).is_allowed
    }
    assert allow_rows(grants, identity, Action.EMIT, columns_of(events)).keys() == one_by_one
