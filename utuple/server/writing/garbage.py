"""Python's garbage collector in a server with very many EFs.

EFs live long and are in no cycle, but a full collection looks at each of them: with a million that takes longer than
anybody should wait. So they are frozen, which means that the collector never looks at them again."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from utuple.runtime.clock import monotonic_s

_FREEZE_FROM = 2_000
_FREEZE_GROWTH = 1.25
_FREEZE_MOST = 10_000
"""Everything alive is frozen each time the EFs and CAs have grown by this share, or by this many: to look through so many
takes some milliseconds. Cycles among what else is alive at that moment are never freed, so it is not done more often."""


class GarbageFreezer:
    def __init__(self) -> None:
        self._frozen = _FREEZE_FROM

    def note_templates(self, templates: int) -> None:
        if templates > min(self._frozen * _FREEZE_GROWTH, self._frozen + _FREEZE_MOST):
            self._frozen = templates
            gc.freeze()


@contextmanager
def no_collection() -> Iterator[None]:
    """No collection while a million EFs are loaded; they are frozen afterwards."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()


@contextmanager
def report_collections(told: Callable[[float], None]) -> Iterator[None]:
    """Calls `told` with the instant each collection began, when it has ended."""
    began_s = 0.0

    def noticed(phase: str, _: Mapping[str, int]) -> None:
        nonlocal began_s
        if phase == "start":
            began_s = monotonic_s()
        else:
            told(began_s)

    gc.callbacks.append(noticed)
    try:
        yield
    finally:
        gc.callbacks.remove(noticed)
