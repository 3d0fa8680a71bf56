"""Whoever keeps a secured cluster renews the credentials of its programs by himself, before they end."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from utuple.local import running
from utuple.local.folder import ClusterFile, DataFolder
from utuple.local.layout import Layout
from utuple.local.running import Cluster
from utuple.local.trusting import RENEW_BEFORE_US
from utuple.security.credentials import read_credentials, write_credentials
from utuple.security.identity import Role
from utuple.security.own import OwnCredentials, held

LAYOUT = Layout(servers=1, managers=1, mqtt=8883, http=7480)


def until_us(path: Path) -> int:
    return held(read_credentials(path), path.name).until_us


def test_the_timer_renews_what_ends_soon_and_leaves_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "RENEW_LOOK_S", 0.01)
    folder, said = DataFolder(tmp_path), list[str]()
    trust = folder.trust
    now_us = time.time_ns() // 1_000
    made = trust.prepare(LAYOUT.programs, now_us)
    assert {"server-1", "http-1", "mqtt-1"} <= set(made)
    soon, door = trust.credentials_of("server-1"), trust.credentials_of("http-1")
    write_credentials(soon, trust.authority.issue(Role.PROGRAM, "server-1", days=3))
    write_credentials(door, trust.authority.issue(Role.DOOR, "http-1", days=3))
    used, number = OwnCredentials(soon), trust.authority.read().grants.number
    others = {name: until_us(trust.credentials_of(name)) for name in ("manager-1", "sca-1")}

    async def work() -> None:
        cluster = Cluster(folder, ClusterFile(LAYOUT, secure=True), said.append, said.append)
        renewing = asyncio.create_task(cluster._renew())
        async with asyncio.timeout(30):
            while len(said) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        renewing.cancel()

    asyncio.run(work())
    assert sorted(said) == ["credentials of http-1 renewed", "credentials of server-1 renewed"]
    for path in (soon, door):
        assert until_us(path) > now_us + RENEW_BEFORE_US
    used._looked_s = 0.0  # a second later
    assert used.held.until_us == until_us(soon)  # a program that runs notices
    assert others == {name: until_us(trust.credentials_of(name)) for name in others}
    assert trust.authority.read().grants.number == number  # a door keeps its grant


def test_a_door_that_was_revoked_is_not_granted_again_by_itself(tmp_path: Path) -> None:
    trust = DataFolder(tmp_path).trust
    now_us = time.time_ns() // 1_000
    trust.prepare(LAYOUT.programs, now_us)
    trust.authority.revoke("http-1")
    assert trust.prepare(LAYOUT.programs, now_us) == []
    assert "http-1" not in trust.authority.read().grants.grants
