"""Signed grants: the document with its signature, as it travels and is kept. Whoever brings it need not be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from utuple.errors import InvalidInput
from utuple.security.authority import Authority, is_signed
from utuple.security.grants import Grants, decode, encode

CONTENT_MAX_BYTES = 32 << 20
"""A hundred thousand grants of some families each are some 20 MB."""


@dataclass(frozen=True, slots=True)
class Signed:
    content: bytes
    signature: bytes

    def to_bytes(self) -> bytes:
        """As it is kept in a file or a store."""
        form = {"signature": self.signature.hex(), "content": self.content.decode()}
        return orjson.dumps(form)


def signed(grants: Grants, authority: Authority) -> Signed:
    content = encode(grants)
    return Signed(content, authority.sign(content))


def signed_from(kept: bytes) -> Signed:
    try:
        form = orjson.loads(kept)
        return Signed(form["content"].encode(), bytes.fromhex(form["signature"]))
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError):
        raise InvalidInput(
            "grants", f"{len(kept)} bytes", "must be grants as they are kept"
        ) from None


def verified(given: Signed, cluster: str, authorities_pem: Sequence[str]) -> Grants:
    """The grants, if an authority of this cluster has signed them as they are."""
    if len(given.content) > CONTENT_MAX_BYTES:
        rule = f"must be at most {CONTENT_MAX_BYTES} bytes"
        raise InvalidInput("grants", f"{len(given.content)} bytes", rule)
    if not is_signed(given.content, given.signature, authorities_pem):
        rule = "must be signed by an authority of this cluster, and not changed since"
        raise InvalidInput("grants", f"{len(given.content)} bytes", rule)
    grants = decode(given.content)
    if grants.cluster != cluster:
        raise InvalidInput("grants", grants.cluster, f"must be those of {cluster}")
    return grants
