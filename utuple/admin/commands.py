"""A command that waits for its devices, as the servers know it now: by its id alone, whoever sent it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from utuple.admin import transport
from utuple.admin.snapshot import snapshot_of
from utuple.client.sending.command import in_words
from utuple.client.sending.receipt import Receipt, expired, receipt_of
from utuple.errors import Unavailable
from utuple.model.columns import MICROSECONDS
from utuple.wire.codec import templates_from_wire


async def receipt_by_id(managers: Sequence[str], id_: bytes) -> Receipt | None:
    """None: its lifetime is over for long, or it had none. While a server is away that may know it, nobody can say so."""
    servers = (await snapshot_of(managers, brief=True)).servers
    asked = (transport.commanded(one.address, id_) for one in servers if one.serves)
    known = [answer for answer in await asyncio.gather(*asked) if answer.known]
    away = [one.name for one in servers if not one.serves]
    if not known and away:
        raise Unavailable(f"{', '.join(away)} does not serve, and nobody else knows this command")
    if not known:
        return None
    [half] = templates_from_wire(known[0].command)
    devices = [device for answer in known for device in answer.devices]
    left_s = max(answer.left_us for answer in known) / MICROSECONDS
    receipt = receipt_of(in_words(half.utuple), devices, left_s, id_)
    return receipt if left_s else expired(receipt)
