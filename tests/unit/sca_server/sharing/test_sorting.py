"""Which commands may be answered: of a steady device, by what was read before a change of shares or since."""

from __future__ import annotations

from array import array

import pytest

from sca_server.commands import Commands
from sca_server.filling.refill import Refill, Refills
from sca_server.index import Index
from sca_server.sharing.sorting import Sorted, sort
from sca_server.sharing.tenure import Tenure, TenureLimits, alone
from utuple.cluster.line import Line, Member, ServerInfo
from utuple.cluster.shares import Shares
from utuple.model.key import HASH_SPACE
from utuple.model.section import Section
from utuple.model.utuple import Family

LINE = Line(Section(0, HASH_SPACE), 1, (Member("s1"),))
HELPED = Line(Section(0, HASH_SPACE), 2, (Member("s1"), Member("s2")))
SERVERS = [ServerInfo(name, "host:1", "server", 0) for name in ("s1", "s2")]


def read(refill: Refill, name: str, line: Line) -> None:
    refill.begin(name)
    assert refill.end(name, [line], [line], 0.0)


def one_command_sorted(
    refills: Refills, tenure: Tenure | None = None, *, late: bool = False
) -> Sorted:
    return sort(
        Commands((Family("lamp", "switch"),), array("I", [0]), bytes(16), ["lamp-1"], [b"{}"]),
        tenure=tenure or alone(),
        refills=refills,
        index=Index(most=10, most_cancelled=10),
        attached=(),
        now_us=0,
        now_s=0.0,
        late=late,
    )


@pytest.mark.parametrize("since", [True, False])
def test_a_steady_device_is_answered_for_by_what_was_read_before_a_change_or_since(
    since: bool,
) -> None:
    refills = Refills(Refill(first_retry_s=1.0, longest_retry_s=4.0))
    refills.hear([LINE], SERVERS)
    read(refills.steady, "s1", LINE)
    refills.again()
    assert one_command_sorted(refills).here  # by what was read before
    refills.hear([HELPED])
    for name in ("s1", "s2") if since else ("s1",):
        read(refills.reading, name, HELPED)
    found = one_command_sorted(refills)
    assert (found.moving, found.filling) == (([], False) if since else ([0], True))


@pytest.mark.parametrize("late", [False, True])
def test_one_of_several_that_stood_still_denies_nobody_before_it_has_asked_the_others(
    late: bool,
) -> None:
    """Woken after a minute it denied commands to devices that had gone to another: it had settled before, and knew no better."""
    refills = Refills(Refill(first_retry_s=1.0, longest_retry_s=4.0))
    refills.hear([LINE], SERVERS)
    read(refills.steady, "s1", LINE)
    owner = Shares(["sca-1", "sca-2"]).owner(Family("lamp", "switch"), "lamp-1")
    tenure = Tenure(owner, TenureLimits(0.0, 0.0, 0.0, 1.0), 0.0)
    tenure.change(Shares(["sca-1", "sca-2"]), 0.0)
    tenure.agree(by_all=True, now_s=0.0)
    tenure.settle(filled=True, now_s=0.0)
    found = one_command_sorted(refills, tenure, late=late)
    assert (list(found.here), found.moving) == (([], [0]) if late else ([0], []))
