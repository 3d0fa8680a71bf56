"""Inputs, what they reach in the code, and what breaks.

Coverage guides: an input that reaches a line no other has reached joins the corpus. Tracing costs ten times the reading, so only
every so many inputs are traced; one that was not stays untold, and a sister of it comes by later.
"""

from __future__ import annotations

import random
import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from tests.fuzz.mutating import mutated
from tests.fuzz.targets import Target

TRACED_EVERY = 40
CORPUS_MOST = 2000
BREAK_EVERY = 500
HANG_S = 1.0
_OURS = "/utuple/"


@dataclass
class Report:
    inputs: int = 0
    refused: int = 0
    lines: int = 0
    corpus: int = 0
    slowest_s: float = 0.0
    growth_mb: float = 0.0
    broken: list[str] = field(default_factory=list)
    """What was raised that was not promised, with the input."""


class Tracer:
    def __init__(self) -> None:
        self.lines: set[tuple[str, int]] = set()

    def __call__(self, frame: FrameType, event: str, arg: object) -> Any:
        code = frame.f_code
        if _OURS not in code.co_filename:
            return None
        if event == "line":
            self.lines.add((code.co_filename, frame.f_lineno))
        return self


def fuzz(target: Target, inputs: int, seed: int) -> Report:
    """In one thread, from a seed: the same every time."""
    report = Report()
    for _ in steps(target, inputs, seed, report):
        pass
    return report


def steps(target: Target, inputs: int, seed: int, report: Report) -> Iterator[None]:
    """The same, with breaks in which an event loop can forget the timers that were cancelled."""
    dice, tracer = random.Random(seed), Tracer()
    corpus = [b"", *target.seeds()]
    for data in corpus:
        _traced(target, data, tracer, report)
    before_kb = _peak_kb()
    for number in range(inputs):
        data = mutated(dice, corpus)
        if not number % BREAK_EVERY:
            yield
        if number % TRACED_EVERY:
            _tried(target, data, report)
            continue
        known = len(tracer.lines)
        _traced(target, data, tracer, report)
        if len(tracer.lines) > known and len(corpus) < CORPUS_MOST:
            corpus.append(data)
    report.inputs, report.lines, report.corpus = inputs, len(tracer.lines), len(corpus)
    report.growth_mb = (_peak_kb() - before_kb) / 1024


def _traced(target: Target, data: bytes, tracer: Tracer, report: Report) -> None:
    sys.settrace(tracer)
    try:
        _tried(target, data, report)
    finally:
        sys.settrace(None)


def _tried(target: Target, data: bytes, report: Report) -> None:
    began_s = time.process_time()  # what others make it wait for is not its own
    try:
        target.read(data)
    except target.refuses:
        report.refused += 1
    except Exception as error:  # noqa: BLE001  this is what is looked for
        report.broken.append(f"{type(error).__name__}: {error} by {data!r}")
    took_s = time.process_time() - began_s
    report.slowest_s = max(report.slowest_s, took_s)
    if took_s > HANG_S:
        report.broken.append(f"{took_s:.1f} s by {data!r}")


def _peak_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
