"""Whom a door speaks for: what it shows with a call is checked here again, so that a door that was stolen can forge nobody.

A signature costs some hundred microseconds to check, and a door shows the same proof with every call: what was proved once is
remembered until it ends."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from utuple.errors import NotAllowed
from utuple.runtime.clock import now_us
from utuple.security.proofs import Proved, proved_by_certificate, proved_by_token

_REMEMBERED = 20_000
"""Proofs: some two kilobytes each, by which they are found."""


class Proofs:
    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], Proved] = OrderedDict()

    def proved(
        self, token: str, certificate: str, cluster: str, authorities_pem: Sequence[str]
    ) -> Proved:
        """Raises NotAllowed. Whether an authority holds still, and until when, is asked again with every call."""
        if token and certificate:
            raise NotAllowed("a token and a certificate: it must be one of them")
        shown = (token, certificate)
        known = self._known.get(shown)
        if known is not None:
            self._known.move_to_end(shown)
            return known
        check = proved_by_token if token else proved_by_certificate
        proved = check(token or certificate, cluster, authorities_pem, now_us())
        self._known[shown] = proved
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return proved
