"""An alarm for bad air: whoever emits (air, pm25) in a place is watched, and sirens there are sounded while it is bad.

python examples/air_quality.py --area 30.27,-97.74,5km --above 35
"""

from __future__ import annotations

import argparse
import asyncio

import utuple
from utuple import Circle, at_least


async def main(at: str, area: Circle, above: float, alarms: int | None = None) -> int:
    """How many alarms were given; without `alarms` it goes on for ever."""
    given = 0
    async with (
        utuple.connect(at) as space,
        space.watch(
            subject="air",
            type="pm25",
            area=area,
            where={"ug_m3": at_least(above)},
            reader="air-quality-alarm",
        ) as bad,
    ):
        async for event in bad:
            receipt = await space.command(
                subject="siren", type="sound", area=area, data={"because": event.address}
            )
            print(f"{event.address}: {event.data['ug_m3']} µg/m³; sirens: {receipt.handed_over}")
            await event.ack()
            given += 1
            if given == alarms:
                break
    return given


def place(text: str) -> Circle:
    """lat,lon,radius"""
    lat, lon, radius = text.split(",")
    metres = float(radius.removesuffix("km")) * 1000 if radius.endswith("km") else float(radius)
    return Circle(float(lat), float(lon), metres)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--at", default="127.0.0.1:7400")
    options.add_argument("--area", type=place, default="30.27,-97.74,5km")
    options.add_argument("--above", type=float, default=35.0)
    given = options.parse_args()
    asyncio.run(main(given.at, given.area, given.above))
