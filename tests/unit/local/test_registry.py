"""A cluster of this machine is found by the address of any of its managers."""

from __future__ import annotations

from pathlib import Path

import pytest

from utuple.cli.life import folder_of
from utuple.local.folder import ClusterFile, DataFolder
from utuple.local.layout import Layout
from utuple.local.supervising.registry import folder_at, noted

LAYOUT = Layout(servers=2, managers=2, port=7500)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataFolder:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("UTUPLE_DATA", str(tmp_path / "usual"))
    made = DataFolder(tmp_path / "data")
    made.make()
    made.write_cluster(ClusterFile(LAYOUT))
    return made


@pytest.mark.parametrize("at", ["127.0.0.1:7500", "127.0.0.1:7501", "localhost:7500"])
def test_a_running_cluster_is_found_by_each_manager_and_not_after_its_end(
    folder: DataFolder, at: str
) -> None:
    with noted(folder, LAYOUT):
        found = folder_at(["10.0.0.1:7500", at])
        assert found is not None and found.path == folder.path
    assert folder_at([at]) is None


def test_a_note_that_its_folder_does_not_confirm_names_nobody(folder: DataFolder) -> None:
    with noted(folder, LAYOUT):
        folder.write_cluster(ClusterFile(Layout(servers=2, managers=2, port=7600)))
        assert folder_at(["127.0.0.1:7500"]) is None


def test_another_machines_cluster_is_in_no_folder_of_ours(folder: DataFolder) -> None:
    with noted(folder, LAYOUT):
        assert folder_at(["10.0.0.1:7500", "127.0.0.1:7411"]) is None


def test_a_named_folder_goes_before_the_address_and_the_address_before_the_usual_one(
    folder: DataFolder, tmp_path: Path
) -> None:
    with noted(folder, LAYOUT):
        assert folder_of(tmp_path / "named", ["127.0.0.1:7500"]).path == tmp_path / "named"
        assert folder_of(None, ["127.0.0.1:7500"]).path == folder.path
        assert folder_of(None, ["127.0.0.1:7999"]).path == tmp_path / "usual"


def test_where_nothing_can_be_noted_the_cluster_runs_all_the_same(
    folder: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "blocked").write_text("a file, not a folder")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "blocked"))
    with noted(folder, LAYOUT):
        assert folder_at(["127.0.0.1:7500"]) is None
