"""`utuple server partition`: the operator has the EFs of a section partitioned, or takes that back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from utuple.cli.moving.help import Start
from utuple.cli.options import AT_DEFAULT, At, Json, addresses, print_json_block

if TYPE_CHECKING:
    from utuple.cli.moving.following import Say

Server = Annotated[str, typer.Argument(metavar="NAME", help="A server that is on in the section.")]
By = Annotated[
    str,
    typer.Option(
        metavar="DIMENSION:BOUND:…,…",
        help="What is cut, and where: address, lat, lon, time (microseconds) or data.FIELD; several with commas.",
    ),
]
Undo = Annotated[bool, typer.Option("--undo", help="Every member keeps every EF again.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would become of the line.")]


def partition(
    name: Server,
    by: By = "",
    section: Start = None,
    undo: Undo = False,
    dry_run: DryRun = False,
    at: At = AT_DEFAULT,
    json: Json = False,
) -> None:
    """Partition the EFs of a section, so that each server keeps its share.

    For a hot section with many selective EFs: `--by data.kg:10:20` cuts
    what is below 10, up to 20, and the rest. The home keeps every EF; the
    others that are on get one segment each in turn, and events go to who
    keeps what may match them. `--undo` takes it back: the home serves
    alone until the others have learned what they did not keep.
    """
    from utuple.cli.moving.following import speaker

    asked = _partition(addresses(at), name, by, section, undo, dry_run, speaker(json))
    said = asyncio.run(asked)
    if json:
        print_json_block(said)


async def _partition(
    at: list[str], name: str, by: str, section: str | None, undo: bool, dry_run: bool, say: Say
) -> dict[str, Any]:
    from utuple.admin import choice
    from utuple.admin.programs import shown_line
    from utuple.admin.snapshot import line_said, snapshot_of
    from utuple.cli.moving.ordering import made
    from utuple.cluster.move import Move, MoveKind, target
    from utuple.errors import InvalidInput

    if undo == bool(by):
        raise InvalidInput("--by", by, "say what is cut and where, as data.kg:10:20; or --undo")
    snapshot = await snapshot_of(at)
    choice.serving(snapshot, name)
    line = choice.line_to_help(snapshot, name, section)
    why = "the operator asked for it"
    kind = MoveKind.GATHER if undo else MoveKind.PARTITION
    layout = choice.layout_of(line, by)
    move = Move(kind, line.section, line.epoch, line.home, why=why, layout=layout)
    (after,) = target(move, line)
    if dry_run:
        say(f"before  {line_said(line)}")
        say(f"after   {line_said(after)}")
        return {"before": shown_line(line), "after": [shown_line(after)], "moves": []}
    moves, lines = [], [line]
    for order in (move, *(choice.flips(line) if undo else ())):
        (now,) = lines
        order = choice.renewed(order, now)
        found, lines = await made(at, snapshot, now, order, say)
        moves.append(found)
    return {"before": shown_line(line), "after": list(map(shown_line, lines)), "moves": moves}
