"""Doors of a secured virtual cluster: in half of the secured seeds the guest comes through one, and another one was stolen.

The thief has the stolen door's credentials, and certificates and tokens that were shown to it. He says that he speaks for those who may
do everything. Whatever he says, no program may hear him as anybody: what is heard as whom is compared with who it really was.
"""

from __future__ import annotations

import base64
from itertools import cycle

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from tests.virtual.world.loop import START_US
from utuple.security.authority import Authority, new_authority
from utuple.security.credentials import Credentials
from utuple.security.identity import Identity, Role
from utuple.security.proofs import token_of

DOOR = "door-1"
_DAYS = 30.0
_LIFE_S = 86_400.0

Shown = tuple[Identity, str, str]
"""Who has the connection; the token and the certificate that are shown on it."""


class AtDoors:
    def __init__(self, authority: Authority, rich: Identity, operator: Identity) -> None:
        """`rich` may do everything."""
        self._authority = authority
        self._guest_token = ""
        cluster = authority.cluster
        door = Identity(cluster, Role.DOOR, DOOR, START_US)
        self.door = door
        self._forgeries = cycle(self._made_up(door, rich, operator))

    def guest_came(self, guest: Identity) -> None:
        """With credentials that were issued to him just now."""
        issued = self._authority.issue(guest, _DAYS)
        self._guest_token = token_of(issued, guest.issued_us, _LIFE_S)

    def guest(self) -> Shown:
        return self.door, self._guest_token, ""

    def thief(self, method: str) -> Shown:
        """A door may ask where a key is; with everything else he pretends to be another."""
        return (self.door, "", "") if method == "lookup" else next(self._forgeries)

    def _made_up(self, door: Identity, rich: Identity, operator: Identity) -> list[Shown]:
        of_door, of_rich = (self._authority.issue(one, _DAYS, (), START_US) for one in (door, rich))
        of_operator = self._authority.issue(operator, _DAYS, (), START_US)
        elsewhere = new_authority(door.cluster, START_US).issue(rich, _DAYS, (), START_US)
        own = token_of(of_door, START_US, _LIFE_S)
        stolen = token_of(of_rich, START_US, _LIFE_S)
        nobody = Identity(door.cluster, Role.APPLICATION, "nobody", START_US)
        return [
            (door, token_of(elsewhere, START_US, _LIFE_S), ""),
            (door, _with_certificate_of(of_rich, own), ""),
            (door, own, ""),
            (door, "", _shown(of_operator)),
            (door, stolen, _shown(of_rich)),
            (nobody, stolen, ""),
            (Identity(door.cluster, Role.DOOR, "door-9", START_US), stolen, ""),
        ]


def _shown(credentials: Credentials) -> str:
    certificate = x509.load_pem_x509_certificate(credentials.certificate_pem.encode())
    return base64.b64encode(certificate.public_bytes(Encoding.DER)).decode()


def _with_certificate_of(rich: Credentials, own: str) -> str:
    """His certificate, which the door has met, over its own signature."""
    genuine = token_of(rich, START_US, _LIFE_S)
    return ".".join((*genuine.split(".")[:2], own.split(".")[2]))
