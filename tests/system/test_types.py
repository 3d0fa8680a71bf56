"""The public face as a user's type checker sees it: mypy, run on programs that import nothing but `utuple`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MYPY_LIMIT_S = 300

ASYNC = """
from datetime import datetime
import utuple
from utuple import Box, Circle, Delivery, Device, DeviceReceipt, Receipt, Receipts, Space, Watch
from utuple import at_least, between, one_of, prefix

async def heaviest(space: Space, area: Box | Circle) -> Delivery | None:
    found: Delivery | None = None
    async for event in space.read(subject="truck", type="load", area=area, where={"kg": at_least(1)}):
        if found is None or event.data["kg"] > found.data["kg"]:
            found = event
    return found

def watched(space: utuple.Space) -> utuple.Watch:
    return space.watch(subject="truck", type="load", address=prefix("truck-"), reader="dispatch")

def served(space: Space) -> Device:
    return space.serve(subject="aircon", type="power", address="room-101")

async def follow(events: Watch) -> None:
    async for event in events:
        when: datetime = event.time
        print(when, event.address)
        await event.ack()

async def off(space: Space) -> Receipt:
    many: Receipts = await space.command_many([])
    each: list[Receipt] = list(many)
    receipt = await space.command(subject="a", type="b", address=one_of("x", "y"), data={})
    missed: list[DeviceReceipt] = [one for one in receipt.devices if not one.handed_over]
    print(each, missed, between("a", "b"))
    return receipt

async def main() -> None:
    async with utuple.connect("127.0.0.1:7400") as space:
        reveal_type(space)
        reveal_type(await space.emit(subject="a", type="b", address="c", data={}))
"""

BLOCKING = """
import utuple
from utuple.blocking import Delivery, Device, Reading, Receipt, Space, Watch, connect

def heaviest(space: Space) -> Delivery | None:
    stored: Reading = space.read(subject="truck", type="load", limit=100, newest_first=True)
    return max(stored, key=lambda event: float(event.data["kg"]), default=None)

def follow(events: Watch, commands: Device) -> None:
    for event in events:
        event.ack()
    some: list[Delivery] = commands.take(10, timeout_s=1.5)
    print(some, events.next(timeout_s=1))

def off(space: utuple.blocking.Space) -> Receipt:
    return space.command(subject="a", type="b", everywhere=True, data={})

with connect("127.0.0.1:7400") as space:
    reveal_type(space.emit(subject="a", type="b", address="c", data={}))
    reveal_type(space.emit_many([]))
    reveal_type(space.watch(subject="a", type="b"))
    reveal_type(space.serve(subject="a", type="b", address="c"))
    reveal_type(space.read(subject="a", type="b"))
    reveal_type(space.command(subject="a", type="b", address="c", data={}))
    space.emit(subject="a", type="b", address="c", dta={})
"""

TYPO = "from utuple import Circel\n"
TYPO_OF_ATTRIBUTE = "import utuple\nprint(utuple.conect)\n"


def checked(tmp_path: Path, **programs: str) -> dict[str, list[str]]:
    """What mypy says of each, by one run."""
    for name, text in programs.items():
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "mypy.ini").write_text(f"[mypy]\nstrict = True\nmypy_path = {ROOT}\n")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--follow-imports=silent",
            *(f"{name}.py" for name in programs),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=MYPY_LIMIT_S,
        check=False,
    )
    assert done.stderr == ""
    said: dict[str, list[str]] = {name: [] for name in programs}
    for name, what in re.findall(r"^(\w+)\.py:\d+: (.*)$", done.stdout, re.MULTILINE):
        said[name].append(what)
    return said


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    programs = {
        "asynchronous": ASYNC,
        "blocking": BLOCKING,
        "typo": TYPO,
        "typo_of_attribute": TYPO_OF_ATTRIBUTE,
    }
    return checked(tmp_path_factory.mktemp("programs"), **programs)


def test_a_program_can_be_annotated_with_the_public_types(said: dict[str, list[str]]) -> None:
    assert said["asynchronous"] == [
        'note: Revealed type is "utuple.client.space.Space"',
        'note: Revealed type is "None"',
    ]


@pytest.mark.parametrize(("program", "name"), [("typo", "Circel"), ("typo_of_attribute", "conect")])
def test_a_misspelt_name_is_an_error(said: dict[str, list[str]], program: str, name: str) -> None:
    [error, *_] = said[program]
    assert error.startswith("error: Module") and f'"{name}"' in error


def test_blocking_verbs_give_what_the_others_give_when_awaited(said: dict[str, list[str]]) -> None:
    notes = [line for line in said["blocking"] if "Revealed type" in line]
    assert [line.split('"')[1].removeprefix("utuple.client.") for line in notes] == [
        "None",
        "int",
        "blocking.space.Watch",
        "blocking.space.Device",
        "blocking.space.Reading",
        "sending.receipt.Receipt",
    ]


def test_a_misspelt_argument_of_a_blocking_verb_is_an_error(said: dict[str, list[str]]) -> None:
    errors = [line for line in said["blocking"] if line.startswith("error")]
    assert len(errors) == 1 and '"dta"' in errors[0]
