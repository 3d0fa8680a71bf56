"""An application: watches heavy trucks around Tokyo, the stored readings first, then live ones.

    python examples/dispatch.py --at 127.0.0.1:7400

Stop it with Ctrl-C and start it again: because it reads under a name and acknowledges what it has dealt
with, it goes on where it was.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
from datetime import UTC, datetime, timedelta

import utuple
from utuple import Box, at_least


async def main(at: str, kg: int) -> None:
    async with utuple.connect(at) as space:
        async with space.watch(
            subject="truck",
            type="load",
            area=Box(35.3, 139.3, 36.1, 140.2),
            since=datetime.now(UTC) - timedelta(hours=1),
            where={"kg": at_least(kg)},
            reader="dispatch",
        ) as events:
            print(f"watching trucks with {kg} kg or more; Ctrl-C ends this")
            async for event in events:
                how = "stored" if event.stored else "live"
                print(f"{event.time:%H:%M:%S} {event.address} {event.data['kg']} kg ({how})")
                await event.ack()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--at", default="127.0.0.1:7400", help="any assignment manager")
    parser.add_argument("--kg", type=int, default=1_000)
    given = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(given.at, given.kg))
