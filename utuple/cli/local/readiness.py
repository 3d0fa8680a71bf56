"""Is the cluster ready? The table is whole at a manager, every server and the sCA server serve, the monitor
watches."""

from __future__ import annotations

import asyncio

from utuple.cli import transport
from utuple.cli.local.layout import Layout, Program, Role
from utuple.cluster.line import ServerInfo, first_table

SERVING = "serving"
_READY = (SERVING, "watching")
ASK_AGAIN_S = 0.1


async def not_ready(layout: Layout) -> list[str]:
    """What is still waited for, as words for a person; empty when ready."""
    asked = await asyncio.gather(_table_waits(layout), *map(_waits_for, layout.programs))
    return [said for said in asked if said]


async def _table_waits(layout: Layout) -> str:
    answers = await asyncio.gather(*map(transport.table, layout.manager_addresses))
    whole = any(answer is not None and answer.whole for answer in answers)
    return "" if whole else "the assignment table is not whole"


async def _waits_for(program: Program) -> str:
    state = await _state_of(program)
    if state in _READY:
        return ""
    return f"{program.name} does not answer" if state is None else f"{program.name} is {state}"


async def _state_of(program: Program) -> str | None:
    if program.role is Role.MANAGER:
        return SERVING if await transport.table(program.address) is not None else None
    if program.role is Role.MONITOR:
        monitor = await transport.monitor_status(program.address)
        return monitor.state if monitor is not None else None
    ask = transport.server_status if program.role is Role.SERVER else transport.sca_status
    status = await ask(program.address)
    return status.state if status is not None else None


async def give_first_table(layout: Layout) -> None:
    """To every server, again and again until each has answered; to have it already is an answer."""
    servers = layout.of_role(Role.SERVER)
    lines = first_table(layout.server_names)
    infos = [ServerInfo(server.name, server.address) for server in servers]
    waiting = [server.address for server in servers]
    while waiting:
        answers = await asyncio.gather(
            *(transport.adopt(address, lines, infos) for address in waiting)
        )
        waiting = [a for a, adopted in zip(waiting, answers, strict=True) if not adopted]
        if waiting:
            await asyncio.sleep(ASK_AGAIN_S)
