"""python -m benchmarks.chaos.load '{"program": "sensors-1", …}': a process of users, started by `utuple chaos`.

SIGUSR1 says that faults are over: whoever is away comes back, and nobody leaves. SIGTERM ends it in order.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable

from benchmarks.chaos.load.devices import serve
from benchmarks.chaos.load.part import Part, Stay, User, part_from
from benchmarks.chaos.load.sensors import sense
from benchmarks.chaos.load.watchers import AUDIENCE, READER, watch
from benchmarks.chaos.schedule import role_of
from utuple.runtime.program import run_program

ROLES: dict[str, Callable[[User], Awaitable[None]]] = {
    "sensors": sense,
    "audience": lambda user: watch(user, AUDIENCE),
    "reader": lambda user: watch(user, READER),
    "devices": serve,
}


async def play(part: Part, over: asyncio.Event) -> None:
    calm = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, calm.set)
    user = User(part, Stay(calm, over))
    await ROLES[role_of(part.program)](user)


def main() -> int:
    part = part_from(sys.argv[1])
    return run_program(part.program, lambda over: play(part, over))


if __name__ == "__main__":
    sys.exit(main())
