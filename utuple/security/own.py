"""The credentials one acts with, and the certificate in them as `ssl` reads it. A file of them may be renewed while it is used.

`ssl` parses a certificate only after a handshake, so one is made here with nobody: both ends in memory.
"""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from utuple.errors import InvalidInput, NotAllowed
from utuple.security.credentials import (
    Credentials,
    begins_us_of,
    peer_identity,
    private_context,
    read_credentials,
    until_us_of,
)
from utuple.security.identity import Identity, Role

_LOOK_S = 1.0
"""A renewed file is noticed after this at the latest."""
_WITHOUT_TIME = 0x200000
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME: to read a certificate that has ended is no error."""
_MICROSECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class Held:
    """Credentials, and what their certificate says."""

    credentials: Credentials
    identity: Identity
    until_us: int
    """When the certificate ends."""
    begins_us: int
    """From when it holds."""

    @property
    def until(self) -> str:
        return shown_time(self.until_us)


def shown_time(instant_us: int) -> str:
    return f"{datetime.fromtimestamp(instant_us / _MICROSECONDS, UTC):%Y-%m-%d %H:%M:%S} UTC"


def held(credentials: Credentials, shown: str) -> Held:
    """`shown` is what an error calls them."""
    try:
        certificate = _certificate(credentials)
    except ssl.SSLError as error:
        why = getattr(error, "verify_message", "") or error.reason or "it cannot be read"
        rule = f"its certificate must be one of its authority: {why}"
        raise InvalidInput("credentials", shown, rule) from None
    identity = peer_identity(certificate)
    return Held(credentials, identity, until_us_of(certificate), begins_us_of(certificate))


def _certificate(credentials: Credentials) -> dict[str, object]:
    client = private_context(credentials, ssl.PROTOCOL_TLS_CLIENT)
    client.verify_mode = ssl.CERT_NONE
    server = private_context(credentials, ssl.PROTOCOL_TLS_SERVER)
    server.verify_flags |= _WITHOUT_TIME
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    calling = client.wrap_bio(back, there)
    called = server.wrap_bio(there, back, server_side=True)
    for _ in range(3):
        for end in (calling, called):
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
    return dict(called.getpeercert() or {})


class OwnCredentials:
    """Of a program or a space: from a file, read again when it was replaced."""

    def __init__(self, path: Path | str, now_s: Callable[[], float] = time.monotonic) -> None:
        self.path = Path(path)
        self._now_s = now_s
        self._seen = self._stamp()
        self._looked_s = now_s()
        self._held = held(read_credentials(self.path), self.path.name)
        self._choose: Callable[[tuple[str, ...]], tuple[str, ...]] = tuple
        self._authorities = self._held.credentials.authorities_pem
        self._client: ssl.SSLContext | None = None
        self._server: ssl.SSLContext | None = None

    @property
    def held(self) -> Held:
        self._look()
        return self._held

    @property
    def identity(self) -> Identity:
        return self._held.identity

    @property
    def authorities_pem(self) -> tuple[str, ...]:
        """Those that hold."""
        return self._authorities

    def trust(self, choose: Callable[[tuple[str, ...]], tuple[str, ...]]) -> None:
        """From the next connection on: those that this makes of the ones the credentials came with."""
        self._choose = choose
        self._trust_chosen()

    def _trust_chosen(self) -> None:
        chosen = self._choose(self._held.credentials.authorities_pem)
        if chosen != self._authorities:
            self._authorities = chosen
            self._client = self._server = None

    @property
    def trusting(self) -> Credentials:
        """The credentials, with the authorities that hold in place of those they came with."""
        self._look()
        return replace(self._held.credentials, authorities_pem=self._authorities)

    def client_context(self) -> ssl.SSLContext:
        self._look()
        if self._client is None:
            self._client = self.trusting.client_context()
        return self._client

    def server_context(self) -> ssl.SSLContext:
        self._look()
        if self._server is None:
            self._server = self.trusting.server_context()
        return self._server

    def _look(self) -> None:
        """A file that cannot be read, or not any longer, changes nothing: what is held goes on."""
        now_s = self._now_s()
        if now_s - self._looked_s < _LOOK_S:
            return
        self._looked_s = now_s
        stamp = self._stamp()
        if stamp == self._seen:
            return
        with suppress(InvalidInput):
            self._held = held(read_credentials(self.path), self.path.name)
            self._seen = stamp
            self._client = self._server = None
            self._trust_chosen()

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns


OWN: ContextVar[OwnCredentials | None] = ContextVar("own credentials", default=None)
"""Those that a program, or a command at a terminal, acts with wherever it is not said otherwise. None: nothing is secured. A
matter of the context, as the clock is, so that tests run several programs in one process."""


ON_BEHALF: ContextVar[tuple[tuple[str, str], ...]] = ContextVar("on behalf", default=())
"""What a door shows with the operator's calls it makes for somebody (`proofs`). A matter of the context too: of one request."""


def check_program(certificate: dict[str, object] | None, expected: str | None) -> None:
    """Is this a program of the cluster, and the one that was meant? That it is of the cluster the handshake has shown."""
    identity = peer_identity(certificate)
    if identity.role is not Role.PROGRAM:
        raise NotAllowed(f"{identity} answers there, which is no program of the cluster")
    if expected is not None and identity.name != expected:
        raise NotAllowed(f"{identity.name} answers where {expected} is said to be")
