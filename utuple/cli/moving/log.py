"""`utuple moves`: the event log of all moves, from the records their homes keep."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from utuple.cli.options import AT_DEFAULT, At, Data, Json, addresses, print_json, print_json_block

if TYPE_CHECKING:
    from utuple.admin.moves import ShownMove
    from utuple.local.folder import DataFolder

_LOOK_S = 1.0
_FOR_EVER_S = 10 * 365 * 86_400.0

Follow = Annotated[
    bool,
    typer.Option(
        "--follow", "-f", help="Go on: each move again when its step changes, until Ctrl-C."
    ),
]


def moves(
    at: At = AT_DEFAULT, data: Data = None, json: Json = False, follow: Follow = False
) -> None:
    """The moves of load: when, who, which section, why, how long, and what they cost.

    Each is recorded by the home of its section; the last 200 of each home
    are kept, and in the data folder those of servers that were drained.
    `learning` moves are being prepared, `committed` ones are made and are
    being told to the others, `done` ones are over; `aborted` and `over`
    ones were given up, and changed nothing. With --json a list, with
    --json --follow a line for each change.
    """
    from utuple.cli.life import folder_of

    asked = addresses(at)
    if follow:
        asyncio.run(_follow(asked, json))
        return
    shown = asyncio.run(_all_moves(asked, folder_of(data, asked)))
    if json:
        print_json_block(shown)
        return
    from rich.console import Console

    from utuple.cli.looking.show_moves import table_of_moves

    if shown:
        Console().print(table_of_moves(shown))
    else:
        typer.echo("No load has moved yet.")


async def _all_moves(at: list[str], folder: DataFolder) -> list[ShownMove]:
    from utuple.admin.snapshot import snapshot_of

    snapshot = await snapshot_of(at)
    cluster = folder.read_cluster()
    is_ours = cluster is not None and not set(at).isdisjoint(cluster.layout.manager_addresses)
    noted = folder.noted_moves() if is_ours else []
    known = {move.id: move for move in [*noted, *snapshot.moves]}
    return sorted(known.values(), key=lambda move: (move.began_us, move.id))


async def _follow(at: list[str], json: bool) -> None:
    from utuple.cli.looking.show_moves import told

    async for move in news(at):
        if json:
            print_json(move)
        else:
            typer.echo(told(move))


async def news(at: Sequence[str]) -> AsyncIterator[ShownMove]:
    """Each move as it is, and again when its step has changed."""
    from utuple.admin.watching import looks

    steps: dict[str, str] = {}
    async for snapshot in looks(at, _FOR_EVER_S, _LOOK_S):
        for move in snapshot.moves:
            if steps.get(move.id) != move.step:
                steps[move.id] = move.step
                yield move
