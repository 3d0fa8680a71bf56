"""Sessions that outlive their connection, as every door can find them: an event in a family of the doors' own, at the
client's id, the newest of which counts.

It says what the session's subscriptions are, and when it ends. The messages themselves are not in it: readers with names keep
the place in each subscription. While a client is connected its record is renewed, so that a door that dies leaves one that
is at most `RENEWED_S` too young. A record lives at least as long as all older ones, so that none of them comes back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import utuple
from utuple.doors.mqtt.codec.packets import Filter
from utuple.doors.mqtt.mapped.mapping import Mapping
from utuple.doors.mqtt.subscribing import Opened
from utuple.runtime.clock import now_us

TYPE = "session"
RENEWED_S = 60.0


@dataclass(frozen=True)
class Remembered:
    stamp: str
    """Who wrote it: a door that finds another's here has been left by the client meanwhile."""
    expires_s: float
    """Unix time; in the past: it has ended."""
    until_s: float
    """Some record of this session may live until then."""
    subscriptions: tuple[Opened, ...] = ()


class Memory:
    def __init__(self, space: utuple.Space, mapping: Mapping) -> None:
        self._space = space
        self._subject = mapping.messages_subject

    async def find(self, client_id: str) -> Remembered | None:
        async for one in self._space.read(
            subject=self._subject, type=TYPE, address=client_id, newest_first=True, limit=1
        ):
            data = one.data
            subscriptions = tuple(_opened(line) for line in data["subscriptions"])
            return Remembered(data["stamp"], data["expires_s"], data["until_s"], subscriptions)
        return None

    async def keep(self, client_id: str, remembered: Remembered) -> None:
        """Durable when it returns."""
        now_s = now_us() / 1e6
        data: dict[str, Any] = {
            "stamp": remembered.stamp,
            "expires_s": remembered.expires_s,
            "until_s": remembered.until_s,
            "subscriptions": [_line(opened) for opened in remembered.subscriptions],
        }
        lifetime_s = max(remembered.until_s - now_s, 1.0)
        try:
            await self._space.emit(
                subject=self._subject,
                type=TYPE,
                address=client_id,
                data=data,
                lifetime_s=lifetime_s,
            )
        except utuple.OutcomeUnknown as error:
            await self._space.retry(error)


def _line(opened: Opened) -> dict[str, Any]:
    asked = opened.filter
    return {
        "pattern": asked.pattern,
        "qos": asked.qos,
        "no_local": asked.no_local,
        "retain_as_published": asked.retain_as_published,
        "retain_handling": asked.retain_handling,
        "identifier": opened.identifier,
        "user": [list(pair) for pair in opened.asked],
        "began_ms": opened.began_ms,
    }


def _opened(line: dict[str, Any]) -> Opened:
    names = ("pattern", "qos", "no_local", "retain_as_published", "retain_handling")
    asked = Filter(*(line[name] for name in names))
    user = tuple((name, value) for name, value in line["user"])
    return Opened(asked, line["identifier"], user, line["began_ms"])
