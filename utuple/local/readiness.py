"""Is the cluster ready? The table is whole at a manager, every server and the sCA server serve, the monitor
watches, the doors listen."""

from __future__ import annotations

import asyncio

from utuple.admin import transport
from utuple.admin.founding import found, looked_at
from utuple.cluster.line import ServerInfo
from utuple.local.layout import DOORS, HOST, Layout, Program, Role

SERVING = "serving"
_READY = (SERVING, "watching")


async def not_ready(layout: Layout) -> list[str]:
    """What is still waited for, as words for a person; empty when ready."""
    asked = await asyncio.gather(_table_waits(layout), *map(waits_for, layout.programs))
    return [said for said in asked if said]


async def _table_waits(layout: Layout) -> str:
    answers = await asyncio.gather(*map(transport.table, layout.manager_addresses))
    whole = any(answer is not None and answer.whole for answer in answers)
    return "" if whole else "the assignment table is not whole"


async def waits_for(program: Program) -> str:
    state = await _state_of(program)
    if state in _READY:
        return ""
    return f"{program.name} does not answer" if state is None else f"{program.name} is {state}"


async def _state_of(program: Program) -> str | None:
    if program.role is Role.MANAGER:
        return SERVING if await transport.table(program.address) is not None else None
    if program.role in DOORS:
        return SERVING if await _listens(program) else None
    if program.role is Role.MONITOR:
        monitor = await transport.monitor_status(program.address)
        return monitor.state if monitor is not None else None
    ask = transport.server_status if program.role is Role.SERVER else transport.sca_status
    status = await ask(program.address)
    return status.state if status is not None else None


async def _listens(door: Program) -> bool:
    """A door asks the cluster before it listens."""
    try:
        _, writer = await asyncio.open_connection(HOST, door.port)
    except OSError:
        return False
    writer.close()
    return True


async def give_first_table(layout: Layout) -> None:
    """To a cluster that has none; one that has keeps it."""
    infos = [ServerInfo(server.name, server.address) for server in layout.of_role(Role.SERVER)]
    await found(layout.server_names, lambda: looked_at(infos), lambda said: None)
