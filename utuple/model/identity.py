"""Ids: UUIDv7 made by the client, and the fixed ids of named readers' formals.

A named reader that comes back must find its EF or CF again without asking anyone, so the id of a named
formal is a hash of what it is. `since` is left out: a program that starts again says "since an hour ago"
anew, and means the reading it had begun.

Such an id can be known beforehand. So on a secured cluster its first half is a hash of its owner's name, which servers compare with who
registers it: nobody can come first under another's, and two owners may use the same name for the same reading.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from utuple.model.condition import condition_to_list, encode_where
from utuple.model.utuple import ID_BYTES, Exact, UTuple
from utuple.model.value import encode_data

_MS_BITS = 48
TIME_BYTES = _MS_BITS // 8
"""Of an id: the first ones."""
_NAMED_VERSION = 8
"""RFC 9562: of an id that is made as its program likes."""
_OWNER_BYTES = 8
"""Of a named id: the first ones. Version and all, 60 bits are a hash, and what follows is one of 62 bits."""


def uuid7(now_us: int, random: int) -> bytes:
    """RFC 9562: 48 bits of milliseconds, version, variant; the rest is the caller's 74 random bits."""
    ms = (now_us // 1000) & ((1 << _MS_BITS) - 1)
    high = (random >> 62) & 0xFFF
    low = random & ((1 << 62) - 1)
    value = (ms << 80) | (0x7 << 76) | (high << 64) | (0b10 << 62) | low
    return value.to_bytes(ID_BYTES, "big")


def time_of_id_us(id_: bytes) -> int:
    """When a UUIDv7 was made, to the millisecond."""
    return int.from_bytes(id_[:TIME_BYTES], "big") * 1000


def content_digest(utuple: UTuple) -> bytes:
    """What "same content" means for a formal that is registered again under its id."""
    metadata = utuple.metadata
    if isinstance(metadata, Exact):
        place: list[object] = [metadata.address, list(metadata.position or ())]
    else:
        area = metadata.area
        shape = [type(area).__name__, *(getattr(area, f) for f in area.__slots__)] if area else []
        place = [condition_to_list(metadata.address), shape, metadata.until_us]
    where = encode_where(utuple.where) if utuple.where is not None else b""
    data = encode_data(utuple.data) if utuple.data is not None else b""
    described = encode_data(
        {
            "kind": utuple.kind.value,
            "family": list(utuple.family),
            "reader": utuple.reader or "",
            "metadata": place,
        }
    )
    return hashlib.blake2b(b"\x00".join([described, where, data]), digest_size=ID_BYTES).digest()


def named_id(formal: UTuple, owner: str = "") -> bytes:
    """The fixed id of a named reader's formal: a UUIDv8 of its content, and on a secured cluster of whose it is."""
    digest = bytearray(content_digest(formal))
    digest[6] = (digest[6] & 0x0F) | _NAMED_VERSION << 4
    if owner:
        digest[:_OWNER_BYTES] = _hash_of(owner)
    digest[8] = (digest[8] & 0x3F) | 0x80
    return bytes(digest)


@lru_cache(maxsize=1024)
def _hash_of(owner: str) -> bytes:
    digest = bytearray(hashlib.blake2b(owner.encode(), digest_size=_OWNER_BYTES).digest())
    digest[6] = (digest[6] & 0x0F) | _NAMED_VERSION << 4
    return bytes(digest)


def is_named(id_: bytes) -> bool:
    """Is it one of `named_id`?"""
    return id_[6] >> 4 == _NAMED_VERSION


def is_named_by(owner: str, id_: bytes) -> bool:
    """Is it one of `named_id` for this owner?"""
    return id_.startswith(_hash_of(owner))
