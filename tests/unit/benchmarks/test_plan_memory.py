from __future__ import annotations

import os
import subprocess
import sys

from benchmarks.plan.memory import PeakMemory, resident_bytes


def test_the_memory_of_a_child_is_counted_while_it_lives() -> None:
    command = [sys.executable, "-c", "held = b'x' * 50_000_000; print('held', flush=True); input()"]
    before = resident_bytes(os.getpid())
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        assert resident_bytes(os.getpid()) - before > 50_000_000
        child.kill()


def test_the_peak_is_kept_when_what_had_it_is_gone() -> None:
    code = "held = b'x' * 50_000_000; import time; print(time.sleep(0.3))"
    peak = PeakMemory()
    with peak:
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert peak.most_bytes > 50_000_000
