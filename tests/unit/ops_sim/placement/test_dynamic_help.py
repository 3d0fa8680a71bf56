"""The alarms of the simulated monitor."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from load_monitor.planning.policy import Policy
from load_monitor.window import Sample, Window
from ops_sim.placement.dynamic_help import raised

POLICY = Policy()


@given(st.lists(st.floats(0.0, 1.5), min_size=1, max_size=8), st.floats(0.0, 1.5))
def test_the_alarms_are_those_of_the_monitors_window_once_a_load_is_steady(
    loads: list[float], memory: float
) -> None:
    window, now_s = Window(POLICY), 0.0
    busy = full = np.zeros(1, np.bool_)
    for load in loads:
        for _ in range(200):  # steady, long enough for the average and for hold_s
            now_s += 1.0
            window.heard(Sample("a", min(1.0, load), load, int(memory * 1e6), 10**6), now_s)
        (seen,) = window.loads(now_s)
        load_now = np.array([seen.processing])
        busy = raised(busy, load_now, POLICY.processing_start, POLICY.processing_stop)
        full = raised(full, np.array([seen.memory]), POLICY.memory_start, POLICY.memory_stop)
        assert (bool(busy[0]), bool(full[0])) == (seen.processing_high, seen.memory_high)
