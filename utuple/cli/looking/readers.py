"""`utuple readers`: who reads, how far each is behind, and forgetting one that will not come back."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from utuple.cli.options import AT_DEFAULT, At, Json, addresses, print_json_block
from utuple.cli.outcome import FAILED, told

if TYPE_CHECKING:
    from utuple.admin.programs import Server

readers = typer.Typer(help="Readers: list, forget.", invoke_without_command=True)


@readers.callback()
@told
def list_readers(context: typer.Context, at: At = AT_DEFAULT, json: Json = False) -> None:
    """Every reader at every server: connected or since when away, and how many events it would be given now."""
    if context.invoked_subcommand is not None:
        return
    from utuple.admin.snapshot import snapshot_of
    from utuple.cli.looking.show import table_of_readers

    servers = asyncio.run(snapshot_of(addresses(at))).servers
    if json:
        found = [
            {"server": one.name, **asdict(reader)} for one in servers for reader in one.readers
        ]
        print_json_block(found)
        return
    from rich.console import Console

    Console().print(table_of_readers(servers) or "Nobody reads.")


@readers.command()
@told
def forget(
    name: Annotated[str, typer.Argument(help="The reader's name, as `utuple readers` shows it.")],
    at: At = AT_DEFAULT,
    json: Json = False,
) -> None:
    """Forget a reader at every server: what waits for it is no longer kept for it. Again, it does nothing."""
    from utuple.admin import transport
    from utuple.admin.snapshot import snapshot_of

    async def work() -> tuple[dict[str, int], list[str]]:
        servers = (await snapshot_of(addresses(at))).servers
        held = [one.name for one in servers if _is_connected(one, name)]
        if held:
            return {}, held
        answers = {one.name: await transport.forget_reader(one.address, name) for one in servers}
        forgotten = {server: answer.formals for server, answer in answers.items() if answer.formals}
        return forgotten, [server for server, answer in answers.items() if answer.connected]

    forgotten, held = asyncio.run(work())
    if json:
        print_json_block({"reader": name, "forgotten": forgotten, "connected_at": held})
    elif forgotten:
        said = ", ".join(f"{server} ({count})" for server, count in forgotten.items())
        typer.echo(f"Reader {name!r} and its watches are forgotten at {said}.")
    elif not held:
        typer.echo(f"No server knows a reader {name!r}.")
    if held:
        where = ", ".join(held)
        typer.echo(
            f"Reader {name!r} is connected at {where}, and was not forgotten there: stop its program first.",
            err=True,
        )
        raise typer.Exit(FAILED)


def _is_connected(server: Server, name: str) -> bool:
    return any(one.reader == name and one.connected for one in server.readers)
