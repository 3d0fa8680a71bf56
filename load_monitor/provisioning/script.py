"""A script of yours makes servers and machines: `kind = "exec"`, for any cloud.

    COMMAND list                                what there is, as JSON: {"machines": [{"name", "cpu", "memory_mb", "ready"}],
                                                "servers": [{"name", "machine"}], "next_server": a number no server has had}
    COMMAND create-machine NAME CPU MEMORY_MB   one of that name that is there stays as it is
    COMMAND delete-machine NAME
    COMMAND create-server NAME MACHINE          starts a uTupleServer of that name there
    COMMAND delete-server NAME                  it is in no line any more
    COMMAND hold HOLDER SECONDS                 exit code 0: this controller acts for so long; 1: another one does

Exit code 0: done, or under way; any other, with the reason on standard error: it is asked for again. One that takes longer than
`limit_s` is killed, and asked again.
"""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from load_monitor.elastic.controller import Placing
from load_monitor.elastic.seen import Inventory, Machine, Provisioned
from load_monitor.provisioning.contract import ProvisioningFailed
from utuple.errors import InvalidInput
from utuple.model.settings import build, whole

_SAID_MAX = 500
"""Of what a script says about its failure."""
_NUMBER_MAX = 10**9
_HELD_FOR_S = 60


class ScriptProvisioner:
    def __init__(self, command: str, limit_s: float) -> None:
        self._command = shlex.split(command)
        self._limit_s = limit_s

    @property
    def placing(self) -> Placing:
        return Placing()

    async def hold(self, holder: str) -> bool:
        code, _, said = await self._run("hold", holder, str(_HELD_FOR_S))
        if code not in (0, 1):
            raise ProvisioningFailed(f"hold ended with {code}: {said}")
        return code == 0

    async def inventory(self) -> Inventory:
        try:
            return _inventory(json.loads(await self._must("list")))
        except ValueError as error:
            raise ProvisioningFailed(f"list said what is no inventory: {error}") from None

    async def create_machine(self, machine: Machine) -> None:
        size = str(machine.cpu), f"{machine.memory_mb:g}"
        await self._must("create-machine", machine.name, *size)

    async def delete_machine(self, name: str) -> None:
        await self._must("delete-machine", name)

    async def create_server(self, name: str, machine: str) -> None:
        await self._must("create-server", name, machine)

    async def delete_server(self, name: str) -> bool:
        await self._must("delete-server", name)
        return True

    async def close(self) -> None:
        return

    async def _must(self, *arguments: str) -> str:
        code, output, said = await self._run(*arguments)
        if code:
            raise ProvisioningFailed(f"{arguments[0]} ended with {code}: {said}")
        return output

    async def _run(self, *arguments: str) -> tuple[int, str, str]:
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=pipe,
                stderr=pipe,
            )
        except OSError as error:
            raise ProvisioningFailed(
                f"{self._command[0]} cannot be run: {error.strerror}"
            ) from None
        try:
            async with asyncio.timeout(self._limit_s):
                output, said = await process.communicate()
        except TimeoutError:
            raise ProvisioningFailed(
                f"{arguments[0]} took longer than {self._limit_s:g} s"
            ) from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        code = process.returncode
        assert code is not None
        return (
            code,
            output.decode(errors="replace"),
            said.decode(errors="replace")[-_SAID_MAX:].strip(),
        )


def _inventory(told: object) -> Inventory:
    if not isinstance(told, Mapping):
        raise InvalidInput("list", told, "must be an object")
    next_server = told.get("next_server")
    whole("next_server", next_server, 1, _NUMBER_MAX)
    assert isinstance(next_server, int)
    return Inventory(
        tuple(build(Machine, "machines", machine) for machine in _list(told, "machines")),
        tuple(build(Provisioned, "servers", server) for server in _list(told, "servers")),
        next_server,
    )


def _list(told: Mapping[str, Any], key: str) -> list[Any]:
    found = told.get(key, [])
    if not isinstance(found, list):
        raise InvalidInput(key, found, "must be a list")
    return found
