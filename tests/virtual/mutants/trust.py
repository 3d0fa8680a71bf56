"""The rules of law 8, each with a switch that turns it off: nothing is registered or delivered without a grant, grants with an
old number change nothing, and a door speaks only for who has proved to it who he is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from cryptography import x509

from tests.replacing import replaced
from tests.virtual.mutants.serving import Mutant
from utuple.model.columns import Columns
from utuple.model.packed import Packed
from utuple.runtime.trust.guard import Caller, Guard
from utuple.security import calls, proofs
from utuple.security.calls import Through
from utuple.security.grants import Grants
from utuple.security.identity import Identity
from utuple.security.rights import ALLOWED, Verdict
from utuple.security.signed import Signed, verified
from utuple.server import judging
from utuple.server.delivering.rights import StreamRights
from utuple.server.judging import Judge
from utuple.server.moving.notes import GRANTS, encode_grants
from utuple.server.moving.state import MoveState
from utuple.server.moving.steps import DONE, HearGrants, Outcome
from utuple.server.writing.conflicts import Owners
from utuple.server.writing.request import Part, Refusal, Request
from utuple.server.writing.transaction import Draft


def what_is_registered_is_not_judged() -> AbstractContextManager[None]:
    def as_it_is(self: Judge, request: Request, caller: Identity) -> Request:
        return request

    return replaced(Judge, "judged", as_it_is)


def whoever_knows_an_id_may_cancel_it() -> AbstractContextManager[None]:
    def never(self: Owners, request: Request, part: Part, row: int, id_: bytes) -> Refusal | None:
        return None

    return replaced(Owners, "refusal", never)


def whoever_comes_first_under_a_named_id_has_it() -> AbstractContextManager[None]:
    def anybody(caller: Identity, id_: bytes) -> Verdict:
        return ALLOWED

    return replaced(judging, "may_come_under", anybody)


def what_is_delivered_is_not_judged() -> AbstractContextManager[None]:
    """Neither when a reader attaches nor when other grants are in force."""

    def nothing(self: StreamRights, stream: int, of: Packed | Columns) -> str:
        return ""

    return replaced(StreamRights, "_why_not", nothing)


@contextmanager
def grants_with_an_old_number_are_taken() -> Iterator[None]:
    def any_(self: Guard, given: Signed) -> Grants | None:
        return verified(given, self.own.identity.cluster, self.own.authorities_pem)

    def enforce(self: Guard, grants: Grants, given: Signed) -> None:
        self.grants, self.signed = grants, given
        for tell in self.when_changed:
            tell()

    def hear(self: MoveState, step: HearGrants, draft: Draft) -> Outcome:
        draft.notes[GRANTS] = encode_grants(step.number, step.body)
        return DONE

    with (
        replaced(Guard, "newer", any_),
        replaced(Guard, "enforce", enforce),
        replaced(MoveState, "hear_grants", hear),
    ):
        yield


def a_token_s_signature_is_not_checked() -> AbstractContextManager[None]:
    def yes(certificate: x509.Certificate, content: bytes, signature: bytes) -> bool:
        return True

    return replaced(proofs, "_has_signed", yes)


def any_authority_is_as_good_as_another() -> AbstractContextManager[None]:
    def yes(authority_pem: str, certificate: x509.Certificate) -> bool:
        return True

    return replaced(proofs, "_has_issued", yes)


def whoever_shows_a_proof_may_speak() -> AbstractContextManager[None]:
    """Also one that is no door, one that is not granted, and for operators whose certificate a door has met."""

    def yes(grants: Grants, through: Through, whom: Identity) -> Verdict:
        return ALLOWED

    return replaced(calls, "_may_speak", yes)


def a_door_is_heard_instead_of_its_guest() -> AbstractContextManager[None]:
    def itself(self: Guard, door: Caller, token: str, certificate: str = "") -> Caller:
        return door

    return replaced(Guard, "spoken_for", itself)


def durable_grants_are_in_force_only_if_whoever_brought_them_still_waits() -> (
    AbstractContextManager[None]
):
    """A revocation whose bearer was cut off during the commit has no effect until a restart."""

    def nothing(self: Judge, notes: Mapping[str, bytes | None]) -> None:
        pass

    return replaced(Judge, "committed", nothing)


TRUST: dict[str, Mutant] = {
    one.__name__.replace("_", " "): one
    for one in (
        what_is_registered_is_not_judged,
        whoever_knows_an_id_may_cancel_it,
        whoever_comes_first_under_a_named_id_has_it,
        what_is_delivered_is_not_judged,
        grants_with_an_old_number_are_taken,
        a_token_s_signature_is_not_checked,
        any_authority_is_as_good_as_another,
        whoever_shows_a_proof_may_speak,
        a_door_is_heard_instead_of_its_guest,
        durable_grants_are_in_force_only_if_whoever_brought_them_still_waits,
    )
}
