"""The garbage collector in a server with very many EFs: they live long and are in no cycle, and looking through a
million of them takes it longer than anybody should wait."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from utuple.runtime.clock import monotonic_s

_FREEZE_FROM = 2_000
_FREEZE_GROWTH = 1.25
_FREEZE_MOST = 10_000
"""Each time the EFs and CAs have grown by this they are taken out of its sight: so many take it some milliseconds.
Of what else is alive at that moment, cycles are never freed, so it is not done more often."""


class Garbage:
    def __init__(self) -> None:
        self._frozen = _FREEZE_FROM

    def grown_to(self, templates: int) -> None:
        if templates > min(self._frozen * _FREEZE_GROWTH, self._frozen + _FREEZE_MOST):
            self._frozen = templates
            gc.freeze()


@contextmanager
def no_collection() -> Iterator[None]:
    """While a million EFs come into memory; they are out of sight afterwards."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()


@contextmanager
def collections_told(told: Callable[[float], None]) -> Iterator[None]:
    """Since when, each time one has ended."""
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
