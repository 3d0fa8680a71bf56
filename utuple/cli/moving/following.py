"""Looking at the cluster again and again, until something is so or a limit comes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Sequence

from utuple.cli.records import Shown, ends, sentence
from utuple.cli.snapshot import Snapshot, snapshot_of
from utuple.cluster.line import Line
from utuple.errors import Unavailable
from utuple.runtime.clock import monotonic_s

LOOK_S = 0.5
"""A person watches."""

Say = Callable[[str], None]


async def looks(
    addresses: Sequence[str], limit_s: float, every_s: float = LOOK_S
) -> AsyncIterator[Snapshot]:
    """The cluster as it is now, and again, until the limit. Managers that do not answer are waited for:
    what was begun goes on without them."""
    deadline_s = monotonic_s() + limit_s
    while True:
        try:
            yield await snapshot_of(addresses)
        except Unavailable:
            if monotonic_s() >= deadline_s:
                raise
        if monotonic_s() >= deadline_s:
            return
        await asyncio.sleep(every_s)


def speaker(json: bool) -> Say:
    """Words for a person: beside the JSON, not in it."""

    def say(said: str) -> None:
        print(said, file=sys.stderr if json else sys.stdout, flush=True)

    return say


class Told:
    """Says a thing when it, or its gist, differs from what was said last."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._last = ""

    def __call__(self, said: str, gist: str = "") -> None:
        if (gist or said) != self._last:
            self._last = gist or said
            self._say(said)


def line_said(line: Line) -> str:
    """As `utuple table` shows it."""
    flags = (f"{m.name} {'?' if m.suspended else int(m.accumulatable)}" for m in line.members)
    return (
        f"{line.section.start:016x} – {line.section.end - 1:016x}  epoch {line.epoch}  "
        f"{', '.join(flags)}"
    )


def summary(move: Shown) -> str:
    """What a move that was made did, and what it cost."""
    return (
        f"{sentence(move)}, in the section {' – '.join(ends(move))}: {move['seconds']:.2f} s, "
        f"{move['copied']:,} EFs and CAs copied, registering them held back for "
        f"{move['held_back_ms']:.0f} ms, {move['rows']:,} uTuples brought over"
    )
