"""The rules of law 8, each with a switch that turns it off: nothing is registered or delivered without a grant, and grants with an
old number change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from tests.replacing import replaced
from tests.virtual.serving_mutants import Mutant
from utuple.model.columns import Columns
from utuple.model.packed import Packed
from utuple.runtime.trust.guard import Guard
from utuple.security.grants import Grants
from utuple.security.identity import Identity
from utuple.security.signed import Signed, verified
from utuple.server.delivering.rights import StreamRights
from utuple.server.judging import Judge, ReaderOf
from utuple.server.moving.notes import GRANTS, encode_grants
from utuple.server.moving.state import MoveState
from utuple.server.moving.steps import DONE, HearGrants, Outcome
from utuple.server.writing.request import Request
from utuple.server.writing.transaction import Draft


def what_is_registered_is_not_judged() -> AbstractContextManager[None]:
    def as_it_is(self: Judge, request: Request, caller: Identity, reader_of: ReaderOf) -> Request:
        return request

    return replaced(Judge, "judged", as_it_is)


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


TRUST: dict[str, Mutant] = {
    one.__name__.replace("_", " "): one
    for one in (
        what_is_registered_is_not_judged,
        what_is_delivered_is_not_judged,
        grants_with_an_old_number_are_taken,
    )
}
