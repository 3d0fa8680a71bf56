"""What a uTuple costs a server (section 4.1.1, figures 6 and 7): lines fitted to measurements. Pure.

As in the paper, costs are linear, independent of each other, and add up. Registering an EA takes longer the more
EFs its server holds, and the other way round; the same for CAs and CFs.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields

from utuple.errors import InvalidInput
from utuple.model.settings import number

GB = 1e9


@dataclass(frozen=True, slots=True)
class CostModel:
    """The costs of one server. Fields ending in `_s` are seconds that its writer is busy with one registration."""

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
    quick: bool = False
    """It comes from a short calibration, which shows only that calibrating works."""
    eas_max: float | None = None
    """How many were on the server when it was measured; None if that is not known."""
    efs_max: float | None = None
    cfs_max: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            is_unknown = field.default is None and value is None
            if field.name not in ("name", "quick") and not is_unknown:
                number(f"cost.{field.name}", value)
        if self.memory_bytes == 0:
            raise InvalidInput("cost.memory_bytes", 0, "a server without capacity holds nothing")
        if not (self.ea_bytes and self.ea_s):
            raise InvalidInput("cost", self.name, "an EA must cost memory and time")

    def beyond(self, eas: float, efs: float = 0.0, cfs: float = 0.0) -> float | None:
        """How many times the uTuples that were measured with a server holds here; None if nobody knows."""
        pairs = ((eas, self.eas_max), (efs, self.efs_max), (cfs, self.cfs_max))
        return max((held / most for held, most in pairs if most), default=None)

    def cautions(self, beyond: float | None) -> list[str]:
        """What to say wherever these costs are used, with so many times what was measured on a server."""
        found = []
        if self.quick:
            found.append(
                "These costs are of a quick calibration, which shows that it works and not what a server bears: run "
                "`utuple plan calibrate` without --quick."
            )
        if beyond is not None and beyond > 1:
            kinds = (("EAs", self.eas_max), ("EFs", self.efs_max), ("CFs", self.cfs_max))
            times = f"{beyond:,.0f}" if beyond >= 10 else f"{beyond:.1f}"
            seen = ", ".join(f"{most:,.0f} {kind}" for kind, most in kinds if most)
            found.append(
                f"Outside the measured range: a server is taken to hold up to {times} times what it was measured "
                f"with ({seen}), as if its lines went on straight."
            )
        return found

    def to_json(self) -> dict[str, object]:
        return asdict(self)


PAPER = CostModel("paper", ea_bytes=1_480, ea_s=5.668e-3)
"""EF terms 0. The paper prints its figures 6 and 7 as drawings only; these two meet section 4.2 best."""
PAPER_VARIANT = CostModel("paper-variant", ea_bytes=1_486, ea_s=5.868e-3)
"""For the variant of the rule that sizes for the day of installation plus 60."""
