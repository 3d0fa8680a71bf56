"""A disk that was full once: whatever the supervisor could not write meanwhile, it keeps its programs alive."""

from __future__ import annotations

import os
import resource
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.system.cluster import Cluster, free_port
from tests.waiting import until
from utuple.local.folder import DataFolder, FolderError
from utuple.local.supervising import requests
from utuple.local.supervising.requests import Request

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="utuple-full-") as folder:
        made = Cluster(Path(folder).resolve() / "data", free_port())
        made.up("--servers", "2", "--managers", "1", "--no-monitor")
        yield made
        made.run("down")


@contextmanager
def nothing_can_be_written_by(pid: int) -> Iterator[None]:
    """No file may grow, as on a full disk: every write is refused with an OSError. Its children inherit that."""
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))


def another_process_serves(cluster: Cluster, name: str, than: int) -> bool:
    server = cluster.servers().get(name, {})
    return server.get("pid") not in (None, than) and server["state"] == "serving"


def test_a_server_that_dies_while_the_disk_is_full_and_again_after_it_is_started_each_time(
    cluster: Cluster,
) -> None:
    supervisor, first = cluster.pid("supervisor"), cluster.pid("server-1")
    with nothing_can_be_written_by(supervisor):
        os.kill(first, signal.SIGKILL)
        until(
            lambda: cluster.servers()["server-1"]["state"] == "serving", "it serves on a full disk"
        )
    until(lambda: cluster.pid("server-1") != first, "it is written down when there is room")
    second = cluster.pid("server-1")
    os.kill(second, signal.SIGKILL)
    until(lambda: another_process_serves(cluster, "server-1", second), "it is still kept alive")
    assert cluster.pid("supervisor") == supervisor


def test_servers_can_still_be_added_after_the_disk_was_full(cluster: Cluster) -> None:
    folder = DataFolder(cluster.folder)
    with nothing_can_be_written_by(cluster.pid("supervisor")), pytest.raises(FolderError):
        requests.ask(folder, Request("add"), limit_s=2.0)  # nor can it answer
    assert requests.ask(folder, Request("add"))["name"] == "server-3"
