"""python -m tests.browser.screenshots FOLDER: pictures of the console for docs/, from a real cluster at work. `make screenshots`."""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
from pathlib import Path

import utuple
from tests.browser.chromium import Page, found, opened
from tests.system.cluster import running_cluster
from tests.system.http_door import door_before

PAGES = ("space", "servers", "map", "readers", "families", "plan")
_DRAWN_S = 3.0


async def feed(at: str) -> None:
    """Trucks, meters and buses around Tokyo; a few air conditioners; somebody who reads."""
    dice = random.Random(1)
    families = (("truck", "load", 40), ("meter", "power", 15), ("bus", "position", 5))
    async with utuple.connect(at) as space:

        async def aircon(number: int) -> None:
            place = (35.6 + number * 0.02, 139.6 + number * 0.02)
            async with space.serve(
                subject="aircon", type="power", address=f"room-{100 + number}", position=place
            ) as commands:
                async for _ in commands:
                    """Switched."""

        async def dispatcher() -> None:
            async with space.watch(subject="truck", type="load", reader="dispatch") as events:
                async for event in events:
                    await event.ack()

        async with asyncio.TaskGroup() as group:
            for number in range(4):
                group.create_task(aircon(number))
            group.create_task(dispatcher())
            while True:
                for subject, type_, count in families:
                    await space.emit_many(
                        {
                            "subject": subject,
                            "type": type_,
                            "address": f"{subject}-{dice.randrange(300)}",
                            "position": (35.6 + dice.gauss(0, 0.12), 139.7 + dice.gauss(0, 0.15)),
                            "data": {"kg": dice.randrange(3000)},
                        }
                        for _ in range(count)
                    )
                await asyncio.sleep(0.5)


async def pictures(page: Page, url: str, at: str, into: Path) -> None:
    feeding = asyncio.create_task(feed(at))
    await asyncio.sleep(4 * _DRAWN_S)
    for width, height, scheme, tail in ((1280, 860, "light", ""), (360, 740, "dark", "-phone")):
        page.size(width, height)
        page.scheme(scheme)
        for name in PAGES:
            page.ask("Page.navigate", url="about:blank")
            page.ask("Page.navigate", url=f"{url}/#{name}")
            await asyncio.sleep(_DRAWN_S)
            if name == "map":
                page.value("document.querySelector('.asks button.primary').click()")
                await asyncio.sleep(_DRAWN_S)
            if not tail or name in ("space", "map"):
                (into / f"console-{name}{tail}.png").write_bytes(page.picture())
    feeding.cancel()
    await asyncio.gather(feeding, return_exceptions=True)


def main(into: Path) -> None:
    program = found()
    assert program, "no Chromium: `make browser` installs it"
    with (
        tempfile.TemporaryDirectory() as place,
        running_cluster("--servers", "3") as cluster,
        door_before(cluster, Path(place), "--data", str(cluster.folder)) as door,
        opened(program, Path(place) / "profile") as page,
    ):
        assert cluster.run("server", "help", "server-3").code == 0
        asyncio.run(pictures(page, door.url, cluster.at, into))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
