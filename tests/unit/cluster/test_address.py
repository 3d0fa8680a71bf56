"""HOST:PORT: what is not one is refused by name, before anybody waits for it."""

from __future__ import annotations

import pytest

import utuple
from utuple.cluster.address import check_address, check_reachable
from utuple.errors import InvalidInput

GOOD = (
    "127.0.0.1:7400",
    "localhost:1",
    "space.example:65535",
    "münchen.example:7400",
    "[::1]:7400",
    "[fe80::1%eth0]:7400",
)
BAD = (
    "",
    "localhost",
    "localhost:",
    ":7400",
    "localhost:65536",
    "localhost:-1",
    "localhost:７",
    "http://localhost:7400",
    "grpc://localhost:7400",
    "localhost:7400/",
    "user@localhost:7400",
    "::1:7400",
    "[::1:7400",
    "[localhost]:7400",
    "two words:7400",
    "a:1,b:2",
    7400,
    None,
)


@pytest.mark.parametrize("address", GOOD)
def test_an_address_is_taken(address: str) -> None:
    assert check_address("at", address) == check_reachable("at", address) == address
    utuple.connect(address)


@pytest.mark.parametrize("address", [*BAD, "localhost:0"])
def test_what_is_none_is_refused_when_connecting_with_field_value_and_rule(address: str) -> None:
    for connect in (utuple.connect, utuple.blocking.connect):
        with pytest.raises(InvalidInput) as caught:
            connect("127.0.0.1:7400", address)
        assert (caught.value.field, caught.value.value) == ("at", address)
        assert caught.value.rule


def test_an_address_of_the_web_is_told_what_is_too_much() -> None:
    with pytest.raises(InvalidInput, match="without http://"):
        check_address("at", "http://localhost:7400")


def test_port_0_is_for_those_who_listen() -> None:
    assert check_address("listen", "127.0.0.1:0")
