"""Fair shares of a uTupleServer: who is over a limit is told its name and when to come again; others do not notice."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from utuple.errors import InvalidInput, Overloaded
from utuple.model.columns import columns_of
from utuple.model.condition import Equal, Where
from utuple.model.packed import packed
from utuple.model.utuple import Exact, Family, Template, UTuple
from utuple.server.sharing import FairShares, ShareLimits
from utuple.server.writing.request import Request

LOAD = Family("truck", "load")


def events(count: int, lifetime_s: float = 60.0, kg: int = 1) -> Request:
    return Request(
        events=columns_of(
            UTuple(bytes([at, *bytes(15)]), LOAD, Exact("t", 0), {"kg": kg}, None, lifetime_s, None)
            for at in range(count)
        )
    )


def formals(*ids: int, conditions: int = 0) -> Request:
    where: Where = {f"f{at}": Equal(at) for at in range(conditions)}
    made = [
        UTuple(bytes([one, *bytes(15)]), LOAD, Template(), None, where, 60.0, "me") for one in ids
    ]
    return Request(templates=[(row, packed(one)) for row, one in enumerate(made)])


def devices(*ids: int, lifetime_s: float = 60.0) -> Request:
    made = [
        UTuple(bytes([one, *bytes(15)]), LOAD, Exact("t", 0), None, {}, lifetime_s, "me")
        for one in ids
    ]
    return Request(devices=columns_of(made))


def shares(kept: set[int] | None = None, **limits: Any) -> FairShares:
    known = set(range(256)) if kept is None else kept
    return FairShares(ShareLimits(**limits), lambda formal: formal[0] in known)


def over(refused: pytest.ExceptionInfo[Overloaded], name: str) -> float:
    assert name in str(refused.value)
    assert "try again after" in str(refused.value)
    return refused.value.retry_after_s


def test_who_registers_too_much_a_second_is_told_when_to_come_again() -> None:
    own = shares(share_registrations_per_s=10)
    own.admit("a", events(20), 0, 0.0)
    with pytest.raises(Overloaded) as refused:
        own.admit("a", events(5), 0, 0.0)
    wait_s = over(refused, "share_registrations_per_s")
    own.admit("b", events(5), 0, 0.0)
    own.admit("a", events(5), 0, wait_s + 0.001)


@pytest.mark.parametrize("rows", [1, 5])
def test_who_is_over_is_refused_before_it_is_decoded_what_he_wants(rows: int) -> None:
    """Also if there is room, but not for as much as he wants."""
    own = shares(share_registrations_per_s=10)
    own.check("a", rows, 0.0)
    own.admit("a", events(20 + 1 - rows), 0, 0.0)
    with pytest.raises(Overloaded) as refused:
        own.check("a", rows, 0.0)
    wait_s = over(refused, "share_registrations_per_s")
    assert own.wait_s("a", rows, 0.0) == wait_s == pytest.approx(0.1)
    own.check("b", rows, 0.0)
    own.check("a", rows, wait_s)
    own.admit("a", events(rows), 0, wait_s)


def test_efs_that_are_gone_are_not_counted() -> None:
    kept = {1, 2}
    own = shares(kept, share_efs=2)
    own.admit("a", formals(1, 2), 0, 0.0)
    own.admit("a", formals(1, 2), 0, 0.0)  # the same again
    with pytest.raises(Overloaded) as refused:
        own.admit("a", formals(3), 0, 0.0)
    over(refused, "share_efs")
    kept.remove(1)
    own.admit("a", formals(3), 0, 0.0)


def test_cfs_count_until_they_expire() -> None:
    own = shares(share_cfs=2)
    own.admit("a", devices(1, 2), 0, 0.0)
    with pytest.raises(Overloaded) as refused:
        own.admit("a", devices(3), 0, 59.0)
    over(refused, "share_cfs")
    own.admit("a", devices(3), 0, 61.0)


def test_stored_bytes_count_until_they_expire() -> None:
    own = shares(share_stored_bytes=10_000)
    own.admit("a", events(1), 9_000, 0.0)
    with pytest.raises(Overloaded) as refused:
        own.admit("a", events(1), 9_000, 0.0)
    over(refused, "share_stored_bytes")
    own.admit("a", events(1, lifetime_s=0), 9_000, 0.0)
    own.admit("a", events(1), 9_000, 3 * 3_600.0)


def test_streams_count_while_they_are_open() -> None:
    own = shares(share_streams=1)
    with own.stream("a"), own.stream("b"):
        with pytest.raises(Overloaded) as refused, own.stream("a"):
            pass
        over(refused, "share_streams")
    with own.stream("a"):
        pass


@pytest.mark.parametrize(
    ("limits", "request_"),
    [
        ({"share_batch_rows": 1}, events(2)),
        ({"share_payload_bytes": 5}, events(1)),
        ({"share_lifetime_s": 30}, events(1)),
        ({"share_lifetime_s": 30}, devices(1)),
        ({"share_lifetime_s": 30}, formals(1)),
        ({"share_conditions": 1}, formals(1, conditions=2)),
    ],
)
def test_what_is_too_large_for_anybody_is_refused_with_the_limit_s_name(
    limits: dict[str, Any], request_: Request
) -> None:
    with pytest.raises(InvalidInput, match=next(iter(limits))):
        shares(**limits).admit("a", request_, 0, 0.0)


@pytest.mark.parametrize("name", [field.name for field in fields(ShareLimits)])
def test_a_share_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        ShareLimits(**{name: 0})
