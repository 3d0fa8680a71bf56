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
import os
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from importlib.resources import files
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import utuple
from utuple.doors.mqtt.config import BridgeConfig, Config, Limits, rule_of
from utuple.doors.mqtt.connection import Connection
from utuple.doors.mqtt.door import Door
from utuple.doors.mqtt.mapped.mapping import Mapping, MappingError, mapping_of
from utuple.runtime.logs import Log
from utuple.runtime.options import add_knobs, listed
from utuple.runtime.program import run_program
from utuple.runtime.tasks import run_until

_log = Log("utuple.doors.mqtt")
_BACKLOG = 1_024
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


def place(text: str) -> tuple[str, int]:
    """HOST:PORT, on this machine: whoever reaches an unsecured door may do everything."""
    host, colon, port = text.rpartition(":")
    host = host.strip("[]")
    if not colon or not port.isdigit() or int(port) > 65_535:
        raise ValueError(f"{text!r} must be HOST:PORT")
    is_loopback = host == "localhost"
    try:
        is_loopback = is_loopback or ip_address(host).is_loopback
    except ValueError:
        """A name."""
    if not is_loopback:
        raise ValueError(
            f"{text!r} is not on loopback (127.0.0.1): a door without security is for this machine only"
        )
    return host, int(port)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m utuple.doors.mqtt",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "--at",
        default=os.environ.get("UTUPLE_AT", "127.0.0.1:7400"),
        metavar="HOST:PORT,…",
        help="assignment managers of the cluster (default 127.0.0.1:7400, or UTUPLE_AT)",
    )
    made.add_argument(
        "--listen",
        default="127.0.0.1:1883",
        metavar="HOST:PORT",
        help="for MQTT over TCP; port 0: a free one",
    )
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
    made.add_argument(
        "--log", default="", metavar="FILE", help="log there instead of to standard error"
    )
    add_knobs(made, Limits, [f.name for f in fields(Limits)])
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
        "--bridge-name",
        default="1",
        metavar="NAME",
        help="under which both sides know this bridge: doors of one cluster that bridge to one broker need different ones",
    )


async def serve(config: Config, mapping: Mapping, stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    host, port = place(config.listen)
    async with utuple.connect(*config.managers) as space:
        connect = partial(utuple.connect, *config.managers)
        door = Door(space, mapping, config.limits, connect)
        try:
            server = await loop.create_server(
                lambda: Connection(door), host, port, backlog=_BACKLOG
            )
        except OSError as error:
            raise utuple.Unavailable(
                f"cannot listen on {config.listen}: {error.strerror}"
            ) from error
        bound = server.sockets[0].getsockname()
        _log.info("listening", address=f"{bound[0]}:{bound[1]}")
        web = None
        if config.websocket:
            from utuple.doors.mqtt.websocket import listen

            web = await listen(door, *place(config.websocket))
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
    _log.info("stopped")


def main(arguments: Sequence[str]) -> int:
    options = parser()
    given = options.parse_args(arguments)
    try:
        place(given.listen)
        if given.websocket:
            place(given.websocket)
        mapping = read_mapping(given.mapping)
        bridge = bridge_of(given)
    except ValueError as error:
        options.error(str(error))
    limits = Limits(**{field.name: getattr(given, field.name) for field in fields(Limits)})
    config = Config(listed(given.at), given.listen, given.websocket, bridge, limits)
    return run_program("mqtt", lambda stop: serve(config, mapping, stop), given.log)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
