"""`utuple bench dropping`: readers that go ON and OFF on a real server, under every drop policy, beside the model.

The paper's example (λ = 2, μ = 8, T_ON = T_OFF = 20 s, threshold 7 s), with time compressed: visits drawn at random, and those of a bus
fleet's recording where it is there. The model is told the visits, arrivals and work of the run itself, and the ζ that was declared; so
what differs is what the server and the SDK add, and whom they drop. `law_9` is delivered + declared − matched, which is 0.
`closed_form_s` is the paper's mean for `keep` at the mean periods of the run: so few visits leave a tenth of it to chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.benchmark import BenchFailed, Options, Say
from benchmarks.child import Answer, Child
from benchmarks.dropping.visits import RECORDING
from benchmarks.figures import Figures, Target
from benchmarks.ground import Plan, open_ground
from utuple.cluster.on_off_queue import OnOffQueue
from utuple.model.terms import (
    KEEP,
    DropPolicy,
    expire,
    latest_per_address,
    newest,
    oldest,
    respond_within,
)


@dataclass(frozen=True, slots=True)
class Size:
    readers: int = 6
    """Of each policy."""
    seconds: float = 200.0
    warm_up_s: float = 80.0
    """By then a server has seen enough of a reader's periods to drop by them."""
    compressed: float = 5.0


QUICK = Size(2, 6.0, 1.0, 40.0)
ARRIVAL_PER_S, SERVICE_PER_S, ON_S, OFF_S, THRESHOLD_S = 2.0, 8.0, 20.0, 20.0, 7.0


class Dropping:
    def __init__(self, options: Options) -> None:
        self._size = QUICK if options.quick else Size()
        self.targets = (
            Target("model_error", at_most=0.1),
            Target("success_error", at_most=0.05),
            Target("law_9", at_most=0, always=True),
            Target("repeated", at_most=0, always=True),
        )
        self.notes = {
            "ours": "durable; readers with a name, closed and opened again; acknowledged one by one"
        }

    def _policies(self) -> dict[str, DropPolicy]:
        threshold_s = THRESHOLD_S / self._size.compressed
        policies = {
            "keep": KEEP,
            "newest": newest(20),
            "oldest": oldest(20),
            "latest_per_address": latest_per_address(),
            "expire": expire(threshold_s),
            "respond_within": respond_within(threshold_s),
            "respond_within_share": respond_within(2 * threshold_s, share=0.9),
        }
        if RECORDING.exists():
            policies["recorded_keep"] = KEEP
            policies["recorded_respond_within"] = respond_within(threshold_s)
        return policies

    async def run(self, place: Path, say: Say) -> Figures:
        size, policies = self._size, self._policies()
        async with open_ground(place, Plan([0.0]), say) as ground:
            settings = {
                "managers": ground.managers,
                "readers": size.readers,
                "on_s": ON_S / size.compressed,
                "off_s": OFF_S / size.compressed,
                "arrival_per_s": ARRIVAL_PER_S * size.compressed,
                "service_per_s": SERVICE_PER_S * size.compressed,
                "warm_up_s": size.warm_up_s,
            }
            asked = {name: (p.kind, p.number, p.share) for name, p in policies.items()}
            async with Child("benchmarks.dropping.reader", settings, place / "r.log") as readers:
                seen = await readers.ask("run", policies=asked, seconds=size.seconds)
        found: dict[str, float] = {}
        for name in policies:
            found |= _figures(name, seen[name])
            say(f"{name}: {_said(found, name)}")
        found["closed_form_s"] = self._closed_form_s(seen["keep"])
        for name in ("model_error", "success_error", "law_9", "repeated"):
            found[name] = max(found[f"{policy}_{name}"] for policy in policies)
        return found

    def _closed_form_s(self, seen: Answer) -> float:
        arrival_per_s, off_s = ARRIVAL_PER_S * self._size.compressed, OFF_S / self._size.compressed
        queue = OnOffQueue(arrival_per_s, 1 / seen["work_s"], seen["on_s"], off_s)
        return queue.mean_response_s if queue.is_stable else 0.0


def _figures(name: str, seen: Answer) -> dict[str, float]:
    if not seen["counted"]:
        raise BenchFailed(f"{name}: no event was delivered after the warm-up")
    return {
        f"{name}_mean_response_s": seen["mean_response_s"],
        f"{name}_model_s": seen["model_s"],
        f"{name}_success_rate": seen["success_rate"],
        f"{name}_model_success_rate": seen["model_success_rate"],
        f"{name}_zeta": seen["zeta"],
        f"{name}_model_error": abs(seen["mean_response_s"] / seen["model_s"] - 1),
        f"{name}_success_error": abs(seen["success_rate"] - seen["model_success_rate"]),
        f"{name}_law_9": abs(seen["delivered"] + seen["declared"] - seen["matched"]),
        f"{name}_repeated": seen["repeated"],
    }


def _said(found: Figures, name: str) -> str:
    return (
        f"{found[f'{name}_mean_response_s']:.3f} s, the model {found[f'{name}_model_s']:.3f} s; success "
        f"{found[f'{name}_success_rate']:.3f}, the model {found[f'{name}_model_success_rate']:.3f}; "
        f"ζ {found[f'{name}_zeta']:.3f}, law 9 off by {found[f'{name}_law_9']:.0f}"
    )
