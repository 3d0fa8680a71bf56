"""gRPC's health checks and reflection, asked by grpcio's own clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

from utuple.runtime.channel import bind, new_server, open_channel
from utuple.wire import utuple_pb2 as pb
from utuple.wire.utuple_pb2_grpc import MonitorServicer, add_MonitorServicer_to_server

LIMIT_S = 10.0
Health = health_pb2.HealthCheckResponse
MONITOR = "utuple.v1.Monitor"


class Monitor(MonitorServicer):
    async def Status(self, request: Any, context: Any) -> Any:
        return pb.MonitorStatus()


@asynccontextmanager
async def served() -> AsyncIterator[tuple[Any, str]]:
    server = new_server()
    add_MonitorServicer_to_server(Monitor(), server)
    address = bind(server, "127.0.0.1:0")
    await server.start()
    async with asyncio.timeout(3 * LIMIT_S):
        yield server, address
    await server.stop(None)


async def test_grpcio_s_health_client_hears_who_serves_and_that_a_server_stops() -> None:
    async with served() as (server, address), grpc.aio.insecure_channel(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        for service in ("", MONITOR):
            answer = await stub.Check(health_pb2.HealthCheckRequest(service=service))
            assert answer.status == Health.SERVING
        try:
            await stub.Check(health_pb2.HealthCheckRequest(service="utuple.v1.Nobody"))
        except grpc.aio.AioRpcError as error:
            assert error.code() is grpc.StatusCode.NOT_FOUND
        else:
            raise AssertionError("nobody serves that")
        watching = stub.Watch(health_pb2.HealthCheckRequest(service=MONITOR))
        assert (await watching.read()).status == Health.SERVING
        stopping = asyncio.create_task(server.stop(1.0))
        assert (await watching.read()).status == Health.NOT_SERVING
        watching.cancel()
        await stopping


async def test_our_own_client_asks_as_well() -> None:
    async with served() as (_, address), open_channel(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=LIMIT_S)
        assert answer.status == Health.SERVING


async def test_reflection_tells_a_tool_what_there_is_to_call() -> None:
    def asked(address: str) -> tuple[list[str], list[str]]:
        with grpc.insecure_channel(address) as channel:
            database = ProtoReflectionDescriptorDatabase(channel)
            found = database.FindFileContainingSymbol(MONITOR)
            calls = [m.name for s in found.service if s.name == "Monitor" for m in s.method]
            return list(database.get_services()), calls

    async with served() as (_, address):
        services, calls = await asyncio.to_thread(asked, address)
    assert MONITOR in services and "grpc.health.v1.Health" in services
    assert calls == ["Status"]
