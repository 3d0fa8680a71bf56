"""Groups of clients that share a subscription (`$share/GROUP/FILTER`): one reader of the space, shared by the doors' watches.

All of them must ask for the same thing, also from when on: MQTT's subscription begins with its first member. So that moment is
an event in a family of the doors' own, at the group's name. Two that come first at once both write, then both read, and the earlier
one counts. It lives as long as the group's reader does, and is renewed by whoever is a member.
"""

from __future__ import annotations

import hashlib

import utuple
from utuple.doors.mqtt.mapped.mapping import Mapping

TYPE = "share"
LIFETIME_S = 300.0
"""A group without a member for so long has ended: whoever comes then begins a new one."""
RENEWED_S = LIFETIME_S / 5
ATTEMPTS = 100
"""A message that so many members got and nobody acknowledged is parked: something is wrong with it."""


def group_name(group: str, asked: str, conditions: tuple[tuple[str, str], ...]) -> str:
    text = "\0".join((group, asked, *(part for pair in conditions for part in pair)))
    return f"{group} {hashlib.blake2b(text.encode(), digest_size=12).hexdigest()}"


async def began_ms(space: utuple.Space, mapping: Mapping, name: str, now_ms: int) -> int:
    """When this group's subscription began: now, if it has no member yet."""
    known = await _known(space, mapping, name)
    await note(space, mapping, name, min([*known, now_ms]))
    return min(await _known(space, mapping, name), default=now_ms)


async def note(space: utuple.Space, mapping: Mapping, name: str, began: int) -> None:
    try:
        await space.emit(
            subject=mapping.messages_subject,
            type=TYPE,
            address=name,
            data={"began_ms": began},
            lifetime_s=LIFETIME_S,
        )
    except utuple.OutcomeUnknown as error:
        await space.retry(error)


async def _known(space: utuple.Space, mapping: Mapping, name: str) -> list[int]:
    found = space.read(subject=mapping.messages_subject, type=TYPE, address=name)
    return [int(event.data["began_ms"]) async for event in found]
