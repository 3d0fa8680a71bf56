"""What many seeds came to, in a page."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator

from tests.virtual.coverage import (
    BETWEEN_SERVERS,
    HARDEST,
    KINDS,
    calls_wanted,
    ends_wanted,
    steps_wanted,
    wanted,
)
from tests.virtual.run import Result


class Summary:
    def __init__(self, seeds: int) -> None:
        self._seeds = seeds
        self._done = 0
        self._counts: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()
        self._registered = self._expected = self._delivered = self._steps = 0
        self._cpu_s = 0.0
        self._failing: list[int] = []
        self._digest = hashlib.blake2b(digest_size=8)

    def add(self, result: Result) -> None:
        self._done += 1
        self._digest.update(result.history.encode())
        self._counts += result.counts
        self._registered += result.verdict.registered
        self._expected += result.verdict.expected
        self._delivered += result.verdict.delivered
        self._steps += result.steps
        self._cpu_s += result.cpu_s
        for kind, found in result.verdict.findings.items():
            self._kinds[kind] += len(found)
        self._kinds["bugs"] += len(result.wrong)
        if result.violations:
            self._failing.append(result.seed)

    @property
    def violations(self) -> int:
        return self._kinds.total()

    @property
    def is_clean(self) -> bool:
        return not self.violations

    @property
    def uncovered(self) -> list[str]:
        """What should have been met, and was not."""
        return [name for name in wanted() if not self._counts[name]]

    def text(self, seconds: float) -> str:
        faults = {name: n for name, n in self._counts.items() if name.startswith("fault ")}
        known = {*faults, *wanted()}
        others = {name: n for name, n in self._counts.items() if name not in known}
        rows = [
            f"seeds       {self._done}",
            f"faults      {sum(faults.values())}",
            *(f"  {number:6} {name.removeprefix('fault ')}" for name, number in _most(faults)),
            "also",
            *(f"  {number:6} {name}" for name, number in _most(others)),
            "moves       completed aborted planned   (- : cannot be; planned: orders of a monitor that were accepted)",
            *(
                self._row(kind.value, _spread(row), 3)
                for kind, row in zip(KINDS, ends_wanted(), strict=True)
            ),
            *self._coverage(),
            f"registered  {self._registered}",
            f"expected    {self._expected} deliveries; {self._delivered} came, due or not",
            f"violations  {self.violations} {dict(+self._kinds) or ''}",
        ]
        if self._failing:
            rows.append(f"failing     {' '.join(map(str, self._failing[:40]))}")
        per_seed = f"{self._cpu_s / max(1, self._done):.3f} s of CPU and {self._steps // max(1, self._done)} steps a seed"
        rows.append(
            f"seconds     {seconds:.1f} ({self._done / max(seconds, 1e-9):.2f} seeds/s, {per_seed})"
        )
        rows.append(f"digest      {self._digest.hexdigest()}")
        return "\n".join(rows)

    def _coverage(self) -> Iterator[str]:
        names = wanted()
        yield f"coverage    {len(names) - len(self.uncovered)} of {len(names)}"
        yield "  crash around a call: caller before, after its delivery; callee before, after"
        for method, row in zip(BETWEEN_SERVERS, calls_wanted(), strict=True):
            yield self._row(method, row, 4)
        yield "  crash in a move: home learning, committed; other side learning, committed"
        for kind, row in zip(KINDS, steps_wanted(), strict=True):
            yield self._row(kind.value, row, 4)
        for name in HARDEST:
            yield f"  {name:52}{self._counts[name] or 'ZERO':>8}"

    def _row(self, name: str, counters: list[str], columns: int) -> str:
        numbers = [str(self._counts[counter] or "ZERO") if counter else "-" for counter in counters]
        numbers += ["-"] * (columns - len(numbers))
        return f"  {name:20}" + "".join(f"{number:>8}" for number in numbers)


def _spread(row: list[str]) -> list[str]:
    """Completed, aborted if it can be, planned."""
    aborted = next((name for name in row if name.endswith(" aborted")), "")
    return [row[0], aborted, next((name for name in row if name.startswith("planned ")), "")]


def _most(counts: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
