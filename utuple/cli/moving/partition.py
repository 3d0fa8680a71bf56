"""`utuple server partition`: the operator has the EFs of a section partitioned, or takes that back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from utuple.cli.moving.help import Start
from utuple.cli.options import AT_DEFAULT, At, Json, addresses, print_json_block

if TYPE_CHECKING:
    from utuple.admin.choice import NextOrder
    from utuple.cli.moving.following import Say
    from utuple.cluster.line import Line
    from utuple.cluster.move import Move

_REFUSALS_MOST, _AGAIN_S = 3, 1.0
"""A move of the home's own may be in the way; it takes a moment."""

Server = Annotated[str, typer.Argument(metavar="NAME", help="A server that is on in the section.")]
By = Annotated[
    str,
    typer.Option(
        metavar="DIMENSION[:BOUND:…],…",
        help="What is cut, and where: address, lat, lon, time (microseconds) or data.FIELD; several with commas. "
        "Without bounds where EAs fall into equal parts.",
    ),
]
Undo = Annotated[bool, typer.Option("--undo", help="Every member keeps every EF again.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would become of the line, and what it saves.")
]


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
    what is below 10, up to 20, and the rest; `--by data.kg` cuts it where
    the latest EAs fall into equal parts. The home keeps every EF; the
    others that are on get one segment each in turn, and events go to who
    keeps what may match them. A section that is partitioned is cut anew:
    whoever is to keep more learns that, one after the other. `--undo` takes
    it back: the home serves alone until the others have learned what they
    did not keep.
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
    from utuple.admin.spreads import savings_said, spreads_of
    from utuple.cluster.spread import Spread
    from utuple.errors import InvalidInput

    if undo == bool(by):
        raise InvalidInput("--by", by, "say what is cut and where, as data.kg:10:20; or --undo")
    snapshot = await snapshot_of(at, brief=True)
    choice.serving(snapshot, name)
    line = choice.line_to_help(snapshot, name, section)
    spread = (await spreads_of(snapshot, [line])).get(line, Spread())
    layout = choice.layout_of(line, by, spread)
    if line.layout == layout:
        raise choice.NotDone(f"{line} is {'cut there already' if by else 'not partitioned'}")

    def next_order(now: Line) -> Move | None:
        if undo:
            return choice.next_to_gather(now, line.accumulatable)
        return choice.next_to_cut(now, layout)

    if not dry_run:
        return await _made_all(at, line, next_order, say)
    say(f"before  {line_said(line)}")
    (*_, after) = choice.lines_to_come(line, next_order)
    say(f"after   {line_said(after)}")
    saves = [] if undo else savings_said(spread, layout, line)
    for sentence in saves:
        say(sentence)
    shown = {"before": shown_line(line), "after": [shown_line(after)], "moves": []}
    return {**shown, "saves": saves}


async def _made_all(at: list[str], line: Line, next_order: NextOrder, say: Say) -> dict[str, Any]:
    """Each by the line as it is then: a home forgets earlier layouts by itself, which makes a new epoch."""
    from utuple.admin import choice
    from utuple.admin.programs import shown_line
    from utuple.admin.snapshot import snapshot_of
    from utuple.cli.moving.ordering import made

    moves: list[Any] = []
    refusals, now = 0, line
    while True:
        snapshot = await snapshot_of(at, brief=True)
        now = next(one for one in snapshot.lines if line.section.start in one.section)
        order = next_order(now)
        if order is None:
            return {"before": shown_line(line), "after": [shown_line(now)], "moves": moves}
        try:
            found, _ = await made(at, snapshot, now, order, say)
        except choice.Refused:
            refusals += 1
            if refusals > _REFUSALS_MOST:
                raise
            await asyncio.sleep(_AGAIN_S)
        else:
            moves.append(found)
