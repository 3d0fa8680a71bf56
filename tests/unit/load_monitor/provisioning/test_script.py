"""A script as provisioner: a real one, in a real process."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
from collections.abc import Awaitable
from pathlib import Path

import pytest

from load_monitor.elastic.seen import Machine, Provisioned
from load_monitor.provisioning.contract import ProvisioningFailed
from load_monitor.provisioning.script import ScriptProvisioner

CLOUD = """
import json, sys, time
from pathlib import Path
store = Path(sys.argv[0]).with_suffix(".json")
known = json.loads(store.read_text()) if store.exists() else {"machines": [], "servers": [], "next_server": 1}
verb, *rest = sys.argv[1:]
names = lambda kind: [one["name"] for one in known[kind]]
if verb == "list":
    print(json.dumps(known))
elif verb == "create-machine" and rest[0] not in names("machines"):
    known["machines"].append({"name": rest[0], "cpu": int(rest[1]), "memory_mb": float(rest[2]), "ready": True})
elif verb == "delete-machine":
    known["machines"] = [one for one in known["machines"] if one["name"] != rest[0]]
elif verb == "create-server" and rest[0] not in names("servers"):
    known["servers"].append({"name": rest[0], "machine": rest[1]})
    known["next_server"] = max(known["next_server"], int(rest[0].split("-")[1]) + 1)
elif verb == "delete-server":
    known["servers"] = [one for one in known["servers"] if one["name"] != rest[0]]
elif verb == "hold":
    sys.exit(known.setdefault("holder", rest[0]) != rest[0] or store.write_text(json.dumps(known)) * 0)
store.write_text(json.dumps(known))
"""


def script(folder: Path, text: str = CLOUD) -> ScriptProvisioner:
    path = folder / "cloud"
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return ScriptProvisioner(str(path), limit_s=10.0)


async def test_what_is_created_twice_is_there_once_and_deleting_twice_is_no_harm(
    tmp_path: Path,
) -> None:
    cloud = script(tmp_path)
    for _ in range(2):
        await cloud.create_machine(Machine("machine-1", 2, 3840.0, ready=False))
        await cloud.create_server("server-1", "machine-1")
    found = await cloud.inventory()
    assert found.machines == (Machine("machine-1", 2, 3840.0),)
    assert found.servers == (Provisioned("server-1", "machine-1"),)
    assert found.next_server == 2
    for _ in range(2):
        assert await cloud.delete_server("server-1")
        await cloud.delete_machine("machine-1")
    empty = await cloud.inventory()
    assert (empty.machines, empty.servers, empty.next_server) == ((), (), 2)


async def test_a_command_may_have_arguments_of_its_own_and_is_told_what_it_needs(
    tmp_path: Path,
) -> None:
    script(tmp_path, "import sys; sys.exit(' '.join(['said', *sys.argv[1:]]))")
    cloud = ScriptProvisioner(f"{tmp_path / 'cloud'} --zone 'far away'", limit_s=10.0)
    machine = Machine("machine-1", 2, 3840.0)
    asked: list[tuple[Awaitable[object], str]] = [
        (cloud.create_machine(machine), "create-machine machine-1 2 3840"),
        (cloud.create_server("server-1", "machine-1"), "create-server server-1 machine-1"),
    ]
    for ask, told in asked:
        with pytest.raises(ProvisioningFailed, match=f"said --zone far away {told}$"):
            await ask
    script(tmp_path, "import sys; print(sys.argv, file=sys.stderr); sys.exit(7)")
    with pytest.raises(ProvisioningFailed, match=r"'hold', 'a', '60'\]"):
        await cloud.hold("a")


async def test_bytes_that_are_no_text_are_no_harm(tmp_path: Path) -> None:
    await script(tmp_path, "import sys; sys.stdout.buffer.write(b'\\xff')").delete_machine("m")
    cloud = script(tmp_path, "import sys; sys.stderr.buffer.write(b'\\xff full'); sys.exit(1)")
    with pytest.raises(ProvisioningFailed, match="delete-machine ended with 1: \ufffd full"):
        await cloud.delete_machine("m")


async def test_of_two_controllers_the_script_lets_one_act(tmp_path: Path) -> None:
    cloud = script(tmp_path)
    assert [await cloud.hold(name) for name in ("a", "b", "a")] == [True, False, True]


async def test_a_failure_is_told_with_its_reason(tmp_path: Path) -> None:
    cloud = script(tmp_path, "import sys; sys.exit('out of quota')")
    with pytest.raises(ProvisioningFailed, match="create-machine ended with 1: out of quota"):
        await cloud.create_machine(Machine("machine-2", 1, 1024))
    with pytest.raises(ProvisioningFailed, match="hold ended with 3"):
        await script(tmp_path, "raise SystemExit(3)").hold("a")


async def test_a_script_that_hangs_is_ended(tmp_path: Path) -> None:
    script(tmp_path, "import time; time.sleep(3600)")
    hanging = ScriptProvisioner(str(tmp_path / "cloud"), limit_s=0.3)
    async with asyncio.timeout(60.0):  # it is not waited for
        with pytest.raises(ProvisioningFailed, match="took longer than"):
            await hanging.inventory()


async def test_a_script_that_asks_a_question_hears_that_nobody_is_there(tmp_path: Path) -> None:
    """And not what is typed into the terminal of the load monitor."""
    typed, terminal = os.pipe()
    before = os.dup(0)
    os.dup2(typed, 0)
    try:
        asks = script(tmp_path, "import sys; sys.exit(f'heard {sys.stdin.read()!r}')")
        with pytest.raises(ProvisioningFailed, match=r"delete-machine ended with 1: heard ''$"):
            await asks.delete_machine("machine-1")
    finally:
        os.dup2(before, 0)
        for one in (typed, terminal, before):
            os.close(one)


async def test_of_a_long_story_the_end_is_told(tmp_path: Path) -> None:
    cloud = script(tmp_path, "import sys; sys.exit(100 * 'and so on ' + 'out of quota')")
    with pytest.raises(ProvisioningFailed, match="out of quota") as failed:
        await cloud.inventory()
    assert len(str(failed.value)) < 600


@pytest.mark.parametrize(
    "said",
    [
        "no json",
        json.dumps([]),
        json.dumps({"machines": []}),
        json.dumps({"machines": {}, "next_server": 1}),
        json.dumps({"machines": [{"name": "m", "cpu": 0, "memory_mb": 1}], "next_server": 1}),
        json.dumps({"machines": [{"nam": "m"}], "next_server": 1}),
        json.dumps({"servers": [{"machine": "m"}], "next_server": 1}),
        json.dumps({"next_server": 0}),
    ],
)
async def test_a_list_that_makes_no_sense_is_refused(tmp_path: Path, said: str) -> None:
    with pytest.raises(ProvisioningFailed, match="what is no inventory"):
        await script(tmp_path, f"print({said!r})").inventory()


async def test_a_script_that_is_not_there_is_said_so() -> None:
    with pytest.raises(ProvisioningFailed, match="cannot be run: No such file"):
        await ScriptProvisioner("/nowhere/cloud", 1.0).inventory()
