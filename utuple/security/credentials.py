"""Credentials: the file `NAME.creds` that proves who one is. One PEM file: certificate, key, authorities. While an authority
is being replaced, a certificate by which the old one vouches for the new one stands between certificate and key.

Python's `ssl` alone, so that a sensor program needs nothing more. The certificate comes first because `ssl` takes the first
of a file for the one it shows.
"""

from __future__ import annotations

import os
import re
import ssl
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from utuple.errors import InvalidInput
from utuple.security.identity import Identity, identity_of

_RANDOM_BITS = 64
_BLOCK = re.compile(r"-----BEGIN ([A-Z ]+)-----\n.+?\n-----END \1-----\n?", re.DOTALL)
_SIZE_MAX = 256 * 1024
"""Of a file of credentials: certificate, key and a few authorities are some kilobytes."""
PRIVATE = 0o600


@dataclass(frozen=True, slots=True, repr=False)
class Credentials:
    certificate_pem: str
    """And what is shown beside it."""
    key_pem: str
    authorities_pem: tuple[str, ...]

    def __repr__(self) -> str:
        """A key is in no log."""
        return f"Credentials({len(self.authorities_pem)} authorities)"

    def to_pem(self) -> str:
        return "".join((self.certificate_pem, self.key_pem, *self.authorities_pem))

    def vouched_for(self, *vouching_pem: str) -> Credentials:
        """The same, with what an older authority says of the one that issued them."""
        return replace(self, certificate_pem="".join((self.certificate_pem, *vouching_pem)))

    def trusting(self, *more_pem: str) -> Credentials:
        """The same, trusting these authorities too."""
        known = dict.fromkeys((*self.authorities_pem, *more_pem))
        return Credentials(self.certificate_pem, self.key_pem, tuple(known))

    def client_context(self) -> ssl.SSLContext:
        """For who calls: the server is told apart by its identity, not by a host name (`own.check_program`)."""
        return self._context(ssl.PROTOCOL_TLS_CLIENT)

    def server_context(self) -> ssl.SSLContext:
        """For who listens: a caller without a certificate of this cluster is refused in the handshake."""
        return self._context(ssl.PROTOCOL_TLS_SERVER)

    def _context(self, protocol: ssl._SSLMethod) -> ssl.SSLContext:
        context = private_context(self, protocol)
        context.set_alpn_protocols(["h2"])
        return context


def private_context(own: Credentials, protocol: ssl._SSLMethod) -> ssl.SSLContext:
    """TLS 1.3 among those of one cluster, both ends known."""
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata="".join(own.authorities_pem))
    # `ssl` reads a key from a file only: one that nobody else may open, and that is gone at once.
    with tempfile.TemporaryDirectory(prefix="utuple-") as folder:
        path = Path(folder) / "own.pem"
        write_private(path, own.certificate_pem + own.key_pem)
        context.load_cert_chain(path)
    return context


def read_credentials(path: Path | str) -> Credentials:
    path = Path(path)
    try:
        with path.open("rb") as file:
            content = file.read(_SIZE_MAX + 1)
    except OSError as error:
        raise InvalidInput("credentials", path.name, f"cannot be read: {error.strerror}") from None
    if len(content) > _SIZE_MAX:
        raise InvalidInput("credentials", path.name, f"must be at most {_SIZE_MAX} bytes")
    return credentials_of(content.decode("ascii", errors="replace"), path.name)


def pem_blocks(pem: str) -> dict[str, list[str]]:
    """Keys and certificates, in their order."""
    found: dict[str, list[str]] = {"PRIVATE KEY": [], "CERTIFICATE": []}
    for block in _BLOCK.finditer(pem):
        kind = "PRIVATE KEY" if block[1].endswith("PRIVATE KEY") else block[1]
        found.setdefault(kind, []).append(block[0])
    return found


def credentials_of(pem: str, shown: str) -> Credentials:
    """`shown` is what an error calls it; the content is in no message."""
    if not pem.isascii():
        raise InvalidInput("credentials", shown, "must be a PEM file, which is ASCII throughout")
    blocks = pem_blocks(pem)
    keys, certificates = blocks["PRIVATE KEY"], blocks["CERTIFICATE"]
    if len(keys) != 1 or len(certificates) < 2:
        rule = "must hold one certificate, its key and the cluster's authority, as `utuple grant` writes them"
        raise InvalidInput("credentials", shown, rule)
    shown_pem = pem_blocks(pem[: pem.index(keys[0])])["CERTIFICATE"] or certificates[:1]
    own = Credentials("".join(shown_pem), keys[0], tuple(certificates[len(shown_pem) :]))
    try:
        own.client_context()
    except ssl.SSLError as error:
        rule = f"key and certificates must fit together: {error.reason or 'they cannot be read'}"
        raise InvalidInput("credentials", shown, rule) from None
    return own


def write_credentials(path: Path, credentials: Credentials) -> None:
    replace_private(path, credentials.to_pem())


def replace_private(path: Path, content: str) -> None:
    """At once: who reads the file meanwhile has the old one or the new one."""
    beside = path.with_name(f".{path.name}.new")
    beside.unlink(missing_ok=True)
    write_private(beside, content)
    beside.replace(path)


def write_private(path: Path, content: str) -> None:
    """Made with its mode, so that there is no moment at which others could read it."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE), "w") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def serial_of(issued_us: int, random_bits: int) -> int:
    """A certificate's serial number: when it was issued, and what nobody can guess."""
    return (issued_us << _RANDOM_BITS) | random_bits


def issued_us_of(serial: int) -> int:
    return serial >> _RANDOM_BITS


def until_us_of(certificate: dict[str, Any]) -> int:
    """When it ends."""
    return int(ssl.cert_time_to_seconds(certificate["notAfter"])) * 1_000_000


def begins_us_of(certificate: dict[str, Any]) -> int:
    """From when it holds."""
    return int(ssl.cert_time_to_seconds(certificate["notBefore"])) * 1_000_000


def issuer_of(certificate: dict[str, Any]) -> str:
    """The common name of the authority that issued it: each authority has one of its own."""
    parts = (part for named in certificate.get("issuer", ()) for part in named)
    return next((value for name, value in parts if name == "commonName"), "")


def peer_identity(certificate: dict[str, Any] | None) -> Identity:
    """Who the other end of a connection is, from what `ssl` says of its certificate after it was verified."""
    if not certificate:
        raise InvalidInput("certificate", None, "is missing")
    names = [name for kind, name in certificate.get("subjectAltName", ()) if kind == "URI"]
    if len(names) != 1:
        raise InvalidInput("certificate", names, "must name exactly one identity")
    return identity_of(names[0], issued_us_of(int(certificate["serialNumber"], 16)))
