"""The colours of a report, for light and dark. Told apart by people who see colours differently too. Pure.

The place is the hue of a series (value.HUES of them): 0 to 5 for things, 6 for limits, 7 for what is recommended.
"""

from __future__ import annotations

LIGHT = ("#0b63c5", "#c2570c", "#1a7f37", "#7c4dd8", "#0f7c82", "#66707a", "#c62230", "#b0127b")
DARK = ("#6cb0ff", "#ffa657", "#5bd27a", "#c4a1ff", "#4fd1c5", "#9aa4af", "#ff7b72", "#ff7ac6")

INK = {"light": "#1b2330", "dark": "#e6e9ef"}
SOFT = {"light": "#5a6472", "dark": "#a3adba"}
GRID = {"light": "#e3e7ec", "dark": "#2c3440"}
PAPER = {"light": "#ffffff", "dark": "#12161c"}
PANEL = {"light": "#f5f7fa", "dark": "#1a2029"}


def css(scheme: str) -> str:
    """The colours as variables of a style sheet."""
    hues = LIGHT if scheme == "light" else DARK
    named = {"ink": INK, "soft": SOFT, "grid": GRID, "paper": PAPER, "panel": PANEL}
    pairs = [(f"h{place}", colour) for place, colour in enumerate(hues)]
    pairs += [(name, colours[scheme]) for name, colours in named.items()]
    return "".join(f"--{name}:{colour};" for name, colour in pairs)
