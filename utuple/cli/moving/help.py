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
    from utuple.admin import choice
    from utuple.admin.programs import shown_line
    from utuple.admin.snapshot import snapshot_of
    from utuple.cli.moving.ordering import made

    snapshot = await snapshot_of(at)
    choice.serving(snapshot, name)
    line = choice.line_to_help(snapshot, name, section)
    chosen = choice.helper_for(snapshot, line, helper)
    move = choice.order_for_help(line, name, chosen, memory=memory)
    found, after = await made(at, snapshot, line, move, say)
    return found, shown_line(line), list(map(shown_line, after))
