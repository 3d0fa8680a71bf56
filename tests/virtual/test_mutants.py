"""Each mutant still names what is there, and fits it. That it is caught is `make mutants`."""

from __future__ import annotations

from multiprocessing.pool import ThreadPool

import pytest

from tests.replacing import misfit
from tests.virtual.mutants.hunting import Remembered, first_catch, searched
from tests.virtual.mutants.table import MUTANTS


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_turns_off_something_that_is_there(name: str) -> None:
    with MUTANTS[name]():
        pass


def test_a_mutant_that_no_remembered_seed_notices_is_searched_for() -> None:
    """A rule that no seed is remembered for, and one whose seed proves nothing, since no rule is off."""
    assert not first_catch(("answer before commit", []))[1]
    name, caught = first_catch(("", [3]))
    assert not caught and caught.tried == 1
    with ThreadPool(1) as pool:
        assert not searched(name, pool, most=1, enough=1)


def test_seeds_are_remembered_of_mutants_that_are_there_the_newest_first() -> None:
    name = next(iter(MUTANTS))
    kept = Remembered({name: [1, 2, 3], "one that is gone": [4]}).updated({name: [9, 2]})
    assert kept.by_name == {name: [9, 2, 1]}


class Rules:
    def kept(self, key: int, *, strict: bool = True) -> bool:
        return strict

    async def awaited(self, key: int) -> bool:
        return bool(key)

    @property
    def asked(self) -> bool:
        return True

    @staticmethod
    def apart(key: int) -> bool:
        return bool(key)


def needs_a_key(self: Rules, key: int) -> bool:
    return bool(key)


def test_a_mutant_whose_name_is_gone_fails_loudly() -> None:
    assert "no gone of its own" in misfit(Rules, "gone", lambda self: None)
    assert "no __eq__ of its own" in misfit(Rules, "__eq__", lambda self, other: True)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("kept", lambda self, key: True),
        ("kept", lambda self, key, *, strict: True),
        ("kept", lambda self, *, strict=True: True),
        ("awaited", lambda self, key: True),
        ("asked", property(needs_a_key)),  # type: ignore[arg-type]
        ("apart", lambda: True),
    ],
)
def test_a_mutant_that_no_longer_fits_its_calls_fails_loudly(name: str, instead: object) -> None:
    assert "is called otherwise" in misfit(Rules, name, instead)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("kept", lambda self, key, strict=True: True),
        ("kept", lambda *_, **more: True),
        ("asked", property(lambda self: True)),
        ("apart", lambda key: True),
    ],
)
def test_a_mutant_that_takes_every_call_is_let_pass(name: str, instead: object) -> None:
    assert misfit(Rules, name, instead) == ""
