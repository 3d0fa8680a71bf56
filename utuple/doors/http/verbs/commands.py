"""`POST /v1/commands` and `GET /v1/commands/{id}`: a command, and which devices have it by now.

A command with a lifetime is known by its own id to every server that may hand it over, so any door can say how it stands, also
one that was started since. One without is over when it is answered: its receipt is kept by the door that sent it, under an id of the
door's own.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from typing import Any
from uuid import UUID, uuid4

from starlette.requests import Request
from starlette.responses import Response

import utuple
from utuple.admin.commands import receipt_by_id
from utuple.doors.http.door import Door, door_of, kept_name, space_of, visitor_of
from utuple.doors.http.problems import Problem, encoded
from utuple.doors.http.verbs import asking
from utuple.doors.http.verbs.body import JSON, json_object
from utuple.security.identity import Role


class Receipts:
    """The newest, by id."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[str, utuple.Receipt] = OrderedDict()

    def keep(self, id_: str, receipt: utuple.Receipt) -> None:
        self._kept[id_] = receipt
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def find(self, id_: str) -> utuple.Receipt | None:
        return self._kept.get(id_)


def receipt_said(id_: UUID, receipt: utuple.Receipt) -> dict[str, Any]:
    return {
        "id": str(id_),
        "matched": receipt.matched,
        "handed_over": receipt.handed_over,
        "waits_s": receipt.waits_s,
        "devices": [
            {
                "address": one.address,
                "handed_over": one.handed_over,
                "acknowledged": one.acknowledged,
                "reason": one.reason,
            }
            for one in receipt.devices
        ],
        "said": str(receipt),
    }


async def command(request: Request) -> Response:
    """200 with the receipt: also when no device matched, which it says."""
    door = door_of(request)
    asking.check_known(request.query_params, ())
    asked = asking.command_of(await json_object(request, door.limits))
    receipt = await space_of(request).command(**asked)
    id_ = receipt.id or uuid4()
    door.receipts.keep(kept_name(request, str(id_)), receipt)
    where = {"Location": f"/v1/commands/{id_}"}
    return Response(encoded(receipt_said(id_, receipt)), media_type=JSON, headers=where)


async def receipt(request: Request) -> Response:
    """As it stands now."""
    door, text = door_of(request), request.path_params["id"]
    asking.check_known(request.query_params, ())
    try:
        id_ = UUID(text)
    except ValueError:
        raise _not_found(door, text) from None
    found = await _found(request, id_)
    if found is None:
        raise _not_found(door, text)
    no_store = {"Cache-Control": "no-store"}
    return Response(encoded(receipt_said(id_, found)), media_type=JSON, headers=no_store)


async def _found(request: Request, id_: UUID) -> utuple.Receipt | None:
    """Somebody's receipts are his own. Where nothing is secured everybody may ask for any, else operators."""
    door, key, visitor = door_of(request), kept_name(request, str(id_)), visitor_of(request)
    kept = door.receipts.find(key)
    if kept is None and visitor is not None and visitor.identity.role is not Role.OPERATOR:
        return None
    if kept is None:
        return await receipt_by_id(door.config.managers, id_.bytes)
    with suppress(utuple.Closed):  # the space it was sent by was idle: it is as it was
        kept = await kept.refresh()
    door.receipts.keep(key, kept)
    return kept


def _not_found(door: Door, text: str) -> Problem:
    return Problem(
        404,
        "Not found",
        f"no receipt {text!r}: no server knows such a command, so its lifetime is over or it had none; of those this door "
        f"keeps the newest {door.limits.receipts} that it sent itself",
    )
