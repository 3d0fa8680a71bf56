"""The table of rights: it has every call of the protocol, and nothing else; and each call goes by role."""

from __future__ import annotations

import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from utuple.security.calls import CALLS, Through, allow_call
from utuple.security.grants import Grant, Grants
from utuple.security.identity import Identity, Role
from utuple.wire import utuple_pb2 as pb

METHODS = sorted(
    f"{service.name}/{method.name}"
    for described in (pb.DESCRIPTOR, health_pb2.DESCRIPTOR, reflection_pb2.DESCRIPTOR)
    for service in described.services_by_name.values()
    for method in service.methods
)
GRANTS = (
    Grants("here")
    .granted(Grant("dev", Role.DEVICE))
    .granted(Grant("app", Role.APPLICATION))
    .granted(Grant("http-1", Role.DOOR))
)
WHO = {
    Role.DEVICE: Identity("here", Role.DEVICE, "dev"),
    Role.APPLICATION: Identity("here", Role.APPLICATION, "app"),
    Role.OPERATOR: Identity("here", Role.OPERATOR, "ops"),
    Role.PROGRAM: Identity("here", Role.PROGRAM, "server-1"),
    Role.DOOR: Identity("here", Role.DOOR, "http-1"),
}
DOOR = WHO[Role.DOOR]


def test_every_call_of_the_protocol_is_in_the_table_and_no_other() -> None:
    assert sorted(CALLS) == METHODS


@pytest.mark.parametrize("method", METHODS)
def test_a_call_is_for_the_roles_of_the_table(method: str) -> None:
    for role, identity in WHO.items():
        verdict = allow_call(GRANTS, identity, f"/utuple.v1.{method}")
        assert verdict.is_allowed == (role in CALLS[method].roles), (role, verdict.reason)


def test_programs_register_and_read_nothing() -> None:
    assert all(Role.PROGRAM not in rule.roles for rule in CALLS.values() if rule.is_judged)


def test_a_call_that_is_in_no_table_may_be_made_by_nobody() -> None:
    for identity in WHO.values():
        assert "no table" in allow_call(GRANTS, identity, "/utuple.v1.Server/Explode").reason


def test_whoever_is_revoked_may_not_even_ask_where_a_key_is() -> None:
    revoked = GRANTS.revoked("app", 10)
    verdict = allow_call(revoked, WHO[Role.APPLICATION], "/utuple.v1.Assignment/Lookup")
    assert "were revoked" in verdict.reason


def test_a_revoked_operator_may_do_nothing_either() -> None:
    verdict = allow_call(GRANTS.revoked("ops", 10), WHO[Role.OPERATOR], "/utuple.v1.Server/Move")
    assert "were revoked" in verdict.reason


# --- through a door ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("by_token", [True, False])
def test_through_a_door_one_may_call_what_one_may_anyhow_and_nothing_more(
    method: str, by_token: bool
) -> None:
    for identity in WHO.values():
        called = f"/utuple.v1.{method}"
        there = allow_call(GRANTS, identity, called, Through(DOOR, by_token))
        assert not there.is_allowed or allow_call(GRANTS, identity, called).is_allowed


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("by_token", [True, False])
def test_a_door_speaks_for_people_and_for_an_operator_by_a_token_only(
    role: Role, by_token: bool
) -> None:
    verdict = allow_call(GRANTS, WHO[role], "/utuple.v1.Trust/Whoami", Through(DOOR, by_token))
    spoken_for = {Role.DEVICE, Role.APPLICATION} | ({Role.OPERATOR} if by_token else set())
    assert verdict.is_allowed == (role in spoken_for), verdict.reason


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.DOOR])
def test_whoever_is_no_door_speaks_for_nobody(role: Role) -> None:
    for whom in WHO.values():
        through = Through(WHO[role], by_token=True)
        verdict = allow_call(GRANTS, whom, "/utuple.v1.Server/Register", through)
        assert "it is no door" in verdict.reason


def test_a_door_that_is_not_granted_or_was_revoked_speaks_for_nobody() -> None:
    through, app = Through(DOOR, by_token=True), WHO[Role.APPLICATION]
    called = "/utuple.v1.Server/Register"
    assert "were revoked" in allow_call(GRANTS.revoked("http-1", 10), app, called, through).reason
    other = Through(Identity("here", Role.DOOR, "http-2"), by_token=True)
    assert "has no grant" in allow_call(GRANTS, app, called, other).reason
