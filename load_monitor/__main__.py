"""python -m load_monitor --name monitor-1 --listen 127.0.0.1:7422 --managers 127.0.0.1:7400,127.0.0.1:7401"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from dataclasses import fields

from load_monitor.config import Config
from load_monitor.policy import LIVE, Policy, adjusted
from load_monitor.poller import Poller
from load_monitor.recorder import Recorder, check_telemetry
from load_monitor.service import MonitorService
from load_monitor.telemetry import NOT_KEPT, TelemetryConfig
from load_monitor.transport import GrpcCalls
from utuple.cluster.line import ServerInfo
from utuple.errors import InvalidInput
from utuple.runtime.announcer import Announcer
from utuple.runtime.channel import bind, new_server
from utuple.runtime.clock import now_us
from utuple.runtime.logs import Log
from utuple.runtime.program import run_program
from utuple.runtime.tasks import run_until
from utuple.wire.utuple_pb2_grpc import add_MonitorServicer_to_server

_log = Log("load_monitor")
_FLUSH_S = 1.0
_SHORT = {"processing_start": "--t-p", "memory_start": "--t-m"}
"""The paper's own names."""


def config_from(arguments: Sequence[str]) -> Config:
    parser = argparse.ArgumentParser(
        prog="python -m load_monitor",
        description="Watches the servers' load, plans moves and orders them. Every policy knob is an "
        "option; thresholds that belong to T_p or T_m and are not given keep their share of it. Reasons "
        "and units: load_monitor/policy.py.",
    )
    parser.add_argument("--name", required=True, help="for ever: it is known by this")
    parser.add_argument("--listen", required=True, metavar="HOST:PORT")
    parser.add_argument("--advertise", default="", metavar="HOST:PORT", help="as others reach it")
    parser.add_argument("--managers", required=True, metavar="HOST:PORT,…")
    parser.add_argument(
        "--telemetry", default="", metavar="DIR", help="keep samples as Parquet files"
    )
    parser.add_argument("--telemetry-every", type=float, default=NOT_KEPT.sample_s, metavar="S")
    own = [field for field in fields(Config) if isinstance(field.default, float)]
    for field in own:
        parser.add_argument(_flag(field.name), type=float, default=field.default, metavar="S")
    knobs = [field.name for field in fields(Policy)]
    for name in knobs:
        flags = [_flag(name), *filter(None, [_SHORT.get(name)])]
        parser.add_argument(
            *flags, dest=name, type=float, metavar="N", help=f"default {getattr(LIVE, name):g}"
        )
    given = parser.parse_args(arguments)
    try:
        asked = {name: getattr(given, name) for name in knobs if getattr(given, name) is not None}
        return Config(
            given.name,
            given.listen,
            tuple(part.strip() for part in given.managers.split(",") if part.strip()),
            given.advertise,
            adjusted(LIVE, asked),
            TelemetryConfig(given.telemetry, given.telemetry_every),
            **{field.name: getattr(given, field.name) for field in own},
        )
    except InvalidInput as error:
        parser.error(str(error))


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


async def watch(config: Config, stop: asyncio.Event) -> None:
    recorder = None
    if config.telemetry.folder:
        check_telemetry(config.telemetry.folder)
        recorder = Recorder(config.name, config.telemetry, now_us())
    server = new_server()
    listening = bind(server, config.listen)
    own = ServerInfo(config.name, config.advertise or listening, "monitor", now_us())
    async with Announcer(config.managers, own, lambda: ()) as announcer:

        def managers() -> list[str]:
            learned = (manager.address for manager in announcer.managers.values())
            return list(dict.fromkeys([*config.managers, *learned]))

        poller = Poller(config, GrpcCalls(config), managers, recorder)
        add_MonitorServicer_to_server(MonitorService(config, own, poller), server)
        await server.start()
        _log.info("watching", address=listening, known_as=own.address)
        try:
            await run_until(stop, poller.run())
        finally:
            if recorder is not None:
                await recorder.close()
    await server.stop(_FLUSH_S)
    _log.info("stopped")


def main() -> int:
    config = config_from(sys.argv[1:])
    return run_program(config.name, lambda stop: watch(config, stop))


if __name__ == "__main__":
    sys.exit(main())
