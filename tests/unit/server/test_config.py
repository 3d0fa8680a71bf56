"""What a server's knobs come to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from utuple.errors import InvalidInput
from utuple.server.config import ServerConfig

CONFIG = ServerConfig("A", "127.0.0.1:0", "memory", ("none",))


@pytest.mark.parametrize(
    ("positions", "wait_s"), [(0, 0.25), (1, 0.25), (250, 0.25), (700, 0.7), (10**6, 1.0)]
)
def test_positions_of_many_readers_are_gathered_longer_but_not_for_ever(
    positions: int, wait_s: float
) -> None:
    assert CONFIG.gathering_s(positions) == pytest.approx(wait_s)


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]"])
def test_a_server_that_listens_everywhere_must_say_where_it_is_reached(host: str) -> None:
    with pytest.raises(InvalidInput, match="--advertise"):
        replace(CONFIG, listen=f"{host}:7411")
    assert replace(CONFIG, listen=f"{host}:7411", advertise="10.0.0.1:7411").advertise
