"""The command line from outside, as far as it goes without a cluster."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from utuple.cli.app import app

COMMANDS = "up down found status table moves emit watch read serve command demo".split()
OF_SERVERS = ["server", *(f"server {verb}" for verb in ("add", "drain", "help", "list"))]


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield int(listening.getsockname()[1])


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner(env={"UTUPLE_AT": "", "UTUPLE_DATA": ""}).invoke(app, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def test_help_names_every_command() -> None:
    code, out, _ = run("--help")
    assert code == 0
    assert all(command in out for command in COMMANDS)


@pytest.mark.parametrize("command", [*COMMANDS, *OF_SERVERS])
def test_every_command_has_help(command: str) -> None:
    code, out, _ = run(*command.split(), "--help")
    assert code == 0 and "Usage" in out


def test_version() -> None:
    code, out, _ = run("--version")
    assert code == 0 and out.startswith("utuple ")


@pytest.mark.parametrize(
    "command", ["status", "table", "moves", "server list", "server help a", "server drain a"]
)
def test_without_a_cluster_looking_says_how_to_start_one(command: str, taken_port: int) -> None:
    code, _, err = run(*command.split(), "--json", "--at", "127.0.0.1:1")
    assert code == 1
    assert "127.0.0.1:1" in err and "utuple up" in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["status", "--at", "nowhere"], "HOST:PORT"),
        (["up", "--servers", "99"], "--servers"),
        (["up", "--policy", "no_such=1"], "no_such"),
        (["server", "add"], "utuple up"),
        (["watch", "--subject", "a", "--type", "b", "--where", "kg>5"], "--where"),
        (["watch", "--subject", "a", "--type", "b", "--area", "1"], "--area"),
        (["read", "--subject", "a", "--type", "b", "--since", "soon"], "--since"),
        (["command", "--subject", "a", "--type", "b", "--data", "x"], "--data"),
        (["command", "--subject", "a", "--type", "b", "--data", "{}"], "--everywhere"),
        (
            ["command", "--subject", "a", "--type", "b", "--prefix", "", "--data", "{}"],
            "--everywhere",
        ),
        (["emit", "--subject", "a", "--data", "{}"], "type"),
    ],
)
def test_what_cannot_be_read_is_one_line_and_exit_code_1(
    arguments: list[str], said: str, tmp_path: Path
) -> None:
    if arguments[0] == "up" or arguments[-1] == "add":
        arguments = [*arguments, "--data", str(tmp_path)]
    code, _, err = run(*arguments)
    assert code == 1
    assert said in err
    assert len(err.splitlines()) == 1


def test_a_folder_of_another_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    noted = {"format": 99, "servers": 3}
    (tmp_path / "cluster.json").write_text(json.dumps(noted))
    for command in ("up", "down"):
        code, _, err = run(command, "--data", str(tmp_path))
        assert code == 1
        assert "another version" in err and "--data" in err
    assert [path.name for path in tmp_path.iterdir()] == ["cluster.json"]
    assert json.loads((tmp_path / "cluster.json").read_text()) == noted


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', '{"format": 1, "servers": "x"}'])
def test_a_damaged_folder_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "cluster.json").write_text(text)
    code, _, err = run("up", "--data", str(tmp_path))
    assert code == 1 and "--data" in err


def test_a_taken_port_is_named_with_what_to_do(tmp_path: Path, taken_port: int) -> None:
    code, _, err = run("up", "--data", str(tmp_path / "d"), "--port", str(taken_port))
    assert code == 1
    assert f"127.0.0.1:{taken_port} (for manager-1)" in err and "--port" in err
    assert not (tmp_path / "d" / "cluster.json").exists()


def test_down_without_a_cluster_says_so(tmp_path: Path) -> None:
    code, out, _ = run("down", "--data", str(tmp_path))
    assert code == 0 and "Nothing runs" in out
    assert list(tmp_path.iterdir()) == []
