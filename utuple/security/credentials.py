"""Credentials: the file `NAME.creds` that proves who one is. One PEM file: certificate, key, authorities.

Python's `ssl` alone, so that a sensor program needs nothing more. The certificate comes first because `ssl` takes the first
of a file for the one it shows.
"""

from __future__ import annotations

import os
import re
import ssl
import tempfile
from dataclasses import dataclass
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
    key_pem: str
    authorities_pem: tuple[str, ...]

    def __repr__(self) -> str:
        """A key is in no log."""
        return f"Credentials({len(self.authorities_pem)} authorities)"

    def to_pem(self) -> str:
        return "".join((self.certificate_pem, self.key_pem, *self.authorities_pem))

    def trusting(self, *more_pem: str) -> Credentials:
        """The same, trusting these authorities too."""
        known = dict.fromkeys((*self.authorities_pem, *more_pem))
        return Credentials(self.certificate_pem, self.key_pem, tuple(known))

    def client_context(self) -> ssl.SSLContext:
        """For who calls: the server is told apart by its identity, not by a host name (`check_peer`)."""
        return self._context(ssl.PROTOCOL_TLS_CLIENT)

    def server_context(self) -> ssl.SSLContext:
        """For who listens: a caller without a certificate of this cluster is refused in the handshake."""
        return self._context(ssl.PROTOCOL_TLS_SERVER)

    def _context(self, protocol: ssl._SSLMethod) -> ssl.SSLContext:
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata="".join(self.authorities_pem))
        context.set_alpn_protocols(["h2"])
        # `ssl` reads a key from a file only: one that nobody else may open, and that is gone at once.
        with tempfile.TemporaryDirectory(prefix="utuple-") as folder:
            path = Path(folder) / "own.pem"
            write_private(path, self.certificate_pem + self.key_pem)
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


def credentials_of(pem: str, shown: str) -> Credentials:
    """`shown` is what an error calls it; the content is in no message."""
    blocks = [(found[1], found[0]) for found in _BLOCK.finditer(pem)]
    keys = [block for kind, block in blocks if kind.endswith("PRIVATE KEY")]
    certificates = [block for kind, block in blocks if kind == "CERTIFICATE"]
    if len(keys) != 1 or len(certificates) < 2:
        rule = "must hold one certificate, its key and the cluster's authority, as `utuple grant` writes them"
        raise InvalidInput("credentials", shown, rule)
    own = Credentials(certificates[0], keys[0], tuple(certificates[1:]))
    try:
        own.client_context()
    except ssl.SSLError as error:
        rule = f"key and certificates must fit together: {error.reason or 'they cannot be read'}"
        raise InvalidInput("credentials", shown, rule) from None
    return own


def write_credentials(path: Path, credentials: Credentials) -> None:
    """At once: who reads the file meanwhile has the old one or the new one."""
    beside = path.with_name(f".{path.name}.new")
    beside.unlink(missing_ok=True)
    write_private(beside, credentials.to_pem())
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


def peer_identity(certificate: dict[str, Any] | None) -> Identity:
    """Who the other end of a connection is, from what `ssl` says of its certificate after it was verified."""
    if not certificate:
        raise InvalidInput("certificate", None, "is missing")
    names = [name for kind, name in certificate.get("subjectAltName", ()) if kind == "URI"]
    if len(names) != 1:
        raise InvalidInput("certificate", names, "must name exactly one identity")
    return identity_of(names[0], issued_us_of(int(certificate["serialNumber"], 16)))
