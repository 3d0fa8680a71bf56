"""A sensor program: emits a few readings of a truck's load, then ends.

utuple up                        # in another terminal
python examples/sensor.py --at 127.0.0.1:7400
"""

from __future__ import annotations

import argparse
import asyncio
import random

import utuple


async def main(at: str, truck: str, readings: int, every_s: float) -> None:
    async with utuple.connect(at) as space:
        latitude, longitude = 35.68, 139.76
        for _ in range(readings):
            latitude += random.uniform(-0.01, 0.01)
            longitude += random.uniform(-0.01, 0.01)
            kg = random.randrange(0, 4_000, 100)
            await space.emit(
                subject="truck",
                type="load",
                address=truck,
                position=(latitude, longitude),
                data={"kg": kg},
                lifetime_s=3_600,
            )
            print(f"{truck} carries {kg} kg at {latitude:.3f}, {longitude:.3f}")
            await asyncio.sleep(every_s)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--at", default="127.0.0.1:7400", help="any assignment manager")
    parser.add_argument("--truck", default="truck-17")
    parser.add_argument("--readings", type=int, default=5)
    parser.add_argument("--every-s", type=float, default=0.5)
    given = parser.parse_args()
    asyncio.run(main(given.at, given.truck, given.readings, given.every_s))
