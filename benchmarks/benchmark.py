"""What a benchmark is, as `utuple bench` sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from benchmarks.figures import Figures, Target
from utuple.errors import UTupleError

OURS_ARE_DURABLE = "every uTuple of a lifetime is on disk (fsync) before its answer"

Say = Callable[[str], None]
"""Progress, for a person."""


class BenchFailed(UTupleError):
    """Nothing could be measured; the message says why."""


@dataclass(frozen=True, slots=True)
class Options:
    quick: bool = False
    """Small and short: whether it works, not how fast it is."""


class Benchmark(Protocol):
    @property
    def targets(self) -> Sequence[Target]: ...

    @property
    def notes(self) -> Mapping[str, str]:
        """What was durable and what was not, by name: `ours`, and each rival. May be asked after the runs."""

    async def run(self, place: Path, say: Say) -> Figures:
        """Measure once. Everything it starts lies in `place`, an empty folder, and has ended when this
        returns, however it returns."""


@runtime_checkable
class Prepared(Protocol):
    """A benchmark whose runs share what takes long to make."""

    def prepared(self, place: Path, say: Say) -> AbstractAsyncContextManager[None]:
        """Around all runs. Everything it starts lies in `place`, and has ended when it is left."""
