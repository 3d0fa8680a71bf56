"""python -m utuple.server --name server-1 --listen 127.0.0.1:7411 --database postgresql://… --managers …"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from utuple.cluster.line import NO_TABLE, ServerInfo
from utuple.errors import InvalidInput
from utuple.runtime.announcer import Announcer
from utuple.runtime.clock import now_us
from utuple.runtime.logs import Log
from utuple.runtime.options import add_knobs, add_managers, add_place, knobs_of, listed
from utuple.runtime.program import run_program
from utuple.runtime.tasks import Tasks
from utuple.runtime.trust.program import add_trust, keep_watch, listen
from utuple.server.calls.service import ServerService
from utuple.server.config import ServerConfig
from utuple.server.matching.compiling import compile_when_wanted
from utuple.server.moving.transport import GrpcServerTransport
from utuple.server.sharing import ShareLimits
from utuple.server.trusting import secured
from utuple.server.writing.engine import Engine
from utuple.server.writing.garbage import no_collection, report_collections
from utuple.store.contract import StoreUnavailable
from utuple.store.postgres.store import PostgresStore
from utuple.wire.utuple_pb2_grpc import add_ServerServicer_to_server

_log = Log("utuple.server")
_SAY_AGAIN_S = 5.0
"""A server that waits for its PostgreSQL says so this often."""


def config_from(arguments: Sequence[str]) -> ServerConfig:
    parser = argparse.ArgumentParser(prog="python -m utuple.server", description=__doc__)
    add_place(parser)
    add_managers(parser)
    parser.add_argument(
        "--database",
        default=os.environ.get("UTUPLE_DATABASE", ""),
        metavar="URL",
        help="postgresql://… (or UTUPLE_DATABASE, which other users of the machine cannot see)",
    )
    parser.add_argument(
        "--create",
        action="store_true",
        help="a new server: make the database, and the store in it, if they are missing; without this a "
        "database that is missing or empty is refused",
    )
    parser.add_argument("--unsafe", action="store_true", help="serve although fsync is off")
    add_knobs(
        parser,
        ServerConfig,
        (
            "capacity_bytes",
            "service_us",
            "database_wait_s",
            "connections",
            "connections_per_address",
        ),
    )
    add_knobs(parser, ShareLimits)
    given = parser.parse_args(arguments)
    try:
        return ServerConfig(
            given.name,
            given.listen,
            given.database,
            listed(given.managers),
            create=given.create,
            unsafe=given.unsafe,
            capacity_bytes=given.capacity_bytes,
            advertise=given.advertise,
            log=given.log,
            credentials=given.credentials,
            connections=given.connections,
            connections_per_address=given.connections_per_address,
            shares=knobs_of(ShareLimits, given),
            service_us=given.service_us,
            database_wait_s=given.database_wait_s,
        )
    except InvalidInput as error:
        parser.error(str(error))


async def started(engine: Engine, stop: asyncio.Event) -> bool:
    """Started once its PostgreSQL is there. False: it was asked to stop before that."""
    now_s = asyncio.get_running_loop().time
    began_s = say_s = now_s()
    while not stop.is_set():
        try:
            await engine.start()
            return True
        except StoreUnavailable as error:
            if now_s() - began_s >= engine.config.database_wait_s:
                raise
            if now_s() >= say_s:
                _log.warning("waiting for PostgreSQL", reason=error)
                say_s = now_s() + _SAY_AGAIN_S
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), engine.config.reopen_s * 5)
    return False


async def serve(config: ServerConfig, stop: asyncio.Event) -> None:
    listening = listen(
        config.name,
        config.listen,
        config.credentials,
        connections=config.connections,
        connections_per_address=config.connections_per_address,
    )
    server, address, guard = listening.server, listening.address, listening.guard
    others = GrpcServerTransport()
    store = PostgresStore(config.database, unsafe=config.unsafe, create=config.create)
    engine = Engine(config, store, others)
    exchange = None if guard is None else secured(engine, guard)
    compile_when_wanted(engine.kernels)
    announced = config.advertise or address
    own = ServerInfo(config.name, announced, "server", now_us())
    announcer = Announcer(config.managers, own, lambda: engine.lines, grants=exchange)
    engine.heard = others.known = announcer.servers
    engine.on_change = announcer.now
    with no_collection():
        is_started = await started(engine, stop)
    if not is_started:
        await others.close()
        await server.stop(None)
        _log.info("stopped")
        return
    service = ServerService(engine, announced)
    add_ServerServicer_to_server(service, server)
    add_trust(listening, exchange)
    await server.start()
    _log.info("serving", address=address, known_as=announced)
    if not len(engine.lines):
        _log.warning("waiting for lines", reason=NO_TABLE)
    stopping = asyncio.create_task(stop.wait())
    watching = Tasks()
    watching.keep(lambda: keep_watch(listening), "looking after callers")
    with report_collections(engine.paused):
        async with announcer:
            await asyncio.wait((stopping, *engine.loops), return_when=asyncio.FIRST_COMPLETED)
    await watching.close()
    await engine.stop()
    service.stop()
    await others.close()
    await server.stop(config.stop_s)
    stopping.cancel()
    for loop in engine.loops:
        if loop.done() and not loop.cancelled():
            loop.result()  # a loop never ends by itself: end with its error
    _log.info("stopped")


def main() -> int:
    config = config_from(sys.argv[1:])
    return run_program(config.name, lambda stop: serve(config, stop), config.log)


if __name__ == "__main__":
    sys.exit(main())
