"""`utuple status`, `utuple table`, `utuple server list`: looking at a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from utuple.cli.options import AT_DEFAULT, At, Json, addresses, print_json_block
from utuple.cli.outcome import FAILED

if TYPE_CHECKING:
    from utuple.admin.snapshot import Snapshot


def status(at: At = AT_DEFAULT, json: Json = False) -> None:
    """Servers, load, flags, readers, managers, moves under way, and the load monitor's advice.

    Exit code 1 if something does not serve, or no sCA server is known.
    """
    import asyncio

    from utuple.admin.snapshot import snapshot_of
    from utuple.admin.spreads import asked_rows, spreads_of

    async def looked() -> tuple[Snapshot, list[tuple[str, int, str]]]:
        snapshot = await snapshot_of(addresses(at))
        with_efs = {one.name for one in snapshot.servers if one.event_templates}
        lines = [line for line in snapshot.lines if line.home in with_efs]
        return snapshot, asked_rows(await spreads_of(snapshot, lines))

    snapshot, asked = asyncio.run(looked())
    if json:
        print_json_block(
            {
                "well": snapshot.is_well,
                "whole": snapshot.whole,
                "servers": snapshot.servers,
                "sca": snapshot.scas,
                "managers": snapshot.managers,
                "monitors": snapshot.monitors,
                "moves": snapshot.under_way,
                "advice": snapshot.advice,
                "missing": snapshot.missing,
                "certificates": snapshot.certificates,
                "asked": [
                    {"start": start, "efs": efs, "asked": said} for start, efs, said in asked
                ],
            }
        )
    else:
        from utuple.cli.looking.show import show_status

        show_status(snapshot, asked)
    if not snapshot.is_well:
        if not json:
            typer.echo("Not everything serves: see above, and the logs of what does not.", err=True)
        raise typer.Exit(FAILED)


def table(at: At = AT_DEFAULT, json: Json = False) -> None:
    """The assignment table: which servers have which part of the hash space."""
    import asyncio

    from utuple.admin.programs import shown_line
    from utuple.admin.snapshot import table_of

    snapshot = asyncio.run(table_of(addresses(at)))
    if json:
        print_json_block({"whole": snapshot.whole, "lines": list(map(shown_line, snapshot.lines))})
        return
    from rich.console import Console

    from utuple.cli.looking.show import table_of_lines

    console = Console()
    console.print(table_of_lines(snapshot.lines))
    if not snapshot.whole:
        console.print("Not whole: some keys have no server yet; see `utuple status`.", style="red")


def list_scas(at: At = AT_DEFAULT, json: Json = False) -> None:
    """Every sCA server, with its share of the devices: known and connected."""
    import asyncio

    from utuple.admin.snapshot import snapshot_of

    snapshot = asyncio.run(snapshot_of(addresses(at)))
    if json:
        print_json_block(snapshot.scas)
        return
    from rich.console import Console

    from utuple.cli.looking.show import table_of_scas

    Console().print(table_of_scas(snapshot.scas))


def list_servers(at: At = AT_DEFAULT, json: Json = False) -> None:
    """Every uTupleServer, with its load, flags and what it holds; and the sCA servers.

    --json gives the uTupleServers alone; the sCA servers are in `utuple sca list --json`.
    """
    import asyncio

    from utuple.admin.snapshot import snapshot_of

    snapshot = asyncio.run(snapshot_of(addresses(at)))
    if json:
        print_json_block(snapshot.servers)
        return
    from rich.console import Console

    from utuple.cli.looking.show import table_of_scas, tables_of_servers

    Console().print(*tables_of_servers(snapshot.servers), table_of_scas(snapshot.scas), sep="")
