"""Processor time of processes, as the system counts it."""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks.machine import family_cpu_s, process_cpu_s

BUSY = "import time\nwhile time.process_time() < 0.2: pass"


def test_a_family_counts_children_that_have_ended() -> None:
    before_s, own_s = family_cpu_s(os.getpid()), process_cpu_s(os.getpid())
    subprocess.run([sys.executable, "-c", BUSY], check=True)
    assert family_cpu_s(os.getpid()) - before_s >= 0.15
    assert process_cpu_s(os.getpid()) - own_s < 0.15


def test_a_process_that_has_gone_has_used_nothing() -> None:
    assert process_cpu_s(2**30) == 0 == family_cpu_s(2**30)
