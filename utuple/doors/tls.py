"""How a door of a secured cluster listens: TLS 1.3. Whoever has a certificate of the cluster may show it, nobody must: he may have a
token instead. Renewed credentials count from the next connection on."""

from __future__ import annotations

import os
import ssl
from collections.abc import Sequence

from utuple.errors import InvalidInput
from utuple.security.credentials import private_context
from utuple.security.own import OwnCredentials


class Listening:
    def __init__(
        self, own: OwnCredentials, alpn: Sequence[str] = (), certificate: str = ""
    ) -> None:
        """`certificate`: a file of one that is shown instead of the door's own."""
        self._own = own
        self._alpn = list(alpn)
        self._certificate = certificate
        self._made: ssl.SSLContext | None = None
        self._made_of: object = None
        self.context = self._newest()  # a file that cannot be used is found at the start
        self.context.sni_callback = self._renewed

    def _renewed(self, connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        """Asked in each handshake, before anything is shown."""
        connection.context = self._newest()

    def _newest(self) -> ssl.SSLContext:
        made_of = (self._own.held, self._own.authorities_pem, _stamp(self._certificate))
        if self._made is None or made_of != self._made_of:
            self._made, self._made_of = self._context(), made_of
        return self._made

    def _context(self) -> ssl.SSLContext:
        context = private_context(self._own.trusting, ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = ssl.CERT_OPTIONAL
        if self._alpn:
            context.set_alpn_protocols(self._alpn)
        if self._certificate:
            try:
                context.load_cert_chain(self._certificate)
            except (OSError, ssl.SSLError) as error:
                rule = f"must be a certificate and its key, as PEM: {error.strerror or error}"
                raise InvalidInput("certificate", self._certificate, rule) from None
        return context


def _stamp(file: str) -> tuple[int, int] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def shown_by(connection: object) -> bytes | None:
    """The certificate that whoever connected has shown, verified, as DER."""
    if not isinstance(connection, ssl.SSLObject):
        return None
    return connection.getpeercert(binary_form=True)
