"""`utuple server help`: the operator orders what the load monitor would order under load."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from utuple.cli.options import AT_DEFAULT, At, Json, addresses, print_json_block

if TYPE_CHECKING:
    from utuple.admin.moves import ShownMove
    from utuple.admin.programs import ShownLine
    from utuple.cli.moving.following import Say

HELP_LIMIT_S = 120.0
"""A move that is not made by then goes on without us, or is given up by its home."""

Overloaded = Annotated[str, typer.Argument(metavar="NAME", help="The server to help.")]
Helper = Annotated[
    str | None, typer.Option(metavar="NAME", help="Who helps; the least loaded unless given.")
]
Memory = Annotated[
    bool,
    typer.Option(
        "--memory",
        help="For memory load: NAME takes no more EAs and CFs of the section. Without it both do.",
    ),
]
Start = Annotated[
    str | None,
    typer.Option(
        metavar="START",
        help="The section, by its start as `utuple table` shows it; the one of most arrivals unless "
        "given.",
    ),
]


def help_server(
    name: Overloaded,
    helper: Helper = None,
    memory: Memory = False,
    section: Start = None,
    at: At = AT_DEFAULT,
    json: Json = False,
) -> None:
    """Let another server help NAME with a section, now.

    The load monitor does this by itself when NAME is overloaded. The helper
    learns the section's EFs and CAs while everything goes on, then takes
    EAs and CFs too; no program notices.
    """
    from utuple.cli.moving.following import speaker

    asked = _help(addresses(at), name, helper, memory, section, speaker(json))
    move, before, after = asyncio.run(asked)
    if json:
        print_json_block({"move": move, "before": before, "after": after})


async def _help(
    at: list[str], name: str, helper: str | None, memory: bool, section: str | None, say: Say
) -> tuple[ShownMove, ShownLine, list[ShownLine]]:
    from utuple.admin import choice, transport
    from utuple.admin.programs import shown_line
    from utuple.admin.snapshot import line_said, snapshot_of
    from utuple.admin.watching import looks
    from utuple.cli.moving.following import summary
    from utuple.runtime.clock import now_us

    snapshot = await snapshot_of(at)
    choice.serving(snapshot, name)
    line = choice.line_to_help(snapshot, name, section)
    chosen = choice.helper_for(snapshot, line, helper)
    move = choice.order_for_help(line, name, chosen, memory=memory)
    home = choice.serving(snapshot, line.home)
    say(f"before  {line_said(line)}")
    answer = await transport.move(home.address, move)
    if not answer.accepted:
        raise choice.NotDone(f"{line.home} refuses: {answer.reason}. See `utuple moves`")
    async for snapshot in looks(at, HELP_LIMIT_S):
        made = next((m for m in snapshot.moves if m.id == answer.id.hex()), None)
        if made is None or made.step == "learning":
            continue
        if made.is_made and not made.is_settled(now_us()):
            continue
        if not made.is_made:
            raise choice.NotDone(f"given up: {made.reason}. Nothing has changed; try again")
        after = [own for own in snapshot.lines if own.section.overlaps(line.section)]
        for own in after:
            say(f"after   {line_said(own)}")
        say(summary(made))
        return made, shown_line(line), list(map(shown_line, after))
    raise choice.NotDone(f"not made after {HELP_LIMIT_S:g} s; it goes on: see `utuple moves`")
