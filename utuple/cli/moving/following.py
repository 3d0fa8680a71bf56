"""What the operator's commands say while they wait for a move."""

from __future__ import annotations

import sys
from collections.abc import Callable

from utuple.admin.moves import ShownMove, ends, sentence

Say = Callable[[str], None]


def speaker(json: bool) -> Say:
    """Words for a person: beside the JSON, not in it."""

    def say(said: str) -> None:
        print(said, file=sys.stderr if json else sys.stdout, flush=True)

    return say


class Told:
    """Says a thing when it, or its gist, differs from what was said last."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._last = ""

    def __call__(self, said: str, gist: str = "") -> None:
        if (gist or said) != self._last:
            self._last = gist or said
            self._say(said)


def summary(move: ShownMove) -> str:
    """What a move that was made did, and what it cost."""
    return (
        f"{sentence(move)}, in the section {' – '.join(ends(move))}: {move.seconds:.2f} s, "
        f"{move.copied:,} EFs and CAs copied, registering them held back for "
        f"{move.held_back_ms:.0f} ms, {move.rows:,} uTuples brought over"
    )
