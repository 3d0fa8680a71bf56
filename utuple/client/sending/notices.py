"""Notices of commands that expired: `command(..., notify="expired")`.

When the lifetime of such a command is over, an event says of each device that never got it, as its server knows, so: of the command's own subject and
type, at the device's address, with the command's id. So whoever wants to know watches for it, the sender or anybody else.
"""

from __future__ import annotations

from dataclasses import replace

from utuple.client.parts import Parts
from utuple.client.sending.emit import emit_columns, sound_events
from utuple.client.sending.receipt import EXPIRED, Receipt
from utuple.errors import InvalidInput, UTupleError
from utuple.model.utuple import UTuple
from utuple.runtime.logs import Log
from utuple.runtime.tasks import Tasks

_log = Log("utuple.client.sending.notices")


def check_notify(notify: object, lifetime_s: float) -> None:
    if notify is None:
        return
    if notify != EXPIRED:
        raise InvalidInput("notify", notify, f"must be {EXPIRED!r}, or None")
    if not lifetime_s > 0:
        rule = "needs a lifetime_s above 0: a command without one waits for nobody"
        raise InvalidInput("notify", notify, rule)


class Notices:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._tasks = Tasks()

    def follow(self, command: UTuple, receipt: Receipt) -> Receipt:
        """To its end, or that of the space."""
        task = self._tasks.start(self._tell(command, receipt), f"following {receipt.id}")
        return replace(receipt, ending=task)

    async def _tell(self, command: UTuple, receipt: Receipt) -> Receipt:
        last = await receipt.end()
        said = {"command": str(receipt.id), EXPIRED: True}
        events = [
            {
                **command.family._asdict(),
                "address": one.address,
                "data": said,
                "lifetime_s": command.lifetime_s,
            }
            for one in last.devices
            if one.reason == EXPIRED
        ]
        columns, _, _ = sound_events(self._parts, events, 0) if events else (None, (), {})
        if columns is not None:
            try:
                await emit_columns(self._parts, columns)
            except UTupleError as error:
                _log.warning("expired unsaid", command=said["command"], reason=error)
        return last

    async def close(self) -> None:
        """What is not over by now is not told."""
        await self._tasks.close()
