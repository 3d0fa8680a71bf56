"""From a cluster under load to a forecast: real processes write the samples, and the planner reads them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from tests.system.cluster import Cluster, free_port
from tests.waiting import until

pytestmark = pytest.mark.slow
EVENT = {"subject": "bus", "type": "speed", "address": "b1", "data": {"kmh": 30}}


def test_samples_of_a_cluster_are_kept_by_day_and_forecast_from() -> None:
    with tempfile.TemporaryDirectory(prefix="utuple-samples-") as place:
        samples = Path(place) / "samples"
        cluster = Cluster(Path(place) / "data", free_port())
        cluster.up("--servers", "2", "--telemetry", str(samples), "--telemetry-every", "0.2")
        try:
            lines = "\n".join(json.dumps(EVENT) for _ in range(500))
            assert cluster.run("emit", stdin=lines).code == 0
            until(lambda: list(samples.rglob("*.parquet")), "a file of samples")
            (monitor,) = cluster.run("status", "--json").json()["monitors"]
            assert monitor["telemetry"]["folder"] == str(samples.resolve())
            assert monitor["telemetry"]["failures"] == monitor["telemetry"]["dropped"] == 0
        finally:
            cluster.run("down")
        whole = [path.name for path in samples.rglob("*") if path.is_file()]
        assert whole and all(name.endswith(".parquet") for name in whole)
        (next(samples.glob("day=*")) / "broken.parquet").write_text("no Parquet")
        ran = cluster.run("plan", "forecast", "--telemetry", str(samples), "--json")
        assert ran.code == 0, ran.err
        answer = ran.json()
        assert answer["telemetry"]["broken"] == 1
        assert answer["telemetry"]["files"] == len(whole) + 1
        assert [server["name"] for server in answer["servers"]] == ["server-1", "server-2"]
        assert [key["subject"] for key in answer["hot_keys"]] == ["bus"]
        assert answer["order"] is None, "seconds of samples are no ground for an order"
        assert answer["reason"]


def test_an_empty_folder_is_refused_before_spark_starts(tmp_path: Path) -> None:
    ran = Cluster(tmp_path, 1).run("plan", "forecast", "--telemetry", str(tmp_path))
    assert ran.code == 1
    assert "holds no Parquet file" in ran.err
