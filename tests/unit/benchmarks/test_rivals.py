"""Which rivals are here, and how they are told to run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.rivals.catalogue import ALL, MOSQUITTO, NATS, NATS_ALWAYS, REDIS, Rival, installed


@pytest.mark.parametrize("absent", [{"program": "no-such-server"}, {"package": "no_such_client"}])
def test_a_rival_needs_its_server_and_its_client(absent: dict[str, str]) -> None:
    here = replace(MOSQUITTO, program="true", package="json")
    gone = replace(here, **absent)  # type: ignore[arg-type]
    assert here.is_installed and not gone.is_installed
    assert installed([here, gone]) == [here]
    assert "skipped" in gone.note and gone.note != here.note


@pytest.mark.parametrize("program, knows", [("true", True), ("false", False)])
def test_a_version_that_does_not_know_our_settings_is_skipped(program: str, knows: bool) -> None:
    rival = replace(NATS_ALWAYS, program=program, package="json")
    assert rival.is_installed is knows


@pytest.mark.parametrize("rival", ALL, ids=lambda rival: rival.name)
def test_a_rival_listens_on_loopback_only_and_keeps_to_its_folder(
    rival: Rival, tmp_path: Path
) -> None:
    command = rival.command("program", 19_001, tmp_path)
    told = " ".join([*command, *(path.read_text() for path in tmp_path.iterdir())])
    assert "127.0.0.1" in told and "19001" in told
    assert str(tmp_path) in told


def test_what_is_said_to_be_durable_is_asked_for(tmp_path: Path) -> None:
    assert "appendfsync always" in " ".join(REDIS.command("redis", 1, tmp_path))
    assert "always" in REDIS.note or not REDIS.is_installed
    NATS_ALWAYS.command("nats", 1, tmp_path)
    assert "sync_interval: always" in (tmp_path / "nats.conf").read_text()
    NATS.command("nats", 1, tmp_path)
    assert "sync_interval" not in (tmp_path / "nats.conf").read_text()
    assert "not synced" in NATS.durable and "not durable" in MOSQUITTO.durable
