"""`utuple bench`, from outside: the small variants measure everything, lose nothing and leave nothing behind.
How fast it is they do not judge."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.system.cluster import COMMAND_LIMIT_S, ended
from tests.system.test_demo import processes_with

pytestmark = pytest.mark.slow
BENCH = [sys.executable, "-P", "-m", "utuple.cli.main", "bench"]


@pytest.fixture
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The temporary folders lie in one of ours, so that we see whether anything is left. As short as /tmp:
    a unix socket lives in it."""
    place = tmp_path_factory.mktemp("b")
    for folder in (place, *list(place.parents)[:3]):
        if folder.stat().st_uid == os.geteuid() and folder != Path("/tmp"):
            folder.chmod(0o755)
    yield {**os.environ, "TMPDIR": str(place)}
    assert list(place.iterdir()) == []
    assert processes_with(str(place)) == []


def measured(name: str, ground: dict[str, str]) -> dict[str, Any]:
    done = subprocess.run(
        [*BENCH, name, "--quick", "--json"],
        env=ground,
        capture_output=True,
        text=True,
        timeout=COMMAND_LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "run 1 of 1" in done.stderr  # progress is shown
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert said["runs"] == 1
    assert isinstance(said["met"], bool)
    assert said["met_by"].keys() <= said["spread"].keys()
    assert said["target"].keys() == said["met_by"].keys() | said["skipped"].keys()
    assert said["notes"]["ours"]  # what was durable
    return said


def test_elastic_follows_the_load_and_misses_nothing(ground: dict[str, str]) -> None:
    said = measured("elastic", ground)
    assert said["sent"] > 0
    assert said["servers_most"] >= 2
    assert (said["missed"], said["repeated"], said["duplicates"], said["orphans"]) == (0, 0, 0, 0)


def test_secure_does_the_same_work_with_and_without(ground: dict[str, str]) -> None:
    said = measured("secure", ground)
    for name in ("ingest_per_s", "single_per_s", "p50_ms"):
        assert said[f"plain_{name}"] > 0
        assert said[f"secured_{name}"] > 0


def test_gossip_counts_what_managers_say(ground: dict[str, str]) -> None:
    said = measured("gossip", ground)
    assert said["steady_bytes_per_s"] > 0
    assert said["lookup_messages_most"] <= 1


def test_help_under_load_misses_nothing_and_refuses_nothing(ground: dict[str, str]) -> None:
    said = measured("help", ground)
    assert (said["missed"], said["repeated"]) == (0, 0)
    assert (said["ea_refused"], said["ef_refused"]) == (0, 0)
    assert said["efs_copied"] >= 2_000
    assert said["help_s"] > 0
    assert said["ef_held_back_ms"] >= 0
    assert said["longest_delivery_gap_ms"] > 0 and said["gap_without_ms"] > 0


@pytest.mark.long
def test_a_key_is_partitioned_under_load_and_nothing_is_missed(ground: dict[str, str]) -> None:
    said = measured("partition", ground)
    assert (said["missed"], said["repeated"]) == (0, 0)
    assert (said["ea_refused"], said["ef_refused"]) == (0, 0)
    assert 0 < said["others_memory_ratio"] < said["home_memory_ratio"]
    for figure in ("ef_registration_ratio", "match_ratio", "partition_s", "gap_without_ms"):
        assert said[figure] > 0


@pytest.mark.long
def test_efs_come_and_go_while_eas_flow(ground: dict[str, str]) -> None:
    said = measured("subscribe", ground)
    assert (said["missed"], said["ea_refused"]) == (0, 0)
    assert said["registered_per_s"] > 0 and said["cancelled_per_s"] > 0


@pytest.mark.long
def test_a_reader_that_stopped_gets_everything_when_it_goes_on(ground: dict[str, str]) -> None:
    said = measured("slow-reader", ground)
    assert (said["missed"], said["repeated"]) == (0, 0)
    for figure in ("writer_ratio", "p99_ratio", "catch_up_per_s"):
        assert said[figure] > 0


@pytest.mark.long
def test_readers_that_get_nothing_are_counted(ground: dict[str, str]) -> None:
    said = measured("idle-readers", ground)
    assert said["readers"] == 20 and said["kib_each"] > 0


@pytest.mark.long
def test_a_killed_server_serves_again_with_every_ef(ground: dict[str, str]) -> None:
    said = measured("restart", ground)
    assert (said["lost_efs"], said["efs"]) == (0, 3_000)
    assert 0 < said["restart_s"] < said["restart_with_postgres_s"] + 60


@pytest.mark.long
def test_a_hot_key_is_spread_by_help(ground: dict[str, str]) -> None:
    said = measured("hotkey", ground)
    assert said["ea_refused"] == 0
    for figure in ("scaling_2", "no_help_2", "adaptive_over_random", "throughput_no_help"):
        assert said[figure] > 0
    assert said["throughput_2"] > said["throughput_1"]


@pytest.mark.long
def test_commands_reach_their_devices(ground: dict[str, str]) -> None:
    said = measured("command", ground)
    assert said["not_handed_over"] == 0
    for figure in ("matcher_per_s", "known_per_s", "handed_over_per_s", "singly_per_s"):
        assert said[figure] > 0
    assert said["scaling_2"] > 1
    assert 0 < said["ratio_dict"] < 1.5  # it has to look into a dictionary itself


@pytest.mark.long
def test_every_answer_is_true_while_sca_servers_come_and_go(ground: dict[str, str]) -> None:
    said = measured("shares", ground)
    assert said["commands"] > 500
    assert (said["false_receipts"], said["given_twice"], said["wrong_late"]) == (0, 0, 0)


@pytest.mark.long
def test_keys_are_looked_up_once(ground: dict[str, str]) -> None:
    said = measured("lookup", ground)
    assert said["lookups_per_registration"] == 0 < said["lookups_first"]
    assert said["keys_per_s"] > 0
    assert said["ratio_sql"] > 0  # it fails where they do not find the same


@pytest.mark.long
def test_reading_finds_what_sql_finds(ground: dict[str, str]) -> None:
    said = measured("read", ground)  # it fails where they differ
    assert said["area_rows"] > 0 and said["address_rows"] > 0
    assert said["area_ratio_sql"] > 0 and said["address_ratio_sql"] > 0


@pytest.mark.long
def test_overload_loses_nothing_and_ends(ground: dict[str, str]) -> None:
    said = measured("overload", ground)
    assert (said["lost"], said["phantom"], said["unknown"]) == (0, 0, 0)
    assert said["refused"] > 0 and said["registered"] > 0
    assert said["offered_per_s"] > 2 * said["carried_per_s"]


@pytest.mark.long
def test_strangers_keep_nobody_out(ground: dict[str, str]) -> None:
    said = measured("hostile", ground)
    assert said["refused_wrongly"] == 0
    assert {"growth_mb_window", "ratio_resets", "growth_mb_slow_tls_handshakes"} <= said.keys()


@pytest.mark.long
def test_who_asks_beyond_its_share_is_nobody_else_s_trouble(ground: dict[str, str]) -> None:
    said = measured("fair", ground)
    assert said["refused_wrongly"] == 0 and said["times_its_share"] > 1
    assert said["greedy_not_registered_per_s"] > 0 and said["greedy_not_commanded_per_s"] > 0


def test_single_emits_are_measured_beside_inserts(ground: dict[str, str]) -> None:
    said = measured("single", ground)
    assert said["ratio_insert"] == pytest.approx(said["ours_per_s"] / said["insert_per_s"], 0.01)


@pytest.mark.long
def test_every_event_of_a_steady_rate_reaches_its_watcher(ground: dict[str, str]) -> None:
    said = measured("latency", ground)
    assert 0 < said["ours_p50_ms"] <= said["ours_p99_ms"] <= said["ours_p999_ms"]


@pytest.mark.long
def test_what_leaves_nothing_behind_is_measured_beside_what_is_durable(
    ground: dict[str, str],
) -> None:
    said = measured("fleeting", ground)
    ratio = said["fleeting_per_s"] / said["durable_per_s"]
    assert said["ratio_durable"] == pytest.approx(ratio, 0.01)
    assert 0 < said["ours_p50_ms"] <= said["ours_p99_ms"] and said["durable_delivered"] == 1


@pytest.mark.long
def test_readers_that_come_and_go_are_given_or_told_of_everything(ground: dict[str, str]) -> None:
    """Law 9. So short a run says nothing about means."""
    said = measured("dropping", ground)
    assert said["law_9"] == 0 and said["keep_success_rate"] == 1
    assert said["success_error"] < 0.05, "whom it drops is whom the policy says"
    assert said["respond_within_mean_response_s"] > 0 and 0 < said["respond_within_zeta"] < 1


@pytest.mark.long
def test_an_http_door_is_measured_beside_the_sdk(ground: dict[str, str]) -> None:
    said = measured("http", ground)
    for ratio in ("ratio_ingest", "single_of_bar", "ratio_latency", "ratio_consoles"):
        assert said[ratio] > 0


@pytest.mark.long
def test_an_mqtt_door_is_measured_beside_mosquitto(ground: dict[str, str]) -> None:
    said = measured("mqtt", ground)
    assert said["ours_per_s"] > 0 < said["idle_kib"]
    assert 0 < said["ours_p50_ms"] <= said["ours_p99_ms"]


@pytest.mark.long
def test_what_the_sdk_costs_is_measured(ground: dict[str, str]) -> None:
    said = measured("client", ground)
    assert said["ours_ms_per_1000"] > 0 < said["building_ms_per_1000"]


@pytest.mark.long
def test_cost_is_measured_as_the_store_grows(ground: dict[str, str]) -> None:
    said = measured("growth", ground)
    assert said["time_ratio"] > 0 < said["cpu_ratio"]
    for efs in (0, 100, 2_000):
        assert said[f"time_us_3e4_stored_{efs}_efs"] > 0


@pytest.mark.long
def test_bytes_an_ea_takes_are_those_of_its_table_and_indexes(ground: dict[str, str]) -> None:
    said = measured("storage", ground)
    indexes = sum(size for name, size in said.items() if name.startswith("index_"))
    assert said["bytes_per_ea"] == pytest.approx(said["table_bytes_per_ea"] + indexes, 0.01)


@pytest.mark.long
@pytest.mark.parametrize("moment", ["starting 2 servers", "EFs/s begin"])
def test_ctrl_c_leaves_nothing_behind(ground: dict[str, str], moment: str) -> None:
    bench = subprocess.Popen(
        [*BENCH, "help", "--quick", "--json"],
        env=ground,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with ended(bench):
        assert bench.stderr is not None
        for line in bench.stderr:
            if moment in line:
                break
        bench.send_signal(signal.SIGINT)
        out, err = bench.communicate(timeout=COMMAND_LIMIT_S)
        assert bench.returncode == 130, err
        assert out == "" and "Traceback" not in err
