"""The key: where a family lies in the hash space. A 64-bit point and nothing else."""

from __future__ import annotations

import hashlib
from functools import lru_cache

HASH_SPACE = 1 << 64
_CACHED_FAMILIES = 65_536


@lru_cache(maxsize=_CACHED_FAMILIES)
def key_of(subject: str, type_: str) -> int:
    """Names hold no U+0000, so the separator keeps ("ab", "c") and ("a", "bc") apart."""
    text = f"{subject}\x00{type_}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")


def device_key(subject: str, type_: str, address: str) -> int:
    """Which sCA server keeps this device, when there are several (section 3.2)."""
    text = f"{subject}\x00{type_}\x00{address}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")
