"""Commands whose senders want to know who never got them: checked before anything is sent, and told from the last look."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.twins.virtual_time import in_virtual_time
from utuple.client.sending.notices import check_notify
from utuple.client.sending.receipt import DeviceReceipt, Receipt, as_known_before, expired
from utuple.errors import Closed, InvalidInput, Unavailable


@pytest.mark.parametrize(
    ("notify", "lifetime_s", "rule"),
    [
        ("expires", 60, "must be 'expired', or None"),
        (True, 60, "must be 'expired', or None"),
        ("expired", 0, "needs a lifetime_s above 0"),
        ("expired", float("nan"), "needs a lifetime_s above 0"),
    ],
)
def test_what_nobody_could_be_told_of_is_refused(
    notify: object, lifetime_s: float, rule: str
) -> None:
    with pytest.raises(InvalidInput, match=rule) as refused:
        check_notify(notify, lifetime_s)
    assert refused.value.field == "notify"


def test_a_device_that_had_it_and_one_that_was_met_stay_in_the_receipt() -> None:
    had = DeviceReceipt("a", True, acknowledged=True)
    before = Receipt("c", (had, DeviceReceipt("b", False, "not connected")))
    now = Receipt("c", (DeviceReceipt("a", False, "not connected"), DeviceReceipt("z", True)))
    together = as_known_before(now, before)
    assert [str(one) for one in together.devices] == ["a", "b (not connected)", "z"]
    assert together.devices[0] is had
    assert [one.reason for one in expired(together).devices] == ["", "expired", ""]


@in_virtual_time
async def test_the_end_of_a_command_is_looked_at_after_its_lifetime_though_looks_fail() -> None:
    loop = asyncio.get_running_loop()
    until_s, looks = loop.time() + 100, 0

    async def look(before: Receipt) -> Receipt:
        nonlocal looks
        looks += 1
        if looks == 2:
            raise Unavailable("a server is away")
        left_s = until_s - loop.time()
        return replace(before, waits_s=left_s) if left_s > 0 else expired(before)

    sent = Receipt("c", (DeviceReceipt("a", False, "not connected"),), 100.0, look=look)
    last = await sent.end()
    assert loop.time() >= until_s and last.devices[0].reason == "expired" and looks == 3


@in_virtual_time
async def test_a_space_that_closes_first_says_so_to_who_waits_for_the_end() -> None:
    following = asyncio.create_task(asyncio.sleep(100, Receipt("c")))
    sent = Receipt("c", ending=following)
    waiting = asyncio.create_task(sent.end())
    await asyncio.sleep(1)
    following.cancel()
    with pytest.raises(Closed, match="before the command's lifetime was over"):
        await waiting


@pytest.mark.parametrize("timeout_s", [-1, float("nan"), True, "3"])
async def test_a_wait_that_is_no_time_is_refused(timeout_s: Any) -> None:
    with pytest.raises(InvalidInput, match="0 or more, or None"):
        await Receipt("c").wait(timeout_s)
