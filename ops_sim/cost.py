"""What a uTuple costs a server (section 4.1.1, figures 6 and 7): lines fitted to measurements. Pure.

As in the paper, costs are linear, independent of each other, and add up. Registering an EA takes longer the more
EFs its server holds, and the other way round; the same for CAs and CFs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from ops_sim.checks import number
from utuple.errors import InvalidInput

GB = 1e9


@dataclass(frozen=True, slots=True)
class CostModel:
    """Of one server. The fields ending in `_s` are seconds its writer is busy with one registration."""

    name: str
    ea_bytes: float
    ea_s: float
    ea_s_per_ef: float = 0.0
    """Longer by this for each EF the server holds (figure 6)."""
    ef_bytes: float = 0.0
    ef_s: float = 0.0
    ef_s_per_ea: float = 0.0
    cf_bytes: float = 0.0
    cf_s: float = 0.0
    ca_s: float = 0.0
    ca_s_per_cf: float = 0.0
    memory_bytes: float = 140 * GB
    """What one server holds (section 4.1.2)."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name != "name":
                number(f"cost.{field.name}", getattr(self, field.name))
        if self.memory_bytes == 0:
            raise InvalidInput("cost.memory_bytes", 0, "a server without capacity holds nothing")
        if not (self.ea_bytes and self.ea_s):
            raise InvalidInput("cost", self.name, "an EA must cost memory and time")

    def to_json(self) -> dict[str, object]:
        return asdict(self)

    @classmethod
    def from_json(cls, told: Mapping[str, object]) -> CostModel:
        known = {field.name for field in fields(cls)}
        if unknown := sorted(told.keys() - known):
            raise InvalidInput(
                "cost", unknown[0], f"is no field; there are {', '.join(sorted(known))}"
            )
        if missing := sorted({"name", "ea_bytes", "ea_s"} - told.keys()):
            raise InvalidInput("cost", missing[0], "is missing")
        return cls(**told)  # type: ignore[arg-type]  # checked when built


PAPER = CostModel("paper", ea_bytes=1_480, ea_s=5.668e-3)
"""EF terms 0. The paper prints its figures 6 and 7 as drawings only; these two meet section 4.2 best."""
PAPER_VARIANT = CostModel("paper-variant", ea_bytes=1_486, ea_s=5.868e-3)
"""For the variant of the rule that sizes for the day of installation plus 60."""
