"""An MQTT door: devices and applications that speak MQTT use the space of a cluster.

  python -m utuple.doors.mqtt --at 127.0.0.1:7400 --listen 127.0.0.1:1883

  mosquitto_sub -p 1883 -q 1 -t 'truck/load/#' -v
  mosquitto_pub -p 1883 -q 1 -t truck/load/truck-17 -m '{"kg": 1200}'

SUBJECT/TYPE/ADDRESS is an event, cmd/SUBJECT/TYPE/ADDRESS commands, anything else an ordinary message: docs/doors.md has it all.
Any number of doors may stand before a cluster; a client that keeps its session finds it at each of them.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import tomllib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import utuple
from utuple.doors.mqtt.config import BridgeConfig, Config, Limits, rule_of
from utuple.doors.mqtt.connection import Connection
from utuple.doors.mqtt.door import Door
from utuple.doors.mqtt.mapped.mapping import Mapping, MappingError, mapping_of
from utuple.doors.spaces import Spaces
from utuple.doors.starting import door_credentials, door_parser, place
from utuple.doors.tls import Listening
from utuple.doors.visitors import Reception
from utuple.runtime.logs import Log
from utuple.runtime.options import knobs_of, listed
from utuple.runtime.program import run_program
from utuple.runtime.tasks import Tasks, run_until
from utuple.security.own import OwnCredentials

_log = Log("utuple.doors.mqtt")
_BACKLOG = 1_024
_COLLECTED = (20_000, 20, 20)
"""When Python looks for cycles. A message makes a dozen objects and leaves no cycle; as shipped (700, 10, 10) the looking took a
seventh of a door's time."""
_USUAL_PORTS = {"mqtt": 1883, "mqtts": 8883}


def read_mapping(path: str) -> Mapping:
    """The default rules, and over them those of the file at `path`, if there is one."""
    default = tomllib.loads((files("utuple.doors.mqtt") / "mapping.toml").read_text("utf-8"))
    given: dict[str, Any] = {}
    if path:
        try:
            given = tomllib.loads(Path(path).read_text("utf-8"))
        except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise MappingError(f"{path}: {error}") from error
    return mapping_of(default, given)


def parser() -> argparse.ArgumentParser:
    made = door_parser("utuple.doors.mqtt", __doc__, Config.listen, Limits)
    made.add_argument(
        "--websocket",
        default="",
        metavar="HOST:PORT",
        help="for MQTT over WebSocket (subprotocol mqtt) too",
    )
    made.add_argument(
        "--mapping",
        default="",
        metavar="FILE",
        help="rules for names and payloads; mapping.toml of this package is the default",
    )
    _add_bridge(made)
    return made


def bridge_of(given: argparse.Namespace) -> BridgeConfig | None:
    if not given.bridge:
        if given.bridge_in or given.bridge_out:
            raise ValueError(
                "--bridge-in and --bridge-out need --bridge: the broker they are about"
            )
        return None
    parts = urlsplit(given.bridge)
    if parts.scheme not in _USUAL_PORTS or not parts.hostname:
        raise ValueError(f"--bridge {given.bridge!r} must be mqtt://HOST:PORT or mqtts://HOST:PORT")
    if bool(given.bridge_credentials) != bool(given.credentials):
        raise ValueError(
            "--bridge-credentials goes with --credentials: on a secured cluster a bridge is somebody, too"
        )
    inward, outward = tuple(map(rule_of, given.bridge_in)), tuple(map(rule_of, given.bridge_out))
    if not (inward or outward):
        raise ValueError("--bridge needs --bridge-in or --bridge-out: nothing is carried by itself")
    return BridgeConfig(
        host=parts.hostname,
        port=parts.port or _USUAL_PORTS[parts.scheme],
        tls=parts.scheme == "mqtts",
        user=parts.username or "",
        password=parts.password or "",
        name=given.bridge_name,
        inward=inward,
        outward=outward,
        credentials=given.bridge_credentials,
    )


def _add_bridge(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--bridge",
        default="",
        metavar="URL",
        help="carry messages from and to this broker (mqtt://HOST:PORT or mqtts://…), at least once; it must speak MQTT 5",
    )
    for which, how in (("in", "from the broker"), ("out", "to the broker")):
        made.add_argument(
            f"--bridge-{which}",
            action="append",
            default=[],
            metavar="FILTER[=PREFIX]",
            help=f"names that are carried {how}, with the prefix before them, such as 'factory/#=site-1/'; may be given several times",
        )
    made.add_argument(
        "--bridge-credentials",
        default="",
        metavar="FILE",
        help="of whom the bridge is, on a secured cluster: it carries what he was granted (utuple grant)",
    )
    made.add_argument(
        "--bridge-name",
        default="1",
        metavar="NAME",
        help="under which both sides know this bridge: doors of one cluster that bridge to one broker need different ones",
    )


async def serve(config: Config, mapping: Mapping, stop: asyncio.Event) -> None:
    gc.freeze()
    gc.set_threshold(*_COLLECTED)
    own = door_credentials(config.credentials)
    reception = None if own is None else Reception(own, config.managers)
    spaces, tasks = Spaces(config.managers, own), Tasks()
    if reception is not None:
        await reception.follower.first()
        tasks.keep(reception.follower.run, "following the grants")
    try:
        async with spaces.lent(None) as space:  # the doors' own; and without security everybody's
            door = Door(space, spaces, reception, mapping, config.limits)
            await _listen(config, door, own, stop)
    finally:
        await tasks.close()
        await spaces.close()
    _log.info("stopped")


async def _listen(
    config: Config, door: Door, own: OwnCredentials | None, stop: asyncio.Event
) -> None:
    tls = None if own is None else Listening(own, certificate=config.certificate)
    is_secured, context = own is not None, None if tls is None else tls.context
    try:
        server = await asyncio.get_running_loop().create_server(
            lambda: Connection(door),
            *place(config.listen, is_secured=is_secured),
            backlog=_BACKLOG,
            ssl=context,
            ssl_handshake_timeout=None if tls is None else config.limits.connect_s,
        )
    except OSError as error:
        raise utuple.Unavailable(f"cannot listen on {config.listen}: {error.strerror}") from error
    bound = server.sockets[0].getsockname()
    _log.info("listening", address=f"{bound[0]}:{bound[1]}")
    web = None
    if config.websocket:
        from utuple.doors.mqtt.websocket import listen

        web = await listen(door, *place(config.websocket, is_secured=is_secured), tls)
        _log.info("listening for websockets", address=config.websocket)
    bridge = None
    if config.bridge is not None:
        from utuple.doors.mqtt.bridge import Bridge

        bridge = Bridge(config.bridge, bound[0], bound[1])
        bridge.start()
    try:
        await run_until(stop, door.run())
    finally:
        if bridge is not None:
            await asyncio.to_thread(bridge.stop)
        server.close()
        if web is not None:
            web.close()
        await door.stop()


def main(arguments: Sequence[str]) -> int:
    options = parser()
    given = options.parse_args(arguments)
    try:
        for listen in filter(None, (given.listen, given.websocket)):
            place(listen, is_secured=bool(given.credentials))
        mapping = read_mapping(given.mapping)
        bridge = bridge_of(given)
    except ValueError as error:
        options.error(str(error))
    limits = knobs_of(Limits, given)
    secured = (given.credentials, given.certificate)
    config = Config(listed(given.at), given.listen, given.websocket, bridge, limits, *secured)
    return run_program("mqtt", lambda stop: serve(config, mapping, stop), given.log)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
