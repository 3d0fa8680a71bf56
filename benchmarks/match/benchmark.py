"""`utuple bench match`: EAs a second through the uTupleServer's template index, on one core, delivery lists
included: for each EF that is met, its id and its rows. No store, no wire.

    per_s_N            BlueDove's workload over N EFs, as four numbers in the data (JSON decoded)
    metadata_per_s_N   the same as latitude, longitude, time and one number in the data
    address_per_s_N    EFs for one address each, in the server's index, and EAs of all these devices;
                       `address_flatness` is the rate with the most EFs by that with the fewest: the work is the
                       same, but the memory is not at hand any more
    same_per_s_N       the same with EAs of as few devices as there are with the fewest EFs; their ratio is
                       `same_flatness`, which shows what the number of EFs alone does
    add_us, churn_us   taking in all EFs at once; cancelling one and registering it, with the most EFs
    churn_worst_ms     the longest of these steps
    index_mb           boxes and bitmaps of the most EFs
    ratio_brute_N      `per_s_N` over a compiled loop that compares every EA with every EF (`brute`), in the same run; the same pairs
                       must be found. `ratio_brute` is the least of those with many EFs, and what is judged: rates differ twofold from
                       one machine to the next
    ratio_numpy_N      the same over NumPy's comparison of all EFs at once

Everything is made once; each run measures all sizes in turn.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path

from benchmarks.benchmark import BenchFailed, Options, Say
from benchmarks.figures import Figures, Target
from benchmarks.match.brute import Brute
from benchmarks.match.workload import Kind, batch, formals
from utuple.model.columns import Columns
from utuple.model.packed import packed
from utuple.model.utuple import Kind as UTupleKind
from utuple.model.utuple import UTuple
from utuple.runtime.clock import monotonic_s
from utuple.server.matching.box_index import BoxIndex
from utuple.server.matching.index import TemplateIndex
from utuple.server.matching.kernels import Kernels
from utuple.server.matching.matched import Matches
from utuple.store.contract import StoredTemplate

_FAR_US = 1 << 60
_BATCHES = {Kind.NUMBERS: 4, Kind.METADATA: 4, Kind.ADDRESSES: 32}
"""Different ones: with addresses so many that they lead all over the memory."""
_SEED = 1


@dataclass(frozen=True, slots=True)
class Size:
    sizes: Sequence[int] = (1_000, 40_000, 100_000, 1_000_000)
    metadata: int = 40_000
    batch_rows: int = 8_192
    """As the SDK sends them."""
    most_matches: int = 8_000_000
    """In one batch: with a million EFs it is smaller."""
    window_s: float = 1.0
    churned: int = 20_000
    judged: Sequence[int] = (40_000, 1_000_000)
    """Numbers of EFs at which the index must be so much better than none."""
    compared: int = 100_000_000
    """Pairs of EF and EA, by brute force."""


QUICK = Size((1_000, 5_000), 2_000, 1_024, 8_000_000, 0.05, 500, (5_000,), 1_000_000)


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    match: Callable[[Columns], Matches]
    batches: Sequence[Columns]


@dataclass(frozen=True, slots=True)
class Boxes:
    index: BoxIndex
    templates: Sequence[UTuple]
    add_us: float
    brute: Brute
    few: Columns
    """So many EAs as are compared by brute force."""


class Match:
    def __init__(self, options: Options) -> None:
        self._size = QUICK if options.quick else Size()
        self.targets = (
            Target("ratio_brute", at_least=20),
            Target("address_flatness", at_least=0.5),
        )
        self.notes = {
            "ours": "nothing is stored: the index in memory alone, on one core",
            "brute": "every EF compared in turn, a loop compiled by numba, on one core",
            "numpy": "every EF compared at once, by NumPy, on one core",
        }
        self._cases: list[Case] = []
        self._boxes: dict[int, Boxes] = {}

    async def run(self, place: Path, say: Say) -> Figures:
        if not self._cases:
            await asyncio.to_thread(self._make, say)
        found: dict[str, float] = {}
        for case in self._cases:
            found |= await asyncio.to_thread(self._measure, case)
            say(f"{case.name}: {found[case.name]:,.0f} EA/s")
        for count, boxes in self._boxes.items():
            found |= await asyncio.to_thread(
                _beside_brute, found[f"per_s_{_k(count)}"], count, boxes
            )
            say(f"ratio_brute_{_k(count)}: {found[f'ratio_brute_{_k(count)}']:.1f}")
        found["ratio_brute"] = min(found[f"ratio_brute_{_k(n)}"] for n in self._size.judged)
        few, most = min(self._size.sizes), max(self._size.sizes)
        for ratio, name in (("address_flatness", "address"), ("same_flatness", "same")):
            found[ratio] = found[f"{name}_per_s_{_k(most)}"] / found[f"{name}_per_s_{_k(few)}"]
        largest = self._boxes[most]
        found["index_mb"] = largest.index.size_bytes / 1e6
        found["add_us"] = largest.add_us
        found |= await asyncio.to_thread(self._churn, largest)
        return found

    def _make(self, say: Say) -> None:
        kernels = Kernels()
        if not kernels.load():
            raise BenchFailed("numba is not installed: the index would run on NumPy alone")
        size = self._size
        cases = [
            *((f"per_s_{_k(n)}", Kind.NUMBERS, n) for n in size.sizes),
            (f"metadata_per_s_{_k(size.metadata)}", Kind.METADATA, size.metadata),
            *((f"address_per_s_{_k(n)}", Kind.ADDRESSES, n) for n in size.sizes),
        ]
        few = min(size.sizes)
        for name, kind, count in cases:
            say(f"{name}: making {count:,} EFs")
            templates = list(formals(kind, count, _SEED))
            met = 1 if kind is Kind.ADDRESSES else count / 256
            rows = min(size.batch_rows, round(size.most_matches / met))
            batches = [batch(kind, rows, count, _SEED + at) for at in range(_BATCHES[kind])]
            if kind is Kind.ADDRESSES:
                match = _index_of(templates, kernels)
                same = [batch(kind, rows, few, _SEED + at) for at in range(_BATCHES[kind])]
                self._cases.append(Case(f"same_per_s_{_k(count)}", match, same))
            else:
                index, add_us = _boxes(templates, batches[0], kernels)
                match = partial(index.match, now_us=0)
                if kind is Kind.NUMBERS:
                    few_rows = min(rows, max(1, size.compared // count))
                    self._boxes[count] = Boxes(
                        index,
                        templates,
                        add_us,
                        Brute(templates, few_rows),
                        batches[0].take(range(few_rows)),
                    )
            self._cases.append(Case(name, match, batches))
            gc.collect()
            gc.freeze()  # as the server does: millions of objects that stay

    def _measure(self, case: Case) -> dict[str, float]:
        rows, matches, taken_s = 0, 0, 0.0
        batches = cycle(case.batches)
        began_s = monotonic_s()
        while taken_s < self._size.window_s:
            columns = next(batches)
            matches += len(case.match(columns))
            rows += len(columns)
            taken_s = monotonic_s() - began_s
        if not matches:
            raise BenchFailed(f"{case.name}: no EA met an EF")
        each = case.name.replace("per_s", "matches_per_ea")
        return {case.name: rows / taken_s, each: matches / rows}

    def _churn(self, boxes: Boxes) -> dict[str, float]:
        """Cancelling and registering, one by one."""
        index = boxes.index
        worst_s = 0.0
        began_s = before_s = monotonic_s()
        for template in boxes.templates[: self._size.churned]:
            index.remove(template.id)
            index.add(template, _FAR_US)
            now_s = monotonic_s()
            worst_s, before_s = max(worst_s, now_s - before_s), now_s
        taken_s = before_s - began_s
        return {
            "churn_us": taken_s / self._size.churned * 1e6,
            "churn_worst_ms": worst_s * 1e3,
        }


def _beside_brute(per_s: float, count: int, boxes: Boxes) -> dict[str, float]:
    """The index's rate over those without an index."""
    ours = len(boxes.index.match(boxes.few, 0))
    found = {}
    for name, compare in (("brute", boxes.brute.in_turn), ("numpy", boxes.brute.at_once)):
        began_s = monotonic_s()
        pairs = compare(boxes.few)
        taken_s = monotonic_s() - began_s
        if pairs != ours:
            raise BenchFailed(f"{name} finds {pairs} pairs among {count:,} EFs, the index {ours}")
        found[f"{name}_per_s_{_k(count)}"] = len(boxes.few) / taken_s
        found[f"ratio_{name}_{_k(count)}"] = per_s * taken_s / len(boxes.few)
    return found


def _boxes(
    templates: Sequence[UTuple], columns: Columns, kernels: Kernels
) -> tuple[BoxIndex, float]:
    """The index, and what taking in a template took, in us."""
    index = BoxIndex(kernels)
    began_s = monotonic_s()
    index.add_many((template, _FAR_US) for template in templates)
    index.match(columns, 0)
    return index, (monotonic_s() - began_s) / len(templates) * 1e6


def _index_of(templates: Sequence[UTuple], kernels: Kernels) -> Callable[[Columns], Matches]:
    """EFs for one address never come to the index: the index has a dictionary of them, or cells."""
    kept = (StoredTemplate(packed(template), 0, _FAR_US) for template in templates)
    index = TemplateIndex(kept, kernels)
    return lambda columns: index.match(UTupleKind.EF, columns, 0)


def _k(count: int) -> str:
    return f"{count // 1_000_000}m" if count >= 1_000_000 else f"{count // 1_000}k"
