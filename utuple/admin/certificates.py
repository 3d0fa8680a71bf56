"""Until when each certificate of a secured cluster holds, and what to do about it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from utuple.admin.trusting import whoami_if_any
from utuple.errors import UTupleError
from utuple.security.own import OWN, shown_time
from utuple.wire import utuple_pb2 as pb

ADVISED_BEFORE_US = 30 * 86_400 * 1_000_000


@dataclass(frozen=True, slots=True)
class Certificate:
    name: str
    until_us: int
    grants_number: int = 0
    """Of the grants that are in force there."""
    is_own: bool = False
    """Of whoever asks."""

    @property
    def until(self) -> str:
        return shown_time(self.until_us)


async def certificates_of(places: Mapping[str, str]) -> list[Certificate]:
    """Of whoever asks, and of every program that answers; none if nothing is secured."""
    own = OWN.get()
    if own is None:
        return []
    answers = await asyncio.gather(*map(_asked, places.values()))
    found = [
        Certificate(name, answer.until_us, answer.grants_number)
        for name, answer in zip(places, answers, strict=True)
        if answer is not None
    ]
    return [Certificate(own.identity.name, own.held.until_us, is_own=True), *found]


async def _asked(address: str) -> pb.WhoamiAnswer | None:
    try:
        return await whoami_if_any(address)
    except UTupleError:
        return None


def advice_on(certificates: Sequence[Certificate], now_us: int) -> list[str]:
    """Thirty days before one ends; and where programs judge by different grants."""
    said = []
    for one in certificates:
        if one.until_us - now_us < ADVISED_BEFORE_US:
            whom = "your own" if one.is_own else f"those of {one.name}"
            how = "ask an operator" if one.is_own else f"utuple grant {one.name} --as program"
            said.append(f"credentials end {one.until}: {whom}; renew them ({how})")
    numbers = {one.name: one.grants_number for one in certificates if not one.is_own}
    behind = [name for name, number in numbers.items() if number < max(numbers.values())]
    if behind:
        newest = max(numbers.values())
        said.append(f"grants {newest} are not in force yet at {', '.join(behind)}")
    return said
