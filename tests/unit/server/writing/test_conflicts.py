"""A reader's name stands for one reading of a family."""

from __future__ import annotations

from dataclasses import replace

import pytest

from utuple.model.condition import Equal, at_least
from utuple.model.identity import named_id, uuid7
from utuple.model.packed import packed
from utuple.model.terms import Terms, newest
from utuple.model.utuple import Family, Template, UTuple
from utuple.server.matching.index import TemplateIndex
from utuple.server.writing.conflicts import conflicting
from utuple.server.writing.request import Reason, Refusal
from utuple.store.contract import StoredTemplate

NOW_US = 10**12
PLAIN = UTuple(bytes(16), Family("truck", "load"), Template(), None, {}, 600, "dispatch")


def named(**changed: object) -> UTuple:
    formal = replace(PLAIN, **changed)  # type: ignore[arg-type]
    return replace(formal, id=named_id(formal))


def refusal(came: UTuple, *known: UTuple, expires_us: int = NOW_US + 1) -> Refusal | None:
    index = TemplateIndex(StoredTemplate(packed(one), 1, expires_us) for one in known)
    return conflicting(3, packed(came), index.templates.get(came.id), index, NOW_US)


@pytest.mark.parametrize(
    "changed",
    [
        {"metadata": Template(address=Equal("truck-17"))},
        {"where": {"kg": at_least(1000)}},
        {"metadata": Template(until_us=NOW_US)},
    ],
)
def test_other_conditions_under_a_name_are_refused_with_both(changed: dict[str, object]) -> None:
    found = refusal(named(**changed), named())
    assert found is not None and found.reason is Reason.CONFLICT
    assert (found.field, found.value, found.rows) == ("reader", "dispatch", [3])
    assert "by other conditions: none, not " in (found.rule or "")
    assert refusal(named(), named(**changed)) is not None


def test_another_policy_is_refused_with_both() -> None:
    found = refusal(named(terms=Terms(absent=newest(2))), named())
    assert found is not None and found.rule is not None
    assert "the terms the default, not absent=newest(2); say the same" in found.rule


@pytest.mark.parametrize(
    "came",
    [
        named(),
        named(metadata=Template(since_us=5)),
        named(family=Family("truck", "door"), where={"kg": at_least(1)}),
        named(reader="other", where={"kg": at_least(1)}),
        replace(PLAIN, id=uuid7(NOW_US, 1), where={"kg": at_least(1)}),
    ],
    ids=["the same", "since another instant", "another family", "another name", "without a name"],
)
def test_these_are_registered(came: UTuple) -> None:
    assert refusal(came, named()) is None


def test_who_has_expired_or_is_forgotten_keeps_no_name() -> None:
    came = named(where={"kg": at_least(1)})
    assert refusal(came, named(), expires_us=NOW_US) is None
    index = TemplateIndex([StoredTemplate(packed(named()), 1, NOW_US + 1)])
    index.remove(named().id)
    assert conflicting(0, packed(came), None, index, NOW_US) is None
