"""The CFs in memory: found by (subject, type, address), by id, and by when they expire.

Several CFs may share an address (different readers serve one device). A CF that is held, because its
program is attached, does not expire; let go, it lives for its lifetime. Pure: `now_us` is an argument.

Data templates are decoded once each: devices of one make ask the same, so a million CFs share a few.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sortedcontainers import SortedDict

from utuple.delivery.recent import RecentIds
from utuple.errors import Conflict, InvalidInput, Overloaded
from utuple.model.columns import NEVER_US
from utuple.model.condition import Where, decode_where, encode_where
from utuple.model.packed import asked_where
from utuple.model.utuple import Family
from utuple.security.owners import owner_of

BUCKET_US = 60_000_000
"""Expired CFs match nothing from that instant on; their memory is collected by the minute."""

_NOBODY: Mapping[str, Device] = {}


@dataclass(frozen=True, slots=True, eq=False)
class DataTemplate:
    """Compared by identity, which is what the matcher's cache of verdicts goes by."""

    encoded: bytes
    """The one encoding: equal templates have equal bytes."""
    where: Where | None
    """None where it asks nothing, so that every command passes without a look at its data."""


class Templates:
    """The decoded templates by the bytes they came as. When full it starts again: devices keep what
    they have, and the next ones decode anew."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[bytes, DataTemplate] = {}

    def of(self, payload: bytes) -> DataTemplate:
        known = self._known.get(payload)
        return known if known is not None else self._decoded(payload)

    def check(self, payload: bytes) -> None:
        """Of a device that registers: one that asks too much is refused. What servers have stored is not asked again."""
        if payload not in self._known:
            asked_where(payload)

    def _decoded(self, payload: bytes) -> DataTemplate:
        try:
            where = decode_where(payload)
            encoded = encode_where(where)
        except (TypeError, RecursionError):  # odd or very deep JSON that the decoder trips over
            raise InvalidInput(
                "where", payload, "must be a mapping of names to conditions"
            ) from None
        template = self._known.get(encoded)
        if template is None:
            template = DataTemplate(encoded, where or None)
        if len(self._known) + 2 > self._most:
            self._known.clear()
        self._known[encoded] = self._known[payload] = template
        return template


class Device:
    """One CF. Plain slots, because there are millions."""

    __slots__ = (
        "address",
        "expires_us",
        "family",
        "id",
        "lifetime_us",
        "next",
        "reader",
        "template",
    )

    def __init__(
        self,
        id_: bytes,
        family: Family,
        address: str,
        template: DataTemplate,
        reader: str,
        lifetime_us: int,
    ) -> None:
        self.id = id_
        self.family = family
        self.address = address
        self.template = template
        self.reader = reader
        self.lifetime_us = lifetime_us
        self.expires_us = 0
        self.next: Device | None = None
        """Another CF of the same subject, type and address: rare, so a chain and not a list each."""

    def is_same_as(self, other: Device) -> bool:
        """The same content, as far as simple commands can see it."""
        return (
            self.address == other.address
            and self.family == other.family
            and self.template.encoded == other.template.encoded
            and self.reader == other.reader
        )


class Index:
    def __init__(self, *, most: int, most_cancelled: int) -> None:
        self._most = most
        self._by_id: dict[bytes, Device] = {}
        self._by_family: dict[Family, dict[str, Device]] = {}
        self._buckets: SortedDict[int, set[bytes]] = SortedDict()
        self._cancelled = RecentIds(most_cancelled)
        self._by_owner: Counter[str] = Counter()
        self._last_us = 0

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, id_: bytes, now_us: int) -> Device | None:
        device = self._by_id.get(id_)
        return device if device is not None and device.expires_us > now_us else None

    def at(self, family: Family) -> Mapping[str, Device]:
        """A family's devices by address: the first of each, and `next` leads on. The expired are among
        them: look at `expires_us`."""
        return self._by_family.get(family, _NOBODY)

    def kept_by(self, owner: str) -> int:
        """How many belong to this identity, the expired that were not collected yet among them."""
        return self._by_owner[owner]

    def count_new(self, ids: Iterable[bytes]) -> int:
        return len({id_ for id_ in ids if id_ not in self._by_id})

    def make_room(self, ids: Iterable[bytes]) -> None:
        """Refuse a batch as a whole, before any of it is kept."""
        new = self.count_new(ids)
        if len(self._by_id) + new > self._most:
            raise Overloaded(f"this sCA server keeps at most {self._most} CFs", retry_after_s=60.0)

    def put(self, device: Device, now_us: int) -> None:
        """Register: an unknown id is new, a known one with the same content lives on from now."""
        known = self.get(device.id, now_us)
        if known is None:
            for said in _cancels_of(device):
                self._cancelled.discard(said)
            self._insert(device, now_us)
        elif not known.is_same_as(device):
            raise Conflict(f"id: {device.id.hex()} is registered here with other content")
        else:
            known.lifetime_us = device.lifetime_us
            if known.expires_us != NEVER_US:
                self._schedule(known, now_us + known.lifetime_us)

    def fill(self, device: Device, now_us: int) -> bool:
        """From a uTupleServer: what was said here meanwhile, a registration or a cancel, is newer."""
        if device.lifetime_us <= 0 or self._cancelled.among(_cancels_of(device)):
            return False
        if self.get(device.id, now_us) is not None:
            return False
        self._insert(device, now_us)
        return True

    def remove(self, id_: bytes, by: str = "") -> Device | None:
        """Cancelled, and remembered as such: a refill under way may be carrying it still. `by`: the identity that said so, of a
        secured cluster; a CF that comes later is cancelled by it only if it is its own."""
        self._cancelled.add([id_ + by.encode()])
        device = self._by_id.get(id_)
        if device is not None:
            self._drop(device)
        return device

    def forget(self, device: Device) -> None:
        """It is another sCA server's by now, and not cancelled."""
        if self._by_id.get(device.id) is device:
            self._drop(device)

    def all(self) -> list[Device]:
        """Those that are known now; some may be gone when one comes to look at them."""
        return list(self._by_id.values())

    def hold(self, id_: bytes) -> None:
        self._schedule(self._by_id[id_], NEVER_US)

    def let_go(self, id_: bytes, now_us: int) -> None:
        device = self._by_id.get(id_)
        if device is not None:
            self._schedule(device, now_us + device.lifetime_us)

    def expire(self, now_us: int, most: int) -> int:
        """Collect expired CFs, at most so many at a time; how many went."""
        gone = 0
        while gone < most and self._buckets:
            bucket, ids = self._buckets.peekitem(0)
            if (bucket + 1) * BUCKET_US > now_us:
                break
            id_ = ids.pop()  # to look for the first would take longer with each that went
            self._drop(self._by_id[id_])
            gone += 1
        return gone

    def _insert(self, device: Device, now_us: int) -> None:
        expired = self._by_id.get(device.id)
        if expired is not None:
            self._drop(expired)
        self._by_id[device.id] = device
        places = self._by_family.setdefault(device.family, {})
        device.next = places.get(device.address)
        places[device.address] = device
        self._by_owner[owner_of(device.reader)] += 1
        self._schedule(device, now_us + device.lifetime_us)

    def _drop(self, device: Device) -> None:
        del self._by_id[device.id]
        self._unschedule(device)
        self._by_owner[owner_of(device.reader)] -= 1
        places = self._by_family[device.family]
        first = places[device.address]
        if first is not device:
            _cut(first, device)
        elif device.next is not None:
            places[device.address] = device.next
        else:
            del places[device.address]
            if not places:
                del self._by_family[device.family]

    def _schedule(self, device: Device, expires_us: int) -> None:
        self._unschedule(device)
        if expires_us != self._last_us:
            self._last_us = expires_us
        device.expires_us = self._last_us  # one object for many devices: it stays near the core
        if expires_us != NEVER_US:
            bucket = expires_us // BUCKET_US
            ids = self._buckets.get(bucket)
            if ids is None:
                ids = self._buckets[bucket] = set()
            ids.add(device.id)

    def _unschedule(self, device: Device) -> None:
        bucket = device.expires_us // BUCKET_US
        ids = self._buckets.get(bucket)
        if ids is not None:
            ids.discard(device.id)
            if not ids:
                del self._buckets[bucket]


def _cancels_of(device: Device) -> tuple[bytes, bytes]:
    """By what it is remembered that it was cancelled: its id, with its owner's name where there are owners."""
    return device.id, device.id + owner_of(device.reader).encode()


def _cut(first: Device, device: Device) -> None:
    """Take a device that is not the first out of its chain."""
    before = first
    while before.next is not device:
        assert before.next is not None, "a device is in the chain of its address"
        before = before.next
    before.next = device.next
