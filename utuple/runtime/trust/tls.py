"""Own credentials as the transport takes them."""

from __future__ import annotations

from collections.abc import Callable

from utuple.security.own import OWN, OwnCredentials, check_program
from utuple.transport.peer import Peer, Tls


def calling(own: OwnCredentials, expected: Callable[[], str | None] = lambda: None) -> Tls:
    """For who calls. `expected` is the name of the program that is meant, if that is known; asked at each connection."""

    def check(peer: Peer) -> None:
        check_program(peer.certificate, expected())

    return Tls(own.client_context, check)


def answering(own: OwnCredentials, refused: Callable[[str, str], None] | None = None) -> Tls:
    """For who listens. `refused` hears of whoever does not get through the handshake."""
    return Tls(own.server_context, refused=refused)


def own_tls(expected: str | None = None) -> Tls | None:
    """As this context's own credentials say; None: nothing is secured."""
    own = OWN.get()
    return None if own is None else calling(own, lambda: expected)
