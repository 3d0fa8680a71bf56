"""Whether messages that are sent again (DUP) are there already.

When a door was killed its clients come to another one, each with all it has not heard of: tens of thousands of messages at once. So they are looked
for together: those of a family with one reading, and few readings at a time. With a reading for each of them, all would wait for one another until
none is answered in time, and be asked again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import utuple
from utuple.doors.mqtt.mapped.identity import made_ms, tag_of_id
from utuple.doors.mqtt.mapped.mapping import Event, Family
from utuple.runtime.logs import Log
from utuple.runtime.tasks import Tasks

_log = Log("utuple.doors.mqtt.sent_again")

WITHIN = timedelta(hours=1)
"""A message that is sent again after longer than this is registered again."""
_LOOKED_THROUGH = 500
"""Of an address, its newest events."""
_TOGETHER = 100
"""Messages that are looked for with one reading: it may have to look through so many times as many events."""
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.05, 2.0


class _Asked(NamedTuple):
    address: str
    tag: int
    times: asyncio.Future[int]


class SentAgain:
    def __init__(self, space: utuple.Space, readings: int) -> None:
        """`readings`: at most, at once."""
        self._space = space
        self._most = readings
        self._readings = 0
        self._waiting: dict[Family, list[_Asked]] = {}
        self._tasks = Tasks()

    async def times_there(self, place: Event, tag: int) -> int:
        """How often it is registered."""
        asked = _Asked(place.address, tag, asyncio.get_running_loop().create_future())
        self._waiting.setdefault(place.family, []).append(asked)
        if self._readings < self._most:
            self._readings += 1
            self._tasks.start(self._read(), "looking for messages sent again")
        return await asked.times

    async def close(self) -> None:
        await self._tasks.close()

    async def _read(self) -> None:
        """Family after family while somebody asks: those that ask meanwhile are asked for together."""
        try:
            while self._waiting:
                family = next(iter(self._waiting))
                asked = self._waiting.pop(family)
                if rest := asked[_TOGETHER:]:
                    self._waiting[family] = rest
                await self._find(family, asked[:_TOGETHER])
        finally:
            self._readings -= 1

    async def _find(self, family: Family, asked: list[_Asked]) -> None:
        try:
            addresses = {one.address for one in asked}
            times, is_all = await self._times(family, addresses)
            for address in addresses:
                if not is_all and len(addresses) > 1:  # another's events may have hidden its own
                    times, _ = await self._times(family, {address})
                for one in asked:
                    if one.address == address and not one.times.done():
                        one.times.set_result(times[one.tag])
        except Exception as error:  # noqa: BLE001  it is theirs who ask
            for one in asked:
                if not one.times.done():
                    one.times.set_exception(error)

    async def _times(self, family: Family, addresses: Collection[str]) -> tuple[Counter[int], bool]:
        """By tag; and whether these are all events that there are."""
        oldest_ms = (datetime.now(UTC) - WITHIN).timestamp() * 1000
        limit = _LOOKED_THROUGH * len(addresses)
        wait_s = _FIRST_WAIT_S
        while True:
            found, rows = Counter[int](), 0
            try:
                async for one in self._space.read(
                    subject=family.subject,
                    type=family.type,
                    address=utuple.one_of(*addresses),
                    newest_first=True,
                    limit=limit,
                ):
                    rows += 1
                    found[tag_of_id(one.id)] += made_ms(one.id) >= oldest_ms
                return found, rows < limit
            except (utuple.InvalidInput, utuple.NotAllowed):
                # Registering it will say why; who may not read what he emits may emit it twice.
                return Counter(), True
            except utuple.NotRegistered as error:
                _log.warning("space does not answer", messages=len(addresses), reason=error)
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
