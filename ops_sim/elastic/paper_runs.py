"""The paper's runs of section 6.2, as scenarios that come along."""

from __future__ import annotations

from importlib.resources import files

RUNS = ("6.2.2", "6.2.3", "6.2.4")


def paper_texts() -> dict[str, str]:
    """By section."""
    folder = files("ops_sim.elastic").joinpath("paper")
    return {
        f"paper/{section}.toml": folder.joinpath(f"{section}.toml").read_text(encoding="utf-8")
        for section in RUNS
    }
