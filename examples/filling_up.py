"""A gateway that fills a store: watch another server take over (section 3.5 of the paper).

    utuple up --servers 2 --capacity 20MB --detach
    python examples/filling_up.py                  # until Ctrl-C, a megabyte a second by default
    utuple table; utuple status                    # beside it, again and again

When the store of the one server that has `tank level` passes T_m (0.8 of its capacity), the load monitor lets another one take over
what comes: in the table the first goes from 1 to 0, and the other appears with 1. What the first has stays there, and is found there,
until it expires; then it leaves the line. Nobody who emits or reads notices.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from contextlib import suppress

import utuple

NOTE = "x" * 900
"""So that an event takes about a kilobyte."""


async def main() -> None:
    parser = argparse.ArgumentParser(description="Fill a store.")
    parser.add_argument("--at", default="127.0.0.1:7400", help="an assignment manager")
    parser.add_argument("--subject", default="tank")
    parser.add_argument("--lifetime-s", type=float, default=300.0, help="of each event")
    parser.add_argument("--mb", type=float, default=0.0, help="in all; 0: until Ctrl-C")
    parser.add_argument("--mb-per-s", type=float, default=1.0)
    given = parser.parse_args()
    emitted, began_s = 0, time.monotonic()
    async with utuple.connect(given.at) as space:
        while not given.mb or emitted < given.mb * 1_000:
            events = [
                {
                    "subject": given.subject,
                    "type": "level",
                    "address": f"tank-{number % 100}",
                    "data": {"n": number, "note": NOTE},
                    "lifetime_s": given.lifetime_s,
                }
                for number in range(emitted, emitted + 500)
            ]
            emitted += await space.emit_many(events)
            print(f"{emitted} events, about {emitted // 1_000} MB", flush=True)
            due_s = began_s + emitted / 1_000 / given.mb_per_s
            await asyncio.sleep(max(0.0, due_s - time.monotonic()))


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
