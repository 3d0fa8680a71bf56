"""The guard of a program: whom it hears, which grants it takes, and that bad ones change nothing and are counted."""

from __future__ import annotations

import asyncio
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import orjson
import pytest

from utuple.errors import InvalidInput, NotAllowed, Unavailable
from utuple.runtime.trust.auditing import Auditor
from utuple.runtime.trust.exchange import GrantsExchange, GrantsFile
from utuple.runtime.trust.guard import Caller, Guard, identity_of
from utuple.runtime.trust.refusal import why_not_connected
from utuple.runtime.trust.service import TrustService
from utuple.security.authority import new_authority
from utuple.security.credentials import write_credentials
from utuple.security.folder import AuthorityFolder
from utuple.security.grants import Action, Grant, encode, family_pattern
from utuple.security.identity import Identity, Role
from utuple.security.own import OwnCredentials
from utuple.security.proofs import token_of
from utuple.security.signed import CONTENT_MAX_BYTES, Signed, signed
from utuple.transport.context import Aborted
from utuple.transport.peer import Peer
from utuple.transport.status import Status
from utuple.wire import utuple_pb2 as pb

LOAD = {Action.EMIT: (family_pattern("truck/load"),)}
FAR_US = (1 << 62) // 1_000
REGISTER, MOVE = "/utuple.v1.Server/Register", "/utuple.v1.Server/Move"


@pytest.fixture
def folder(tmp_path: Path) -> AuthorityFolder:
    made = AuthorityFolder(tmp_path / "authority")
    made.create("here")
    return made


@pytest.fixture
def guard(folder: AuthorityFolder, tmp_path: Path) -> Guard:
    path = tmp_path / "server-1.creds"
    write_credentials(path, folder.issue(Role.PROGRAM, "server-1"))
    return Guard(OwnCredentials(path), Auditor(tmp_path / "server-1.audit"))


def exchange(guard: Guard) -> GrantsExchange:
    return GrantsExchange(guard, GrantsFile(guard).keep)


def heard(guard: Guard, given: Signed) -> int:
    asyncio.run(exchange(guard).hear(given))
    return guard.grants.number


def calling(peer: Any, **shown: str) -> Any:
    """The context of a call."""
    header = lambda name: shown.get(name.removeprefix("utuple-"), "")  # noqa: E731
    return SimpleNamespace(caller=peer, identity=None, header=header)


def asked(guard: Guard, method: str, caller: Caller | None) -> grpc.StatusCode:
    context = calling(Peer(identity=caller))
    try:
        guard.authorise(method, context)
    except Aborted as refused:
        return refused.status.code
    return grpc.StatusCode.OK


def caller(role: Role, name: str, until_us: int = FAR_US, issued_us: int = FAR_US) -> Caller:
    return Caller(Identity("here", role, name, issued_us), until_us, "")


def known(folder: AuthorityFolder, which: Caller) -> Caller:
    from utuple.security.authority import common_name

    issuer = common_name(folder.read().authority.certificate_pem.decode())
    return Caller(which.identity, which.until_us, issuer)


# --- grants ------------------------------------------------------------------------------------------


def test_the_highest_number_wins_in_whatever_order_they_come(
    guard: Guard, folder: AuthorityFolder
) -> None:
    first = folder.read().signed
    _, second = folder.grant(Grant("truck-17", Role.DEVICE, LOAD), 1)
    assert heard(guard, second) == 2
    assert heard(guard, first) == 2
    assert "truck-17" in guard.grants.grants


def test_what_was_kept_is_in_force_after_a_restart(guard: Guard, folder: AuthorityFolder) -> None:
    _, given = folder.grant(Grant("truck-17", Role.DEVICE, LOAD), 1)
    heard(guard, given)
    again = Guard(guard.own, Auditor(None))
    GrantsFile(again)
    assert again.grants == guard.grants


def test_grants_that_were_edited_are_refused(guard: Guard, folder: AuthorityFolder) -> None:
    given = folder.read().signed
    form = orjson.loads(given.content)
    form["number"] = 99
    with pytest.raises(InvalidInput, match="must be signed by an authority of this cluster"):
        heard(guard, Signed(orjson.dumps(form), given.signature))
    assert guard.grants.number == 0


def test_grants_that_are_too_large_are_not_looked_into(
    guard: Guard, folder: AuthorityFolder
) -> None:
    content = b" " * CONTENT_MAX_BYTES + folder.read().signed.content
    with pytest.raises(InvalidInput, match="must be at most 33554432 bytes"):
        heard(guard, Signed(content, folder.read().authority.sign(content)))


def test_grants_signed_by_another_key_are_refused(guard: Guard, folder: AuthorityFolder) -> None:
    other = new_authority("here", time.time_ns() // 1_000)
    with pytest.raises(InvalidInput, match="must be signed"):
        heard(guard, signed(folder.read().grants, other))


def test_grants_of_another_cluster_are_refused(guard: Guard, folder: AuthorityFolder) -> None:
    authority = folder.read().authority
    content = encode(folder.read().grants).replace(b'"here"', b'"there"')
    with pytest.raises(InvalidInput, match="must be those of here"):
        heard(guard, Signed(content, authority.sign(content)))


@pytest.mark.parametrize("kept", [b"", b"{}", b"not json", b'{"content": 1, "signature": "zz"}'])
def test_kept_grants_that_are_damaged_are_passed_over(guard: Guard, kept: bytes) -> None:
    guard.own.path.with_suffix(".grants").write_bytes(kept)
    GrantsFile(guard)
    assert guard.grants.number == 0


def test_bad_grants_that_come_along_are_counted_and_change_nothing(
    guard: Guard, folder: AuthorityFolder
) -> None:
    bad = pb.SignedGrants(content=b"{}", signature=b"x")
    asyncio.run(exchange(guard).hear_if_any(pb.Heard(grants=bad)))
    guard.audit.flush()
    (line,) = guard.audit.after(0)
    why = "grants must be signed by an authority of this cluster, and not changed since"
    assert orjson.loads(line)["about"] == {f"Grants: {why}": 1}
    assert guard.grants.number == 0


def test_kept_grants_that_were_edited_are_counted(guard: Guard, folder: AuthorityFolder) -> None:
    heard(guard, folder.read().signed)
    kept = guard.own.path.with_suffix(".grants")
    kept.write_bytes(kept.read_bytes().replace(b"here", b"hare"))
    again = Guard(guard.own, Auditor(None))
    GrantsFile(again)
    again.audit.flush()
    (line,) = again.audit.after(0)
    why = "grants must be signed by an authority of this cluster, and not changed since"
    assert orjson.loads(line)["about"] == {f"kept in server-1.grants: {why}": 1}
    assert again.grants.number == 0


def test_who_publishes_older_grants_changes_nothing_and_is_counted(
    guard: Guard, folder: AuthorityFolder
) -> None:
    service = TrustService(guard, exchange(guard).hear)
    first = folder.read().signed
    _, second = folder.grant(Grant("truck-17", Role.DEVICE, LOAD), 1)
    context = calling(Peer())
    context.identity = caller(Role.OPERATOR, "ops")

    async def publish(given: Signed) -> int:
        message = pb.SignedGrants(content=given.content, signature=given.signature)
        return (await service.publish(message, context)).number

    numbers = [asyncio.run(publish(given)) for given in (first, second, second, first)]
    assert numbers == [1, 2, 2, 2]
    guard.audit.flush()
    (line,) = guard.audit.after(0)
    assert orjson.loads(line)["about"] == {"Publish: grants older than those in force": 1}
    with pytest.raises(InvalidInput):
        asyncio.run(publish(Signed(b"{}", b"x")))
    guard.audit.flush()
    (cause,) = orjson.loads(guard.audit.after(1)[0])["about"]
    assert "must be signed by an authority" in cause


def test_of_two_grants_of_one_number_the_second_hears_that_others_are_in_force(
    guard: Guard, folder: AuthorityFolder
) -> None:
    service = TrustService(guard, exchange(guard).hear)
    known = folder.read()
    one, other = (
        signed(known.grants.granted(Grant(name, Role.DEVICE, LOAD)), known.authority)
        for name in ("truck-17", "truck-18")
    )
    context = calling(Peer())
    context.identity = caller(Role.OPERATOR, "ops")

    async def publish(given: Signed) -> pb.Published:
        return await service.publish(
            pb.SignedGrants(content=given.content, signature=given.signature), context
        )

    answers = [asyncio.run(publish(given)) for given in (one, other, one)]
    assert [(answer.number, answer.others) for answer in answers] == [
        (2, False),
        (2, True),
        (2, False),
    ]


def test_grants_that_cannot_be_kept_are_in_force_all_the_same(
    guard: Guard, folder: AuthorityFolder
) -> None:
    given, at = folder.read().signed, exchange(guard)
    shutil.rmtree(guard.own.path.parent)  # as a full disk: nothing can be written there
    asyncio.run(at.hear(given))
    assert guard.signed == given


def test_older_grants_are_not_put_in_force_whoever_says_so(
    guard: Guard, folder: AuthorityFolder
) -> None:
    first = folder.read()
    _, second = folder.grant(Grant("truck-17", Role.DEVICE, LOAD), 1)
    heard(guard, second)
    guard.enforce(first.grants, first.signed)
    assert guard.grants.number == 2


def test_only_who_has_older_ones_is_offered_grants(guard: Guard, folder: AuthorityFolder) -> None:
    own = exchange(guard)
    assert own.offer(0) is None  # it has none itself
    asyncio.run(own.hear(folder.read().signed))
    assert own.offer(0) is not None
    assert own.offer(1) is None


# --- callers -----------------------------------------------------------------------------------------


def test_before_it_has_grants_a_program_hears_programs_and_operators_only(
    guard: Guard,
) -> None:
    assert asked(guard, MOVE, caller(Role.OPERATOR, "ops")) is grpc.StatusCode.OK
    assert asked(guard, REGISTER, caller(Role.DEVICE, "d")) is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    "names",
    [
        [],
        [("URI", "spiffe://here/device/a"), ("URI", "spiffe://here/device/b")],
        [("URI", "https://here/device/a")],
        [("URI", "spiffe://here/king/a")],
        [("URI", "spiffe://here/device/..")],
        [("DNS", "truck-17")],
    ],
)
def test_a_certificate_that_does_not_name_one_identity_is_nobody_s(
    guard: Guard, names: list[tuple[str, str]]
) -> None:
    certificate = {
        "subjectAltName": names,
        "serialNumber": "0F",
        "notAfter": "Jan  1 00:00:00 2040 GMT",
    }
    context = calling(SimpleNamespace(identity=None, certificate=certificate))
    with pytest.raises(Aborted) as refused:
        guard.authorise(REGISTER, context)
    assert refused.value.status.code is grpc.StatusCode.UNAUTHENTICATED
    guard.audit.flush()
    (cause,) = orjson.loads(guard.audit.after(0)[0])["about"]
    assert re.match(r"Register: (certificate|role|name|identity) must ", cause)


def test_who_is_of_another_cluster_is_refused(guard: Guard, folder: AuthorityFolder) -> None:
    heard(guard, folder.read().signed)
    other = Caller(Identity("there", Role.OPERATOR, "ops", FAR_US), FAR_US, "")
    assert asked(guard, MOVE, known(folder, other)) is grpc.StatusCode.PERMISSION_DENIED


def test_whose_certificate_has_ended_meanwhile_is_asked_to_connect_again(
    guard: Guard, folder: AuthorityFolder
) -> None:
    heard(guard, folder.read().signed)
    late = known(folder, caller(Role.OPERATOR, "ops", until_us=1))
    assert asked(guard, MOVE, late) is grpc.StatusCode.UNAVAILABLE
    assert isinstance(guard.why_void(late), Unavailable)


def test_an_authority_that_was_retired_vouches_for_nobody(
    guard: Guard, folder: AuthorityFolder
) -> None:
    before = known(folder, caller(Role.OPERATOR, "ops"))
    for given in (folder.read().signed, folder.replace_authority()):
        heard(guard, given)
    after = known(folder, caller(Role.OPERATOR, "ops"))
    assert {asked(guard, MOVE, one) for one in (before, after)} == {grpc.StatusCode.OK}
    heard(guard, folder.retire_authorities())
    assert asked(guard, MOVE, before) is grpc.StatusCode.UNAVAILABLE
    assert asked(guard, MOVE, after) is grpc.StatusCode.OK


def test_what_the_key_of_a_retired_authority_signs_counts_no_longer(
    guard: Guard, folder: AuthorityFolder
) -> None:
    """Grants with a higher number, and an authority below it that has the new one's name; the credentials came with both."""
    old = folder.read().authority
    heard(guard, folder.replace_authority())
    write_credentials(guard.own.path, folder.issue(Role.PROGRAM, "server-1"))
    guard.own._looked_s = 0.0  # a second later
    assert len(guard.own.held.credentials.authorities_pem) == 2
    heard(guard, folder.retire_authorities())
    forged = replace(folder.read().grants, number=99)
    with pytest.raises(InvalidInput, match="must be signed by an authority of this cluster"):
        heard(guard, signed(forged, old))
    new = folder.read().authority.certificate_pem.decode()
    assert guard.own.authorities_pem == (new,)
    assert guard.own.trusting.authorities_pem == (new,)


def test_who_was_away_while_the_authority_was_replaced_goes_by_newer_credentials(
    guard: Guard, folder: AuthorityFolder
) -> None:
    heard(guard, folder.read().signed)
    folder.replace_authority()
    retired = folder.retire_authorities()
    with pytest.raises(InvalidInput, match="must be signed"):
        heard(guard, retired)
    write_credentials(guard.own.path, folder.issue(Role.PROGRAM, "server-1"))
    guard.own._looked_s = 0.0
    assert guard.own.held.credentials.authorities_pem == guard.own.authorities_pem[1:]
    assert heard(guard, retired) == 3
    assert len(guard.own.authorities_pem) == 1


def test_who_is_revoked_is_void_and_new_credentials_are_not(
    guard: Guard, folder: AuthorityFolder
) -> None:
    folder.grant(Grant("truck-17", Role.DEVICE, LOAD), 1)
    heard(guard, folder.revoke("truck-17"))
    _, again = folder.grant(Grant("truck-17", Role.DEVICE, LOAD), 1)
    heard(guard, again)
    old = known(folder, caller(Role.DEVICE, "truck-17", issued_us=1))
    new = known(folder, caller(Role.DEVICE, "truck-17"))
    assert isinstance(guard.why_void(old), NotAllowed)
    assert guard.why_void(new) is None


def test_an_audit_that_does_not_hold_is_set_aside_and_the_next_one_says_so(tmp_path: Path) -> None:
    path = tmp_path / "x.audit"
    auditor = Auditor(path)
    auditor.note("me", "grant", {"name": "a"})
    path.write_bytes(path.read_bytes().replace(b'"a"', b'"b"'))
    (line,) = Auditor(path).after(0)
    assert orjson.loads(line)["what"] == "broken"
    assert "its hash is not that" in orjson.loads(line)["about"]["why"]
    assert len(list(tmp_path.glob("x.audit.broken-*"))) == 1
    assert Auditor(path).head.number == 1  # the new one goes on


def test_refusals_of_ever_more_kinds_are_counted_together(tmp_path: Path) -> None:
    auditor = Auditor(None)
    for number in range(5_000):
        auditor.refused(f"who-{number}", "Register", "NotAllowed")
    auditor.flush()
    assert len(auditor.after(0)) <= 1_000
    assert auditor.head.number <= 1_001


def test_where_nothing_is_secured_nobody_is_known() -> None:
    assert identity_of(calling(Peer())) is None


# --- doors -------------------------------------------------------------------------------------------


def through_door(
    guard: Guard, folder: AuthorityFolder, method: str, **shown: str
) -> tuple[grpc.StatusCode, str, Any]:
    """What becomes of a call that the door http-1 makes."""
    context = calling(Peer(identity=known(folder, caller(Role.DOOR, "http-1"))), **shown)
    try:
        guard.authorise(method, context)
    except Aborted as refused:
        return refused.status.code, refused.status.details, context
    return grpc.StatusCode.OK, "", context


@pytest.fixture
def token(guard: Guard, folder: AuthorityFolder) -> str:
    """Of dispatch; the door has its grant."""
    folder.grant(Grant("http-1", Role.DOOR), 1)
    watch = {Action.WATCH: (family_pattern("truck/load"),)}
    credentials, document = folder.grant(Grant("dispatch", Role.APPLICATION, watch), 1)
    heard(guard, document)
    return token_of(credentials, time.time_ns() // 1_000)


def test_through_a_door_the_caller_is_who_has_signed_the_token(
    guard: Guard, folder: AuthorityFolder, token: str
) -> None:
    code, _, context = through_door(guard, folder, REGISTER, token=token)
    assert code is grpc.StatusCode.OK
    assert str(identity_of(context)) == "dispatch (application)"
    code, why, _ = through_door(guard, folder, MOVE, token=token)
    assert code is grpc.StatusCode.PERMISSION_DENIED
    assert "dispatch (application) may not call Server/Move" in why


def test_a_token_that_ends_or_is_revoked_is_void_for_good_and_the_door_is_not(
    guard: Guard, folder: AuthorityFolder, token: str
) -> None:
    _, _, context = through_door(guard, folder, REGISTER, token=token)
    spoken_for, door = context.identity, context.caller.identity
    assert guard.why_void(spoken_for) is None
    late = replace(spoken_for, until_us=1)
    assert "the token of dispatch (application) ended 1970" in str(guard.why_void(late))
    assert isinstance(guard.why_void(late), NotAllowed)
    heard(guard, folder.revoke("dispatch"))
    assert "were revoked" in str(guard.why_void(spoken_for))
    assert guard.why_void(door) is None


def test_a_door_shows_a_token_of_another_cluster_in_vain_and_that_is_counted(
    guard: Guard, folder: AuthorityFolder, token: str
) -> None:
    elsewhere = new_authority("here", time.time_ns() // 1_000)
    identity = Identity("here", Role.APPLICATION, "dispatch", time.time_ns() // 1_000)
    forged = token_of(elsewhere.issue(identity, 1), identity.issued_us)
    code, why, _ = through_door(guard, folder, REGISTER, token=forged)
    assert code is grpc.StatusCode.PERMISSION_DENIED
    assert "the token is of another cluster" in why
    guard.audit.flush()
    entry = orjson.loads(guard.audit.after(0)[-1])
    assert (entry["who"], entry["about"]) == (
        "spiffe://here/door/http-1",
        {"Register: NotAllowed": 1},
    )


def test_whoever_shows_a_token_and_is_no_door_is_refused(
    guard: Guard, folder: AuthorityFolder, token: str
) -> None:
    for role in (Role.PROGRAM, Role.OPERATOR, Role.APPLICATION):
        context = calling(Peer(identity=known(folder, caller(role, "http-1"))), token=token)
        with pytest.raises(Aborted, match="it is no door"):
            guard.authorise(REGISTER, context)


def test_a_door_shows_a_token_or_a_certificate(
    guard: Guard, folder: AuthorityFolder, token: str
) -> None:
    code, why, _ = through_door(guard, folder, REGISTER, token=token, certificate="x")
    assert (code, why) == (
        grpc.StatusCode.PERMISSION_DENIED,
        "a token and a certificate: it must be one of them",
    )


def test_a_token_of_an_authority_that_was_retired_is_void_for_good(
    guard: Guard, folder: AuthorityFolder, token: str
) -> None:
    """To connect again would not help who came through a door: a newer token would."""
    _, _, context = through_door(guard, folder, REGISTER, token=token)
    for given in (folder.replace_authority(), folder.retire_authorities()):
        heard(guard, given)
    error = guard.why_void(context.identity)
    assert isinstance(error, NotAllowed) and "newer ones are needed" in str(error)


# --- open calls --------------------------------------------------------------------------------------


class Calls:
    """A server with one connection for each peer, and the calls that are open on them."""

    def __init__(self, *open_calls: Any) -> None:
        self.open_calls = list(open_calls)
        self.left: list[Peer] = []
        self.connections = [
            SimpleNamespace(peer=peer, is_leaving=False, leave=partial(self.left.append, peer))
            for peer in {id(call.caller): call.caller for call in open_calls}.values()
        ]
        self.ended: list[Any] = []

    def end_calls(self, chosen: Callable[[Any], bool], status: Status) -> None:
        self.ended += [call for call in self.open_calls if chosen(call)]


def opened(identity: Caller, peer: Peer | None = None) -> Any:
    context = calling(peer or Peer(identity=identity))
    context.identity = identity
    return context


def test_the_calls_of_who_is_void_end_and_those_of_others_go_on(
    guard: Guard, folder: AuthorityFolder
) -> None:
    for name in ("truck-17", "truck-18"):
        folder.grant(Grant(name, Role.DEVICE, LOAD), 1)
    heard(guard, folder.revoke("truck-17"))
    gone, other = (
        opened(known(folder, caller(Role.DEVICE, name, issued_us=1)))
        for name in ("truck-17", "truck-18")
    )
    nobody = calling(Peer())  # who has not said yet who he is
    server: Any = Calls(gone, other, nobody)
    guard.end_void_calls(server)
    assert server.ended == [gone]
    assert server.left == [gone.caller]


def test_of_those_who_came_through_a_door_only_the_calls_of_who_is_void_end(
    guard: Guard, folder: AuthorityFolder, token: str
) -> None:
    _, _, context = through_door(guard, folder, REGISTER, token=token)
    door = context.caller
    other = replace(context.identity, identity=Identity("here", Role.APPLICATION, "other", FAR_US))
    _, document = folder.grant(Grant("other", Role.APPLICATION, LOAD), 1)
    heard(guard, document)
    heard(guard, folder.revoke("dispatch"))
    doors_own = opened(door.identity, door)
    server: Any = Calls(context, opened(other, door), doors_own)
    guard.end_void_calls(server)
    assert (server.ended, server.left) == ([context], [])


# --- words for who is refused in the handshake ---------------------------------------------------------


@pytest.mark.parametrize(
    ("days_off", "failure", "why"),
    [
        (0, "[SSL: SSLV3_ALERT_BAD_CERTIFICATE]", "by its clock they do not hold yet"),
        (0, "[SSL: SSLV3_ALERT_CERTIFICATE_EXPIRED]", "yours by its clock, has ended"),
        (0, "[SSL: TLSV1_ALERT_UNKNOWN_CA]", "are of different clusters"),
        (2, "[SSL: SSLV3_ALERT_BAD_CERTIFICATE]", r"hold only from 20.* on; compare the clocks"),
        (-2, "[SSL: SSLV3_ALERT_CERTIFICATE_EXPIRED]", r"ended 20.* UTC; ask an operator"),
    ],
)
def test_whose_certificate_does_not_hold_now_is_told_so(
    folder: AuthorityFolder, tmp_path: Path, days_off: int, failure: str, why: str
) -> None:
    authority = folder.read().authority
    issued_us = time.time_ns() // 1_000 + days_off * 86_400_000_000
    path = tmp_path / "truck-17.creds"
    write_credentials(
        path, authority.issue(Identity("here", Role.DEVICE, "truck-17"), 1, now_us=issued_us)
    )
    channel: Any = SimpleNamespace(failure=failure)
    assert re.search(why, str(why_not_connected(channel, "there:1", OwnCredentials(path))))
