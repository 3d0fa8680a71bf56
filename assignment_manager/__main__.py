"""python -m assignment_manager --name manager-1 --listen 127.0.0.1:7400 --peers 127.0.0.1:7401,127.0.0.1:7402"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from random import Random

from assignment_manager.config import Config
from assignment_manager.service import Service
from utuple.cluster.line import ServerInfo
from utuple.errors import InvalidInput
from utuple.runtime.clock import now_us
from utuple.runtime.logs import Log
from utuple.runtime.options import add_knobs, add_place, listed
from utuple.runtime.program import run_program
from utuple.runtime.tasks import run_until
from utuple.runtime.trust.exchange import GrantsExchange, GrantsFile
from utuple.runtime.trust.program import add_trust, keep_watch, listen

_log = Log("assignment_manager")

_TUNABLE = ("gossip_s", "suspect_s", "dead_s", "tokens", "connections", "connections_per_address")


def config_from(arguments: Sequence[str]) -> Config:
    parser = argparse.ArgumentParser(prog="python -m assignment_manager", description=__doc__)
    add_place(parser)
    parser.add_argument(
        "--peers",
        default="",
        metavar="HOST:PORT,…",
        help="other assignment managers: one that answers is enough, the rest is learned from it",
    )
    add_knobs(parser, Config, _TUNABLE)
    given = parser.parse_args(arguments)
    tuned = {knob: getattr(given, knob) for knob in _TUNABLE}
    try:
        return Config(
            given.name,
            given.listen,
            given.advertise,
            listed(given.peers),
            given.log,
            given.credentials,
            **tuned,
        )
    except InvalidInput as error:
        parser.error(str(error))


async def serve(config: Config, stop: asyncio.Event) -> None:
    listening = listen(
        config.name,
        config.listen,
        config.credentials,
        connections=config.connections,
        connections_per_address=config.connections_per_address,
    )
    server, guard = listening.server, listening.guard
    exchange = None if guard is None else GrantsExchange(guard, GrantsFile(guard).keep)
    own = ServerInfo(config.name, config.advertise or listening.address, "manager", now_us())
    service = Service(config, own, Random(), exchange)
    add_trust(listening, exchange)
    server.add_generic_rpc_handlers((service.handlers(),))
    await server.start()
    _log.info(
        "serving",
        address=listening.address,
        known_as=own.address,
        peers=",".join(config.seeds) or "none",
    )
    try:
        await run_until(stop, service.run(), keep_watch(listening))
    finally:
        await server.stop(config.stop_grace_s)
    _log.info("stopped")


def main() -> int:
    config = config_from(sys.argv[1:])
    return run_program(config.name, lambda stop: serve(config, stop), config.log)


if __name__ == "__main__":
    sys.exit(main())
