"""`utuple found`: the first table of a cluster that was started by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from utuple.cli.options import AT_DEFAULT, At, Json, addresses, print_json_block
from utuple.cli.outcome import FAILED
from utuple.errors import InvalidInput

if TYPE_CHECKING:
    from utuple.admin.snapshot import Snapshot

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME…", help="Every uTupleServer of the new cluster.", show_default=False
    ),
]
WaitS = Annotated[
    float,
    typer.Option("--wait", metavar="SECONDS", min=0.0, help="For servers that do not answer yet."),
]


def found(
    names: Names = None, at: At = AT_DEFAULT, wait_s: WaitS = 60.0, json: Json = False
) -> None:
    """Give a cluster that was started by hand its first table, once.

    Each server named gets an even part of the hash space. A cluster that
    has a table keeps it: to run this again, or twice at once, does no harm.
    Exit code 1 if a server named is not in that table.
    """
    import asyncio

    from utuple.admin.founding import difference
    from utuple.admin.programs import shown_line

    is_new, snapshot = asyncio.run(_found(names or [], addresses(at), wait_s))
    differs = difference(names or [], snapshot.lines)
    if json:
        lines = list(map(shown_line, snapshot.lines))
        shown = {"new": is_new, "whole": snapshot.whole, "lines": lines}
        print_json_block({**shown, "not_in_table": differs.not_in_table})
    else:
        _show(is_new, snapshot)
    for said in differs.sentences:
        typer.echo(said, err=True)
    if differs.not_in_table:
        raise typer.Exit(FAILED)


def _show(is_new: bool, snapshot: Snapshot) -> None:
    from rich.console import Console

    from utuple.cli.looking.show import table_of_lines

    typer.echo(
        "The cluster has its first table." if is_new else "Already founded; nothing was changed."
    )
    Console().print(table_of_lines(snapshot.lines))


async def _found(
    names: Sequence[str], managers: Sequence[str], wait_s: float
) -> tuple[bool, Snapshot]:
    import asyncio

    from utuple.admin import founding
    from utuple.admin.snapshot import table_of

    if not names:
        there = " ".join(sorted(await founding.known_servers(managers), key=founding.by_number))
        rule = "name every server of the new cluster"
        raise InvalidInput(
            "NAME", "", f"{rule}: utuple found {there}" if there else f"{rule}; none answers yet"
        )
    waits = [f"waiting for {', '.join(names)}"]
    try:
        async with asyncio.timeout(wait_s):
            is_new = await founding.found(
                names, lambda: founding.known_servers(managers), waits.append
            )
            waits.append("waiting for the assignment managers to hear of the table")
            snapshot = await table_of(managers)
            while not snapshot.whole:
                await asyncio.sleep(founding.ASK_AGAIN_S)
                snapshot = await table_of(managers)
    except TimeoutError:
        raise founding.NotFounded(await _why_not(waits[-1], managers, wait_s)) from None
    return is_new, snapshot


async def _why_not(waits: str, managers: Sequence[str], wait_s: float) -> str:
    from utuple.admin import founding

    seen = await founding.known_servers(managers)
    there = ", ".join(sorted(seen, key=founding.by_number)) or "none"
    has_lines = any(server.lines for server in seen.values())
    then = (
        "some of its table is there already: start the servers it was founded with, each on its own database"
        if has_lines
        else "nothing was given to any server: see the logs of those that are missing, then run it again"
    )
    return f"after {wait_s:g} s still {waits}; servers that answer: {there}; {then}"
