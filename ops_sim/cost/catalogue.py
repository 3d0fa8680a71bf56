"""Where cost models are kept: the paper's, the last calibration of this machine, or any file."""

from __future__ import annotations

import json
import os
from pathlib import Path

from ops_sim.cost import model as cost
from ops_sim.cost.model import CostModel
from utuple.errors import InvalidInput
from utuple.model.settings import build

CALIBRATED = "calibrated"
PRESETS = {model.name: model for model in (cost.PAPER, cost.PAPER_VARIANT)}


def last_calibration() -> Path:
    """Where `utuple plan calibrate` leaves its cost model, unless told otherwise."""
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "utuple" / "cost.json"


def cost_named(name: str) -> CostModel:
    """A preset, the last calibration, or a file that `utuple plan calibrate` wrote."""
    if name in PRESETS:
        return PRESETS[name]
    path = last_calibration() if name == CALIBRATED else Path(name)
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        known = ", ".join((*PRESETS, CALIBRATED))
        rule = (
            f"there is no file {path}; `utuple plan calibrate` writes one, or name one of {known}"
        )
        raise InvalidInput("cost", name, rule) from None
    except (OSError, ValueError) as error:
        raise InvalidInput("cost", name, f"cannot be read: {error}") from None
    if not isinstance(told, dict):
        raise InvalidInput("cost", name, "must be a JSON object")
    model = told.get("model", told)
    if not isinstance(model, dict):
        raise InvalidInput("cost.model", model, "must be a JSON object")
    # Until the model carried it itself, only the file around it said that it was quick.
    return build(CostModel, "cost", {"quick": told.get("quick", False), **model})
