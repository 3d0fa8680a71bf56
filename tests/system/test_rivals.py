"""The rivals of the benchmarks, where they are installed: they deliver everything and leave nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.rivals.catalogue import ALL, Rival
from benchmarks.rivals.running import RunningRival
from tests.system.test_demo import processes_with

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("rival", ALL, ids=lambda rival: rival.name)
async def test_a_rival_delivers_everything_and_ends(rival: Rival, tmp_path: Path) -> None:
    if not rival.is_installed:
        pytest.skip(f"{rival.name} is not installed: make bench-peers")
    async with RunningRival(rival, tmp_path, lambda _: None, subscribed=True) as running:
        assert await running.delivered_per_s(300) > 0
        delays = await running.delays(rate_per_s=300, seconds=1)
        assert 0 < delays.p50_s <= delays.p99_s <= delays.p999_s
    async with RunningRival(rival, tmp_path / "again", lambda _: None, subscribed=False) as running:
        assert await running.published_per_s(300) > 0
    assert processes_with(str(tmp_path)) == []
