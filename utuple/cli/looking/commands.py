"""`utuple commands ID`: what has become of a command that waits for its devices."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from utuple.cli.options import AT_DEFAULT, At, Json, addresses, print_json_block
from utuple.cli.outcome import FAILED
from utuple.errors import InvalidInput

if TYPE_CHECKING:
    from utuple.client.sending.receipt import Receipt


def commands(
    id_: Annotated[
        str, typer.Argument(metavar="ID", help="The command's id, as its receipt says it.")
    ],
    at: At = AT_DEFAULT,
    json: Json = False,
) -> None:
    """A command with a lifetime, device by device: who matched, has it, has acknowledged it."""
    try:
        command = UUID(id_)
    except ValueError:
        raise InvalidInput("ID", id_, "must be a command's id, a UUID") from None
    from utuple.admin.commands import receipt_by_id

    receipt = asyncio.run(receipt_by_id(addresses(at), command.bytes))
    if receipt is None:
        typer.echo(
            f"No server knows a command {command}: its lifetime is over, or it had none.", err=True
        )
        raise typer.Exit(FAILED)
    if json:
        print_json_block(_told(receipt))
        return
    typer.echo(f"{receipt.command}; {receipt.waits_s:.0f} s left")
    for device in receipt.devices:
        state = "acknowledged" if device.acknowledged else device.reason or "handed over"
        typer.echo(f"  {device.address:32} {state}")


def _told(receipt: Receipt) -> dict[str, Any]:
    return {
        "id": str(receipt.id),
        "command": receipt.command,
        "left_s": receipt.waits_s,
        "matched": receipt.matched,
        "handed_over": receipt.handed_over,
        "acknowledged": sum(device.acknowledged for device in receipt.devices),
        "devices": [
            {
                "address": device.address,
                "handed_over": device.handed_over,
                "acknowledged": device.acknowledged,
                "reason": device.reason,
            }
            for device in receipt.devices
        ],
    }
