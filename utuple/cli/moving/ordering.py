"""An order of the operator: sent to the home of its line, and followed until it is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from utuple.admin.moves import ShownMove
    from utuple.admin.snapshot import Snapshot
    from utuple.cli.moving.following import Say
    from utuple.cluster.line import Line
    from utuple.cluster.move import Move

MOVE_LIMIT_S = 120.0
"""A move that is not made by then goes on without us, or is given up by its home."""


async def made(
    at: Sequence[str], snapshot: Snapshot, line: Line, move: Move, say: Say
) -> tuple[ShownMove, list[Line]]:
    """The move once it is made and told, and what has become of its line."""
    from utuple.admin import choice, transport
    from utuple.admin.snapshot import line_said
    from utuple.admin.watching import looks
    from utuple.cli.moving.following import summary
    from utuple.runtime.clock import now_us

    home = choice.serving(snapshot, line.home)
    say(f"before  {line_said(line)}")
    answer = await transport.move(home.address, move)
    if not answer.accepted:
        raise choice.Refused(f"{line.home} refuses: {answer.reason}. See `utuple moves`")
    async for now in looks(at, MOVE_LIMIT_S):
        found = next((m for m in now.moves if m.id == answer.id.hex()), None)
        if found is None or found.step == "learning":
            continue
        if found.is_made and not found.is_settled(now_us()):
            continue
        if not found.is_made:
            raise choice.NotDone(f"given up: {found.reason}. Nothing has changed; try again")
        after = [own for own in now.lines if own.section.overlaps(line.section)]
        for own in after:
            say(f"after   {line_said(own)}")
        say(summary(found))
        return found, after
    raise choice.NotDone(f"not made after {MOVE_LIMIT_S:g} s; it goes on: see `utuple moves`")
