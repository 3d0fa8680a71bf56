"""The connections of a space: a channel to each program, and who is said to be where. Spaces of a door share them: each shows
with its calls whom it speaks for."""

from __future__ import annotations

from utuple.runtime.channels import Channels
from utuple.runtime.trust.tls import calling
from utuple.security.own import OwnCredentials
from utuple.transport.channel import Channel
from utuple.transport.peer import Tls


class Connections:
    def __init__(self, own: OwnCredentials | None = None) -> None:
        """`own`: the credentials to act with; without them nothing is secured."""
        self.own = own
        self._channels = Channels(tls_for=self._tls_for)
        self._names: dict[str, str] = {}
        """Who is said to be where."""

    def expect(self, address: str, name: str) -> None:
        self._names[address] = name

    def get(self, address: str) -> Channel:
        channel = self._channels.get(address)
        assert isinstance(channel, Channel)
        return channel

    def _tls_for(self, address: str) -> Tls | None:
        if self.own is None:
            return None
        return calling(self.own, lambda: self._names.get(address))

    async def close(self) -> None:
        await self._channels.close()
