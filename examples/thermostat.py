"""A thermostat: rooms that are too warm have their air conditioner switched on, rooms that are cool again off.

python examples/thermostat.py --warm 27 --cool 24
"""

from __future__ import annotations

import argparse
import asyncio

import utuple


def wanted(degrees: float, on: bool, warm: float, cool: float) -> bool:
    """Two thresholds, so that a room in between is left as it is."""
    return degrees >= warm or (on and degrees > cool)


async def main(at: str, warm: float, cool: float, readings: int | None = None) -> dict[str, bool]:
    """Which rooms are on in the end; without `readings` it goes on for ever."""
    on: dict[str, bool] = {}
    seen = 0
    async with (
        utuple.connect(at) as space,
        space.watch(subject="room", type="temperature", reader="thermostat") as events,
    ):
        async for event in events:
            room, before = event.address, on.get(event.address, False)
            on[room] = wanted(event.data["degrees"], before, warm, cool)
            if on[room] != before:
                await space.command(
                    subject="aircon", type="power", address=room, data={"on": on[room]}
                )
                print(f"{room}: {'on' if on[room] else 'off'} at {event.data['degrees']} degrees")
            await event.ack()
            seen += 1
            if seen == readings:
                break
    return on


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--at", default="127.0.0.1:7400")
    options.add_argument("--warm", type=float, default=27.0)
    options.add_argument("--cool", type=float, default=24.0)
    given = options.parse_args()
    asyncio.run(main(given.at, given.warm, given.cool))
