"""`utuple bench dropping`: readers that go ON and OFF at random on a real server, under `keep` and `respond_within`.

The paper's example (λ = 2, μ = 8, T_ON = T_OFF = 20 s, threshold 7 s), with time compressed. What is measured is compared with the
model at what the readers themselves saw: how long they were here and away, how long they worked on an event, and the ζ that was
declared to them. `law_9` is delivered + declared − matched, which is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.benchmark import BenchFailed, Options, Say
from benchmarks.child import Answer, Child
from benchmarks.figures import Figures, Target
from benchmarks.ground import Plan, open_ground
from utuple.cluster.on_off_queue import OnOffQueue
from utuple.model.terms import KEEP, DropPolicy, respond_within


@dataclass(frozen=True, slots=True)
class Size:
    readers: int = 24
    seconds: float = 100.0
    warm_up_s: float = 32.0
    compressed: float = 10.0


QUICK = Size(4, 4.0, 1.0, 40.0)
ARRIVAL_PER_S, SERVICE_PER_S, ON_S, OFF_S, THRESHOLD_S = 2.0, 8.0, 20.0, 20.0, 7.0


class Dropping:
    def __init__(self, options: Options) -> None:
        self._size = QUICK if options.quick else Size()
        self.targets = (Target("model_error", at_most=0.1), Target("law_9", at_most=0.0))
        self.notes = {
            "ours": "durable; readers with a name, closed and opened again; acknowledged one by one"
        }

    async def run(self, place: Path, say: Say) -> Figures:
        size = self._size
        found: dict[str, float] = {}
        policies = {"keep": KEEP, "respond": respond_within(THRESHOLD_S / size.compressed)}
        async with open_ground(place, Plan([0.0]), say) as ground:
            for name, policy in policies.items():
                settings = {
                    "managers": ground.managers,
                    "readers": size.readers,
                    "on_s": ON_S / size.compressed,
                    "off_s": OFF_S / size.compressed,
                    "arrival_per_s": ARRIVAL_PER_S * size.compressed,
                    "service_per_s": SERVICE_PER_S * size.compressed,
                    "warm_up_s": size.warm_up_s,
                    "seed": name,
                }
                log = place / "clients.log"
                async with Child("benchmarks.dropping.reader", settings, log) as readers:
                    asked = (policy.kind, policy.number, policy.share)
                    seen = await readers.ask("run", policy=asked, seconds=size.seconds)
                found |= _figures(name, seen, policy, size)
                say(f"{name}: {_said(found, name)}")
        errors = [found[f"{name}_error"] for name in policies]
        found["model_error"] = max(errors)
        found["law_9"] = max(found[f"{name}_law_9"] for name in policies)
        return found


def _figures(name: str, seen: Answer, policy: DropPolicy, size: Size) -> Figures:
    if not seen["counted"]:
        raise BenchFailed(f"{name}: no event was delivered after the warm-up")
    zeta = seen["zeta"] if policy.drops else 1.0
    queue = OnOffQueue(
        ARRIVAL_PER_S * size.compressed, 1 / seen["work_s"], seen["on_s"], seen["off_s"], zeta
    )
    error = abs(seen["mean_response_s"] / queue.mean_response_s - 1)
    return {
        f"{name}_mean_response_s": seen["mean_response_s"],
        f"{name}_model_s": queue.mean_response_s,
        f"{name}_success_rate": seen["delivered"] / seen["matched"],
        f"{name}_model_success_rate": queue.success_share,
        f"{name}_zeta": zeta,
        f"{name}_error": error,
        f"{name}_repeated": seen["repeated"],
        f"{name}_law_9": abs(seen["delivered"] + seen["declared"] - seen["matched"]),
    }


def _said(found: Figures, name: str) -> str:
    return (
        f"{found[f'{name}_mean_response_s']:.3f} s, the model {found[f'{name}_model_s']:.3f} s; "
        f"success {found[f'{name}_success_rate']:.3f}, ζ {found[f'{name}_zeta']:.3f}, "
        f"law 9 off by {found[f'{name}_law_9']:.0f}"
    )
