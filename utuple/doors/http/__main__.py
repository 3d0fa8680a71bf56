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
import sys
from collections.abc import Sequence

from utuple.doors.http.config import Config, Limits
from utuple.doors.starting import door_credentials, door_parser, place
from utuple.runtime.logs import Log
from utuple.runtime.options import knobs_of, listed
from utuple.runtime.program import run_program
from utuple.runtime.tasks import Tasks
from utuple.security.own import OWN

_log = Log("utuple.doors.http")
_NEEDED = ("starlette", "uvicorn", "httptools")


def parser() -> argparse.ArgumentParser:
    made = door_parser("utuple.doors.http", __doc__, Config.listen, Limits)
    made.add_argument(
        "--data",
        default="",
        metavar="DIR",
        help="the data folder of the cluster, if `utuple up` runs it here: then servers can be added",
    )
    return made


async def serve(config: Config, stop: asyncio.Event) -> None:
    from utuple.doors.http.app import application
    from utuple.doors.http.door import Door
    from utuple.doors.http.listening import bound, serve_until, server_of
    from utuple.doors.http.operators.observing import Observer
    from utuple.doors.http.operators.planning import Plans
    from utuple.doors.http.verbs.commands import Receipts
    from utuple.doors.spaces import Spaces
    from utuple.doors.tls import Listening
    from utuple.doors.visitors import Reception

    own, tasks = door_credentials(config.credentials), Tasks()
    reception = None if own is None else Reception(own, config.managers)
    spaces = Spaces(config.managers, own)
    if own is not None and reception is not None:
        OWN.set(own)
        await reception.follower.first()
        tasks.keep(reception.follower.run, "following the grants")
    else:
        await spaces.take(None)  # a door asks the cluster before it listens
    observer, plans = Observer(config, is_secured=reception is not None), Plans(config)
    receipts = Receipts(config.limits.receipts)
    door = Door(config, spaces, reception, observer, receipts, plans)
    tls = None if own is None else Listening(own, ("http/1.1",), config.certificate)
    sock = bound(*place(config.listen, is_secured=own is not None))
    where = sock.getsockname()
    server = server_of(application(door), config.limits, tls)
    scheme = "http" if tls is None else "https"
    _log.info("listening", address=f"{scheme}://{where[0]}:{where[1]}/")
    tasks.keep(observer.run, "observing")
    ending = tasks.start(_end_streams(stop, door), "ending streams")
    try:
        await serve_until(stop, server, sock)
    finally:
        ending.cancel()
        await plans.close()
        await tasks.close()
        await spaces.close()
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
        place(given.listen, is_secured=bool(given.credentials))
    except ValueError as error:
        options.error(str(error))
    for name in _NEEDED:
        try:
            __import__(name)
        except ModuleNotFoundError:
            options.error(f"an HTTP door needs {name}: pip install 'utuple[http]'")
    limits = knobs_of(Limits, given)
    secured = (given.credentials, given.certificate)
    config = Config(listed(given.at), given.listen, given.data, limits, *secured)
    return run_program("http", lambda stop: serve(config, stop), given.log)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
