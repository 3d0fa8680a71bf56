"""Identities, as certificates name them."""

from __future__ import annotations

import pytest

from utuple.errors import InvalidInput
from utuple.security.identity import Identity, Role, identity_of


def test_an_identity_is_its_uri_and_back() -> None:
    identity = Identity("plant-7.example", Role.DEVICE, "truck-17", 5)
    assert identity.uri == "spiffe://plant-7.example/device/truck-17"
    assert identity_of(identity.uri, 5) == identity


@pytest.mark.parametrize(
    "uri",
    [
        *("", "spiffe://", "spiffe://c/device", "spiffe://c/device/a/b", "http://c/device/a"),
        *("spiffe://c/device/", "spiffe:///device/a", "spiffe://C/device/a", "spiffe://c/king/a"),
        *("spiffe://c/device/.hidden", "spiffe://c/device/a b", "spiffe://c/device/ä"),
        *("spiffe://c/device/" + "a" * 129, "spiffe://c-/device/a", "spiffe://c/Device/a"),
        *("spiffe://c/device/a\n", "spiffe://c\n/device/a", " spiffe://c/device/a"),
    ],
)
def test_what_is_no_identity_is_refused(uri: str) -> None:
    with pytest.raises(InvalidInput):
        identity_of(uri)
