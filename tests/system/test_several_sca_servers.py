"""Section 3.2 of the paper, live: sCA servers join, are killed and leave, and every connected device is commanded. On a secured
cluster, where one that joins also needs credentials and the grants; the virtual cluster and `utuple bench shares` try it without."""

from __future__ import annotations

import asyncio
from typing import Any

import utuple
from utuple.admin import transport
from utuple.local.temporary import cluster

ROOMS = [f"room-{number}" for number in range(40)]
POWER: dict[str, Any] = {"subject": "aircon", "type": "power"}


async def test_every_connected_device_is_commanded_while_sca_servers_come_and_go() -> None:
    async with cluster(servers=1, secure=True) as running:
        await running.grant_operator_everything()
        at, operator = running.managers, str(running.folder.trust.operator)
        async with (
            utuple.connect(*at, credentials=operator) as gateway,
            utuple.connect(*at, credentials=operator) as app,
        ):
            devices = [await gateway.serve(**POWER, address=room).open() for room in ROOMS]
            sent = 0

            async def command_all() -> None:
                nonlocal sent
                sent += 1
                receipts = await asyncio.gather(
                    *(app.command(**POWER, address=room, data={"n": sent}) for room in ROOMS)
                )
                assert [receipt.handed_over for receipt in receipts] == [1] * len(ROOMS)

            await command_all()
            second = await running.add_sca()
            while await shared_with(second.address) != 2:
                await command_all()
            await command_all()
            running.kill(second.name)
            await command_all()
            assert await shared_with(running.address_of("sca-1")) == 1
            await running.revive(second.name)
            while await shared_with(second.address) != 2:
                await command_all()
            await running.remove_sca("sca-1")
            await command_all()
            status = await transport.sca_status(second.address)
            assert status is not None and status.connected == len(ROOMS)
            for device in devices:
                got = [command.data["n"] for command in await device.take(sent + 1, timeout_s=5)]
                assert got == list(range(1, sent + 1))


async def shared_with(address: str) -> int:
    """Among how many this sCA server shares the devices out; 0: it does not answer."""
    status = await transport.sca_status(address)
    return 0 if status is None else len(status.scas)
