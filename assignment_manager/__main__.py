"""python -m assignment_manager --name manager-1 --listen 127.0.0.1:7400 --peers 127.0.0.1:7401,127.0.0.1:7402"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from dataclasses import fields
from random import Random

from assignment_manager.config import Config
from assignment_manager.service import Service
from utuple.cluster.line import ServerInfo
from utuple.errors import InvalidInput
from utuple.runtime.channel import bind, new_server
from utuple.runtime.clock import now_us
from utuple.runtime.logs import Log
from utuple.runtime.program import run_program
from utuple.runtime.tasks import run_until

_log = Log("assignment_manager")

_TUNABLE = {"gossip_s": float, "suspect_s": float, "dead_s": float, "tokens": int}


def config_from(arguments: Sequence[str]) -> Config:
    parser = argparse.ArgumentParser(prog="python -m assignment_manager", description=__doc__)
    parser.add_argument(
        "--name", required=True, help="for ever: its place on the ring follows from it"
    )
    parser.add_argument("--listen", required=True, metavar="HOST:PORT")
    parser.add_argument("--advertise", default="", metavar="HOST:PORT", help="as others reach it")
    parser.add_argument(
        "--peers", default="", metavar="HOST:PORT,…", help="other assignment managers"
    )
    defaults = {field.name: field.default for field in fields(Config)}
    for knob, kind in _TUNABLE.items():
        parser.add_argument(f"--{knob.replace('_', '-')}", type=kind, default=defaults[knob])
    given = parser.parse_args(arguments)
    seeds = tuple(seed.strip() for seed in given.peers.split(",") if seed.strip())
    tuned = {knob: getattr(given, knob) for knob in _TUNABLE}
    try:
        return Config(given.name, given.listen, given.advertise, seeds, **tuned)
    except InvalidInput as error:
        parser.error(str(error))


async def serve(config: Config, stop: asyncio.Event) -> None:
    server = new_server()
    listening = bind(server, config.listen)
    own = ServerInfo(config.name, config.advertise or listening, "manager", now_us())
    service = Service(config, own, Random())
    server.add_generic_rpc_handlers((service.handlers(),))
    await server.start()
    _log.info(
        "serving", address=listening, known_as=own.address, peers=",".join(config.seeds) or "none"
    )
    try:
        await run_until(stop, service.run())
    finally:
        await server.stop(config.stop_grace_s)
    _log.info("stopped")


def main() -> int:
    config = config_from(sys.argv[1:])
    return run_program(config.name, lambda stop: serve(config, stop))


if __name__ == "__main__":
    sys.exit(main())
