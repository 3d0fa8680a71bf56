"""Who is at the other end of a connection, as far as the connection itself can tell."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

ALPN = "h2"


class Peer:
    """Of one connection: what it proved about itself, and what was made of that."""

    __slots__ = ("_ssl", "address", "certificate_der", "identity", "is_secure")

    def __init__(
        self, address: str = "", tls: ssl.SSLObject | None = None, identity: Any = None
    ) -> None:
        self.address = address
        """`HOST:PORT`, an IPv6 host in brackets; empty if there is none."""
        self.is_secure = tls is not None
        self.certificate_der = tls.getpeercert(binary_form=True) if tls is not None else None
        """The certificate it showed in the handshake, if it did."""
        self.identity = identity
        """Whoever authorises calls may keep here, for as long as the connection lasts, what it made of the certificate."""
        self._ssl = tls

    @property
    def certificate(self) -> dict[str, Any] | None:
        """The same, as `ssl` parses it: subject, subjectAltName, notAfter, serialNumber."""
        return self._ssl.getpeercert() if self._ssl is not None else None

    @property
    def speaks_http2(self) -> bool:
        """Over TLS that is agreed upon in the handshake (RFC 9113, section 3.2); without, it is known beforehand."""
        return self._ssl is None or self._ssl.selected_alpn_protocol() == ALPN

    @property
    def host(self) -> str:
        return self.address.rpartition(":")[0]


@dataclass(frozen=True, slots=True)
class Tls:
    context: Callable[[], ssl.SSLContext]
    """Asked for each new connection, so that renewed certificates and authorities count from then on."""
    check: Callable[[Peer], None] | None = None
    """For a client: is this the server that was meant? Raises what is to be said if it is not."""
    refused: Callable[[str, str], None] | None = None
    """For a server: told of a handshake that failed, from which host and why."""


def peer_of(transport: asyncio.BaseTransport) -> Peer:
    return Peer(
        _address(transport.get_extra_info("peername")), transport.get_extra_info("ssl_object")
    )


def _address(name: Any) -> str:
    if not isinstance(name, tuple):
        return ""
    host, port = name[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
