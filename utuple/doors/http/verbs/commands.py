"""`POST /v1/commands` and `GET /v1/commands/{id}`: a command, and which devices got it."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import Response

import utuple
from utuple.doors.http.door import door_of
from utuple.doors.http.problems import Problem, encoded
from utuple.doors.http.verbs import asking
from utuple.doors.http.verbs.body import JSON, json_object


class Receipts:
    """The newest, by id."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._said: OrderedDict[str, bytes] = OrderedDict()

    def keep(self, id_: str, said: bytes) -> None:
        self._said[id_] = said
        while len(self._said) > self._most:
            self._said.popitem(last=False)

    def find(self, id_: str) -> bytes | None:
        return self._said.get(id_)


def receipt_said(id_: str, receipt: utuple.Receipt) -> dict[str, Any]:
    return {
        "id": id_,
        "matched": receipt.matched,
        "handed_over": receipt.handed_over,
        "waits_s": receipt.waits_s,
        "devices": [
            {"address": one.address, "handed_over": one.handed_over, "reason": one.reason}
            for one in receipt.devices
        ],
        "said": str(receipt),
    }


async def command(request: Request) -> Response:
    """200 with the receipt: also when no device matched, which it says."""
    door = door_of(request)
    asking.check_known(request.query_params, ())
    asked = asking.command_of(await json_object(request, door.limits))
    receipt = await door.space.command(**asked)
    id_ = str(uuid4())
    said = encoded(receipt_said(id_, receipt))
    door.receipts.keep(id_, said)
    return Response(said, media_type=JSON, headers={"Location": f"/v1/commands/{id_}"})


async def receipt(request: Request) -> Response:
    door, id_ = door_of(request), request.path_params["id"]
    said = door.receipts.find(id_)
    if said is None:
        raise Problem(
            404,
            "Not found",
            f"no receipt {id_!r}: this door keeps the newest {door.limits.receipts} of the commands it sent itself",
        )
    return Response(said, media_type=JSON)
