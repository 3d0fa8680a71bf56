"""Figure 8: what n servers carry, by method and condition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops_sim.cost.application import APPLICATIONS, A, B, Load
from ops_sim.cost.estimate import Condition, Estimate, Method, estimate, estimates
from ops_sim.cost.model import PAPER, CostModel

DEAR_EFS = CostModel(
    "dear EFs",
    ea_bytes=1_480,
    ea_s=5.668e-3,
    ea_s_per_ef=1e-6,
    ef_bytes=5_000,
    ef_s=5e-3,
    ef_s_per_ea=1e-10,
    cf_bytes=1_000,
    cf_s=5e-3,
)


def point(method: Method, condition: Condition, servers: int, cost: CostModel = PAPER) -> Estimate:
    return estimate(A, cost, method, condition, servers)


def test_one_server_of_the_paper_registers_176_eas_a_second_and_keeps_95_million() -> None:
    one = point(Method.PROPOSED, Condition.BEST, 1)
    assert one.throughput_per_s == pytest.approx(1 / 5.668e-3 + 0.1)
    assert one.accumulatable == pytest.approx(140e9 / 1_480, rel=1e-3)


def test_figure_8_the_existing_method_does_not_grow_in_the_worst_condition() -> None:
    for cost in (PAPER, DEAR_EFS):
        one, fifty = (point(Method.EXISTING, Condition.WORST, n, cost) for n in (1, 50))
        assert (one.throughput_per_s, one.accumulatable) == (
            fifty.throughput_per_s,
            fifty.accumulatable,
        )


def test_figure_8_the_proposed_method_comes_close_to_the_best_condition() -> None:
    best, worst = (point(Method.PROPOSED, c, 50, DEAR_EFS) for c in Condition)
    assert 0.7 * best.throughput_per_s < worst.throughput_per_s < best.throughput_per_s
    assert 0.9 * best.accumulatable < worst.accumulatable < best.accumulatable


def test_in_the_best_condition_both_methods_are_the_same() -> None:
    for application in (A, B):
        existing, proposed = (
            estimate(application, DEAR_EFS, method, Condition.BEST, 20) for method in Method
        )
        assert existing.throughput_per_s == proposed.throughput_per_s
        assert existing.accumulatable == proposed.accumulatable


def test_the_load_that_plans_use_is_the_worst_condition_of_figure_8() -> None:
    worst = point(Method.PROPOSED, Condition.WORST, 50, DEAR_EFS)
    devices = worst.accumulatable / (A.eas + A.efs)
    assert Load.of(A, DEAR_EFS).memory(devices, 50) == pytest.approx(1.0)
    busy_devices = (worst.throughput_per_s - A.ef_per_s) * 86_400 / A.ea_per_day
    assert Load.of(A, DEAR_EFS).processing(busy_devices, 50) == pytest.approx(1.0)


def test_a_server_too_slow_for_the_efs_alone_registers_nothing() -> None:
    slow = CostModel("slow", ea_bytes=1, ea_s=1, ef_s=20)
    assert point(Method.PROPOSED, Condition.WORST, 4, slow).throughput_per_s == 0


@given(st.integers(1, 5_000), st.sampled_from([PAPER, DEAR_EFS]))
def test_more_servers_never_carry_less_and_the_worst_is_never_above_the_best(
    servers: int, cost: CostModel
) -> None:
    rows = list(estimates(APPLICATIONS.values(), cost, [servers, servers + 1]))
    for fewer, more in zip(rows[::2], rows[1::2], strict=True):
        assert more.throughput_per_s >= fewer.throughput_per_s * (1 - 1e-9)
        assert more.accumulatable >= fewer.accumulatable * (1 - 1e-9)
    for best, worst in zip(rows[0::4], rows[2::4], strict=True):
        assert (best.condition, worst.condition) == ("best", "worst")
        assert worst.throughput_per_s <= best.throughput_per_s * (1 + 1e-9)
        assert worst.accumulatable <= best.accumulatable * (1 + 1e-9)
