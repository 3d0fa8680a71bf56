"""`utuple command`: one device, or every device in a place."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from utuple.cli.options import AT_DEFAULT, At, Json, addresses, print_json
from utuple.cli.outcome import FAILED
from utuple.cli.verbs import templates as t
from utuple.errors import InvalidInput


def command(
    subject: t.Subject,
    type_: t.Type,
    data: Annotated[str, typer.Option(metavar="JSON", help="""Such as '{"on": false}'.""")],
    address: t.Addresses = None,
    prefix: t.Prefix = None,
    area: t.Area = None,
    lifetime: Annotated[
        str, typer.Option(help="Also reach devices that come within: seconds, or 15m, 1h.")
    ] = "0",
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="To every device of this subject and type.")
    ] = False,
    notify: Annotated[
        str,
        typer.Option(
            metavar="expired",
            help="Wait until --lifetime is over, and emit an event for each device that never got it.",
        ),
    ] = "",
    at: At = AT_DEFAULT,
    json: Json = False,
) -> None:
    """Send a command, and say which devices have it. Exit code 1 if none has and, without --lifetime, none will."""
    from utuple.cli.verbs.json_lines import data_of_text
    from utuple.cli.verbs.parsing import parse_duration_s

    asked = t.place_of(address, prefix, area, None, None)
    asked |= {"data": data_of_text(data), "lifetime_s": parse_duration_s("--lifetime", lifetime)}
    asked |= {"everywhere": everywhere, "notify": notify or None}
    if not (everywhere or address or prefix or area):
        raise InvalidInput(
            "--everywhere",
            everywhere,
            "a command without --address, --prefix and --area goes to every device: say --everywhere if it should",
        )
    receipt = asyncio.run(_send(addresses(at), {"subject": subject, "type": type_, **asked}))
    if json:
        print_json(
            {
                "matched": receipt.matched,
                "handed_over": receipt.handed_over,
                "waits_s": receipt.waits_s,
                "devices": [
                    {
                        "address": d.address,
                        "handed_over": d.handed_over,
                        "acknowledged": d.acknowledged,
                        "reason": d.reason,
                    }
                    for d in receipt.devices
                ],
            }
        )
    else:
        for device in receipt.devices:
            typer.echo(str(device))
        if receipt.waits_s:
            typer.echo(str(receipt))
    if not receipt.handed_over and not receipt.waits_s:
        typer.echo(
            f"utuple: {receipt}; a device takes commands while its program runs (`utuple serve`, or "
            "space.serve) with the same subject and type",
            err=True,
        )
        raise typer.Exit(FAILED)


async def _send(at: list[str], arguments: dict[str, Any]) -> Any:
    import utuple

    async with utuple.connect(*at) as space:
        receipt = await space.command(**arguments)
        return receipt if arguments["notify"] is None else await receipt.end()
