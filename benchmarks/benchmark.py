"""What a benchmark is, as `utuple bench` sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.figures import Figures, Target
from utuple.errors import UTupleError

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

    async def run(self, place: Path, say: Say) -> Figures:
        """Measure once. Everything it starts lies in `place`, an empty folder, and has ended when this
        returns, however it returns."""
