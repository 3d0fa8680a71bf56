"""python -m load_monitor --name monitor-1 --listen 127.0.0.1:7422 --managers 127.0.0.1:7400,127.0.0.1:7401"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path

from load_monitor.config import Config
from load_monitor.elastic.settings import settings_of
from load_monitor.elasticity import Cluster, Elasticity, View, read_floor
from load_monitor.planning.policy import LIVE, PAPER_NAMES, WORDS, Policy, adjusted
from load_monitor.poller import Poller
from load_monitor.provisioning.choosing import provisioner_for
from load_monitor.recorder import Recorder, check_telemetry
from load_monitor.service import MonitorService
from load_monitor.telemetry import NOT_KEPT, TelemetryConfig
from load_monitor.transport import GrpcCalls
from utuple.cluster.line import ServerInfo
from utuple.errors import InvalidInput
from utuple.runtime.announcer import Announcer
from utuple.runtime.clock import now_us
from utuple.runtime.logs import Log
from utuple.runtime.options import (
    add_knobs,
    add_managers,
    add_place,
    flag,
    help_of,
    listed,
    reasons_of,
)
from utuple.runtime.program import run_program
from utuple.runtime.tasks import run_until
from utuple.runtime.trust.exchange import GrantsExchange, GrantsFile
from utuple.runtime.trust.program import add_trust, keep_watch, listen
from utuple.wire.utuple_pb2_grpc import add_MonitorServicer_to_server

_log = Log("load_monitor")
_FLUSH_S = 1.0
_GONE = "gone"
"""The role by which managers forget a server."""


def config_from(arguments: Sequence[str]) -> Config:
    parser = argparse.ArgumentParser(
        prog="python -m load_monitor",
        description="Watches the servers' load, plans moves and orders them. Every policy knob is an "
        "option; thresholds that belong to T_p or T_m and are not given keep their share of it.",
    )
    add_place(parser)
    add_managers(parser)
    parser.add_argument(
        "--telemetry", default="", metavar="DIR", help="keep samples as Parquet files"
    )
    parser.add_argument(
        "--telemetry-every",
        type=float,
        default=NOT_KEPT.sample_s,
        metavar="S",
        help=help_of(reasons_of(TelemetryConfig)["sample_s"], NOT_KEPT.sample_s),
    )
    parser.add_argument(
        "--elastic",
        default="",
        metavar="FILE",
        help="servers and machines come and go with the load, as this elastic.toml says (docs/elasticity.md)",
    )
    parser.add_argument(
        "--data",
        default="",
        metavar="DIR",
        help="the cluster on this machine whose servers they are",
    )
    own = [field.name for field in fields(Config) if isinstance(field.default, float)]
    add_knobs(parser, Config, own, metavar="S")
    knobs, reasons = [field.name for field in fields(Policy)], reasons_of(Policy)
    for name in knobs:
        short = [flag(paper) for paper, long in PAPER_NAMES.items() if long == name]
        said = help_of(reasons[name], getattr(LIVE, name))
        kind, unit = (str, "HOW") if name in WORDS else (float, "N")
        parser.add_argument(flag(name), *short, dest=name, type=kind, metavar=unit, help=said)
    given = parser.parse_args(arguments)
    try:
        asked = {name: getattr(given, name) for name in knobs if getattr(given, name) is not None}
        return Config(
            given.name,
            given.listen,
            listed(given.managers),
            given.advertise,
            given.log,
            given.credentials,
            adjusted(LIVE, asked),
            TelemetryConfig(given.telemetry, given.telemetry_every),
            given.elastic,
            given.data,
            **{name: getattr(given, name) for name in own},
        )
    except InvalidInput as error:
        parser.error(str(error))


async def watch(config: Config, stop: asyncio.Event) -> None:
    recorder = None
    if config.telemetry.folder:
        check_telemetry(config.telemetry.folder)
        recorder = Recorder(config.name, config.telemetry, now_us())
    listening = listen(config.name, config.listen, config.credentials)
    server, guard = listening.server, listening.guard
    exchange = None if guard is None else GrantsExchange(guard, GrantsFile(guard).keep)
    add_trust(listening, exchange)
    own = ServerInfo(config.name, config.advertise or listening.address, "monitor", now_us())
    async with Announcer(config.managers, own, lambda: (), grants=exchange) as announcer:

        def managers() -> list[str]:
            learned = (manager.address for manager in announcer.managers.values())
            return list(dict.fromkeys([*config.managers, *learned]))

        calls = GrpcCalls(config)
        poller = Poller(config, calls, managers, recorder)
        work = [poller.run()]
        elasticity = elasticity_of(config, _Forgetting(calls, managers))
        if elasticity is not None:
            work.append(elasticity.run(lambda: _view(poller), config.poll_s))
        state = elasticity.state if elasticity is not None else None
        add_MonitorServicer_to_server(MonitorService(config, own, poller, state), server)
        await server.start()
        _log.info("watching", address=listening.address, known_as=own.address)
        try:
            await run_until(stop, *work, keep_watch(listening))
        finally:
            if recorder is not None:
                await recorder.close()
    await server.stop(_FLUSH_S)
    _log.info("stopped")


class _Forgetting:
    """What elasticity asks of servers and managers."""

    def __init__(self, calls: GrpcCalls, managers: Callable[[], list[str]]) -> None:
        self._calls = calls
        self._managers = managers

    async def leave(self, address: str) -> bool:
        return await self._calls.leave(address) if address else False

    async def forget(self, name: str, address: str) -> None:
        gone = ServerInfo(name, address, _GONE, now_us())
        await asyncio.gather(*(self._calls.tell_gone(at, gone) for at in self._managers()))


def _view(poller: Poller) -> View | None:
    snapshot = poller.state.snapshot
    return View(snapshot, poller.places) if snapshot is not None else None


def elasticity_of(config: Config, cluster: Cluster) -> Elasticity | None:
    if not config.elastic:
        return None
    path = Path(config.elastic)
    try:
        settings = settings_of(path.read_text(encoding="utf-8"), path.name)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("--elastic", config.elastic, f"cannot be read: {error}") from None
    floor = read_floor(settings.forecast.file)
    provisioner = provisioner_for(settings, config.data)
    return Elasticity(config.name, settings, provisioner, cluster, config.policy, floor)


def main() -> int:
    config = config_from(sys.argv[1:])
    return run_program(config.name, lambda stop: watch(config, stop), config.log)


if __name__ == "__main__":
    sys.exit(main())
