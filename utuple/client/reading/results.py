"""What a `read` gives, as it comes and one by one; and how long it is waited for.

A wait begins when the caller asks for the next row and ends within `timeout_s`: with rows, or as failed. What the caller
does between two waits is its own time. Rows that were given before are none.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from itertools import repeat
from typing import Any, Protocol

from utuple.client.parts import Parts
from utuple.client.receiving.delivery import Chunk, Delivery
from utuple.errors import Unavailable

Batch = Sequence[Delivery]
"""Rows that came together; never none."""


class Unanswered:
    """The servers that are waited for, also after the wait was cut: to say who was silent then."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    @contextmanager
    def waiting_for(self, member: str) -> Iterator[None]:
        self._names.add(member)
        try:
            yield
        except asyncio.CancelledError:
            raise
        except BaseException:
            self._names.discard(member)
            raise
        self._names.discard(member)

    def among(self, members: Sequence[str]) -> list[str]:
        return [name for name in members if name in self._names] or list(members)


class BatchSource(Protocol):
    key: int
    unanswered: Unanswered

    def batches(self) -> AsyncGenerator[Batch, None]: ...


class StoredEvents(AsyncGenerator[Delivery, None]):
    """The events of a `read`, one by one; `batches` are the same as they come, for whoever takes these instead."""

    def __init__(self, parts: Parts, source: BatchSource) -> None:
        self.batches = _in_time(parts, source)
        self._each = _each(self.batches)

    def __aiter__(self) -> AsyncGenerator[Delivery, None]:
        return self._each

    def __anext__(self) -> Any:
        return self._each.__anext__()

    def asend(self, value: None) -> Any:
        return self._each.asend(value)

    def athrow(self, *error: Any) -> Any:
        return self._each.athrow(*error)

    def aclose(self) -> Any:
        return self._each.aclose()


def batch_of(chunk: Chunk, places: Sequence[int]) -> Batch:
    return list(map(Delivery, repeat(chunk), places, repeat(None)))


async def _each(batches: AsyncGenerator[Batch, None]) -> AsyncGenerator[Delivery, None]:
    async with aclosing(batches):
        async for batch in batches:
            for delivery in batch:
                yield delivery


async def _in_time(parts: Parts, source: BatchSource) -> AsyncGenerator[Batch, None]:
    """What is cut when the time is over ends its calls, and with them the servers' searches."""
    async with aclosing(source.batches()) as batches:
        while (batch := await _one_wait(parts, source, anext(batches, None))) is not None:
            yield batch


async def _one_wait(
    parts: Parts, source: BatchSource, more: Awaitable[Batch | None]
) -> Batch | None:
    try:
        async with asyncio.timeout_at(parts.tries().deadline_s):
            return await more
    except TimeoutError:
        line = parts.lines.known(source.key)
        if line is None:
            why = ": no assignment manager has said who serves this"
        else:
            unanswered = source.unanswered.among([member.name for member in line.members])
            why = f" from {', '.join(unanswered)}"
        limit_s = parts.config.timeout_s
        raise Unavailable(f"no rows came within {limit_s:g} s{why}") from None
