"""The virtual network is no worse than a real one: the scenes' waits are right only then."""

from __future__ import annotations

from tests.virtual.world.loop import DriftingClock, Life
from tests.virtual.world.network import KEEPALIVE_S, Network, Place
from tests.virtual.world.streams import VirtualStream
from tests.virtual.world.world import World
from utuple.errors import OutcomeUnknown

_SEEDS = 400


def _noticed_s(seed: int) -> float:
    """From a server's death until its reader knows."""
    world = World(seed)
    network = Network(world)
    reader, server = (Life(name, 1, DriftingClock(world.loop)) for name in ("reader", "server"))
    stream = VirtualStream(network, reader, Place(server, None), "deliver")

    async def wait() -> float:
        died_s = world.now_s
        server.end()
        network.died(server)
        try:
            await stream.receive()
        except OutcomeUnknown:
            return world.now_s - died_s
        raise AssertionError("the stream of a dead server ended in order")

    try:
        return world.loop.run_world(wait())
    finally:
        world.end()
        world.loop.close()


def test_a_dead_server_is_noticed_at_once_or_by_one_keepalive() -> None:
    waits_s = [_noticed_s(seed) for seed in range(_SEEDS)]
    assert max(waits_s) < KEEPALIVE_S + 0.1
    late = [wait_s for wait_s in waits_s if wait_s > 1.0]
    assert max(late) > 0.8 * KEEPALIVE_S
    assert 0.08 < len(late) / _SEEDS < 0.25
