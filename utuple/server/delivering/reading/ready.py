"""Stored searches that wait for their turn, the first come first. Those that may be made as one are found by what they have in
common: a reader of a thousand EFs whose stream was full wants them all at once. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable

from utuple.server.delivering.cursor import Reading
from utuple.store.contract import OWN_ORIGIN


class Ready:
    def __init__(self) -> None:
        self._queue: deque[Reading] = deque()
        """With those that were begun beside another, and those that were left off meanwhile: they are passed over."""
        self._waiting: dict[Hashable, dict[bytes, Reading]] = {}

    def __bool__(self) -> bool:
        return bool(self._queue)

    def put(self, reading: Reading) -> None:
        self._queue.append(reading)
        self._waiting.setdefault(_key(reading), {})[reading.formal] = reading

    def pop(self, committed: int, is_wanted: Callable[[Reading], bool]) -> Reading | None:
        """The next one, if there is any: not one whose last rows are yet to be committed."""
        for _ in range(len(self._queue)):
            reading = self._queue.popleft()
            if self._waiting.get(_key(reading), {}).get(reading.formal) is not reading:
                continue
            if not is_wanted(reading):
                self.begin([reading])
            elif reading.origin != OWN_ORIGIN or reading.upto <= committed:
                self.begin([reading])
                return reading
            else:
                self._queue.append(reading)
        return None

    def beside(self, reading: Reading) -> list[Reading]:
        """Those that wait and may be made as one with this one."""
        if reading.together is None:
            return []
        return list(self._waiting.get(_key(reading), {}).values())

    def begin(self, readings: Iterable[Reading]) -> None:
        """They do not wait any longer."""
        for reading in readings:
            alike = self._waiting[_key(reading)]
            del alike[reading.formal]
            if not alike:
                del self._waiting[_key(reading)]


def _key(reading: Reading) -> Hashable:
    alone = (reading.formal, reading.origin)
    return (reading.together, reading.upto) if reading.together is not None else alone
