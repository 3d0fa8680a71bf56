"""`utuple up --limit`: every limit of docs/security.md is one, wrong ones are refused, and each goes to the programs it is of."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from utuple.cli.limits import limits_of, with_limits
from utuple.errors import InvalidInput
from utuple.local.folder import ClusterFile, DataFolder
from utuple.local.layout import Layout, Program, command_of

PAGE = Path(__file__).parents[3] / "docs" / "security.md"
LAYOUT = Layout(2, 1, 7400)


def test_every_limit_that_the_page_names_can_be_set() -> None:
    section = PAGE.read_text(encoding="utf-8").split("## Fair shares")[1].split("\n## ")[0]
    servers, scas = section.split("| limit of an sCA server")
    for program, table in (("server", servers), ("sca", scas)):
        cells = "".join(re.findall(r"^\| (`.+?) \|", table, re.MULTILINE))
        names = re.findall(r"`(\w+)`", cells)
        assert len(names) >= 5
        for name in names:
            assert limits_of([f"{program}.{name}=7"]).keys() == {f"{program}.{name}"}
    for program in ("server", "sca", "manager"):
        for name in ("connections", "connections_per_address"):
            assert limits_of([f"{program}.{name}=7"]) == {f"{program}.{name}": "7"}


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("server.share_efs", "must be NAME=VALUE"),
        ("share_efs=5", "with one of these names: server.share_registrations_per_s"),
        ("monitor.share_efs=5", "with one of these names"),
        ("server.share_efs=many", "must be a whole number"),
        ("server.share_efs=1.5", "must be a whole number"),
        ("sca.share_commands_per_s=fast", "must be a number"),
        ("server.share_efs=0", "must be above 0"),
        ("server.share_lifetime_s=-1", "must be above 0"),
        ("server.share_lifetime_s=nan", "must be above 0"),
        ("server.share_lifetime_s=inf", "must be above 0"),
    ],
)
def test_a_limit_that_cannot_be_is_refused(wrong: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(why)):
        limits_of([wrong])


def test_a_limit_is_said_once() -> None:
    with pytest.raises(InvalidInput, match="is given twice"):
        limits_of(["server.share_efs=5", "server.share_efs=6"])


def test_a_limit_goes_to_the_programs_it_is_of() -> None:
    limits = limits_of(["server.share_efs=1_000", "sca.share_commands_per_s=7.5"])

    def options(program: Program) -> list[str]:
        command = command_of(program, LAYOUT, python="python", limits=limits)
        return [one for one in command if "share" in one or one in ("1000", "7.5")]

    found = {program.name: options(program) for program in LAYOUT.programs}
    assert found["server-1"] == found["server-2"] == ["--share-efs", "1000"]
    assert found["sca-1"] == ["--share-commands-per-s", "7.5"]
    assert found["manager-1"] == found["monitor-1"] == []


def test_limits_are_kept_in_the_folder_and_changed_one_by_one(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    folder.make()
    first = with_limits(ClusterFile(LAYOUT), ["server.share_efs=5", "server.share_cfs=6"])
    folder.write_cluster(first)
    kept = folder.read_cluster()
    assert kept is not None
    again = with_limits(kept, ["server.share_efs=9"])
    assert again.limits == {"server.share_efs": "9", "server.share_cfs": "6"}
    assert with_limits(again, []) == again
