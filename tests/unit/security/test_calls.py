"""The table of rights: it has every call of the protocol, and nothing else; and each call goes by role."""

from __future__ import annotations

import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from utuple.security.calls import CALLS, allow_call
from utuple.security.grants import Grant, Grants
from utuple.security.identity import Identity, Role
from utuple.wire import utuple_pb2 as pb

METHODS = sorted(
    f"{service.name}/{method.name}"
    for described in (pb.DESCRIPTOR, health_pb2.DESCRIPTOR, reflection_pb2.DESCRIPTOR)
    for service in described.services_by_name.values()
    for method in service.methods
)
GRANTS = Grants("here").granted(Grant("dev", Role.DEVICE)).granted(Grant("app", Role.APPLICATION))
WHO = {
    Role.DEVICE: Identity("here", Role.DEVICE, "dev"),
    Role.APPLICATION: Identity("here", Role.APPLICATION, "app"),
    Role.OPERATOR: Identity("here", Role.OPERATOR, "ops"),
    Role.PROGRAM: Identity("here", Role.PROGRAM, "server-1"),
}


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
