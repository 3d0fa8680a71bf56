"""A server that operators' tools understand: gRPC's health checks, and its reflection.

Both are grpcio's own servicers, and come with `[server]`; a program without them serves all the same. `grpc.health.v1` says of the
whole program ("") and of each of its services whether it serves; while the program stops it says that it does not, so that a proxy
sends new calls elsewhere. Reflection tells `grpcurl` and the like what there is to call: in a secured cluster it is for operators.
"""

from __future__ import annotations

import importlib.util
from typing import Any

from utuple.transport.server import Server

_NEEDED = ("grpc_health", "grpc_reflection")


class ObservedServer(Server):
    _health: Any = None

    async def start(self) -> None:
        if all(importlib.util.find_spec(name) for name in _NEEDED):
            self._health = await _observed(self)
        await super().start()

    async def stop(self, grace: float | None) -> None:
        if self._health is not None:
            await self._health.enter_graceful_shutdown()
        await super().stop(grace)


async def _observed(server: Server) -> Any:
    """Imported when it is needed: a client opens channels by the same module and has no use for them."""
    from grpc_health.v1 import health, health_pb2, health_pb2_grpc
    from grpc_reflection.v1alpha import reflection

    services = server.services
    servicer = health.aio.HealthServicer()
    for name in services:
        await servicer.set(name, health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    listed = (*services, health.SERVICE_NAME, reflection.SERVICE_NAME)
    reflection.enable_server_reflection(listed, server)
    return servicer
