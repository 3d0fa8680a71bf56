"""`utuple bench elastic`: what it calls a duplicate."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.elastic.benchmark import _Doubles
from utuple.admin.programs import Elastic, ShownMachine

ONE = ShownMachine("machine-1", 1, 1024.0, True, ("server-1",))
TWO = ShownMachine("machine-2", 1, 1024.0, True, ("server-2",))
SEEN = Elastic(True, 2, 2, "", "", "", (), (ONE, TWO), ())
RUNNING = ["server-1", "server-2"]


def most(seen: Elastic, running: list[str]) -> int:
    doubles = _Doubles()
    doubles.note(seen, running)
    doubles.note(SEEN, RUNNING)  # what was wrong once is not mended by what comes after
    return doubles.most


def test_as_many_as_were_decided_on_are_no_duplicates() -> None:
    assert most(SEEN, RUNNING) == 0
    assert most(replace(SEEN, servers=1, waiting=("server-2",)), ["server-1"]) == 0


def test_those_that_leave_after_fewer_are_wanted_are_no_duplicates() -> None:
    doubles = _Doubles()
    doubles.note(SEEN, RUNNING)
    doubles.note(replace(SEEN, wanted=1), RUNNING)
    assert doubles.most == 0


@pytest.mark.parametrize(
    ("seen", "running"),
    [
        (SEEN, [*RUNNING, "server-2"]),
        (replace(SEEN, servers=3), RUNNING),
        (replace(SEEN, waiting=("server-3",)), RUNNING),
        (replace(SEEN, machines=(ONE, replace(TWO, servers=("server-1",)))), RUNNING),
        (replace(SEEN, machines=(ONE, TWO, replace(TWO, servers=()))), RUNNING),
    ],
    ids=[
        "two processes",
        "one too many serves",
        "one too many waits",
        "two places",
        "two machines",
    ],
)
def test_what_is_there_once_too_often_is_a_duplicate(seen: Elastic, running: list[str]) -> None:
    assert most(seen, running) == 1
