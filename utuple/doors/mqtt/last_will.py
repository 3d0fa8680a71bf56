"""The will of a client: what is published when its connection breaks, after its delay, unless the client comes back to its session before."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import utuple
from utuple.doors.mqtt.codec.packets import Property, Publish, Will
from utuple.runtime.logs import Log

if TYPE_CHECKING:
    from utuple.doors.mqtt.client import Client
    from utuple.doors.mqtt.door import Door

_log = Log("utuple.doors.mqtt.last_will")


class LastWill:
    def __init__(self, client: Client) -> None:
        self._client = client
        self.packet: Will | None = None
        self._timer: asyncio.TimerHandle | None = None

    def fall_due(self, door: Door) -> None:
        """The connection broke."""
        client, will = self._client, self.packet
        delay_s = min(will.delay_s, client.expiry_s) if will is not None else 0
        if not delay_s or door.is_stopping:
            self.publish()
            return

        def due() -> None:
            door.tasks.start(self._publish_unless_elsewhere(), "a will")

        self._timer = asyncio.get_running_loop().call_later(delay_s, due)

    async def _publish_unless_elsewhere(self) -> None:
        """A door that was left hears of its client only by what is kept of the session."""
        will = self.packet
        try:
            is_elsewhere = await self._client.is_elsewhere()
        except utuple.UTupleError as error:
            # Better a will too many than a death that nobody hears of.
            _log.warning("space does not answer", client=self._client.id, reason=error)
            is_elsewhere = False
        if self.packet is not will:
            return  # it has come back here, with another one
        if is_elsewhere:
            self.packet = None
        self.publish()

    def publish(self) -> None:
        will, self.packet = self.packet, None
        if will is not None:
            said = dict(will.properties)
            said.pop(Property.WILL_DELAY_INTERVAL, None)
            packet = Publish(will.topic, will.payload, will.qos, will.retain, False, 0, said)
            emitter = self._client.quarters.emitter
            emitter.publish(self._client.id, packet, (lambda _: None, 0), lambda _: None)

    def wait_no_more(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
