"""An HTTP door: any language, and a browser, use the space of a cluster.

  python -m utuple.doors.http --at 127.0.0.1:7400 --listen 127.0.0.1:7480

  curl -d '{"subject": "truck", "type": "load", "address": "truck-17", "data": {"kg": 1200}}' \\
       -H 'Content-Type: application/json' http://127.0.0.1:7480/v1/events
  curl 'http://127.0.0.1:7480/v1/events?subject=truck&type=load&where=kg>=1000'
  curl -N 'http://127.0.0.1:7480/v1/events/live?subject=truck&type=load'

The console is at http://127.0.0.1:7480/, what can be asked at /openapi.json; docs/doors.md has it all. Any number of doors
may stand before a cluster.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import fields
from ipaddress import ip_address

import utuple
from utuple.doors.http.config import Config, Limits
from utuple.runtime.logs import Log
from utuple.runtime.options import add_knobs, listed
from utuple.runtime.program import run_program
from utuple.runtime.tasks import Tasks

_log = Log("utuple.doors.http")
_NEEDED = ("starlette", "uvicorn", "httptools")


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
        prog="python -m utuple.doors.http",
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
        "--listen", default="127.0.0.1:7480", metavar="HOST:PORT", help="port 0: a free one"
    )
    made.add_argument(
        "--data",
        default="",
        metavar="DIR",
        help="the data folder of the cluster, if `utuple up` runs it here: then servers can be added",
    )
    made.add_argument(
        "--log", default="", metavar="FILE", help="log there instead of to standard error"
    )
    add_knobs(made, Limits, [f.name for f in fields(Limits)])
    return made


async def serve(config: Config, stop: asyncio.Event) -> None:
    from utuple.doors.http.app import application
    from utuple.doors.http.door import Door
    from utuple.doors.http.listening import bound, serve_until, server_of
    from utuple.doors.http.operators.observing import Observer
    from utuple.doors.http.operators.planning import Plans
    from utuple.doors.http.verbs.commands import Receipts

    tasks = Tasks()
    async with utuple.connect(*config.managers) as space:
        observer, plans = Observer(config), Plans(config)
        door = Door(config, space, observer, Receipts(config.limits.receipts), plans)
        sock = bound(*place(config.listen))
        where = sock.getsockname()
        server = server_of(application(door), config.limits)
        _log.info("listening", address=f"http://{where[0]}:{where[1]}/")
        tasks.keep(observer.run, "observing")
        ending = tasks.start(_end_streams(stop, door), "ending streams")
        try:
            await serve_until(stop, server, sock)
        finally:
            ending.cancel()
            await plans.close()
            await tasks.close()
    _log.info("stopped")


async def _end_streams(stop: asyncio.Event, door: object) -> None:
    """They would last for ever; their clients come back to the next door."""
    from utuple.doors.http.door import Door

    await stop.wait()
    assert isinstance(door, Door)
    door.streams.close()


def main(arguments: Sequence[str]) -> int:
    options = parser()
    given = options.parse_args(arguments)
    try:
        place(given.listen)
    except ValueError as error:
        options.error(str(error))
    for name in _NEEDED:
        try:
            __import__(name)
        except ModuleNotFoundError:
            options.error(f"an HTTP door needs {name}: pip install 'utuple[http]'")
    limits = Limits(**{field.name: getattr(given, field.name) for field in fields(Limits)})
    config = Config(listed(given.at), given.listen, given.data, limits)
    return run_program("http", lambda stop: serve(config, stop), given.log)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
