"""The process that hosts a cluster for tests: `python -m utuple.testing.hosting SERVERS`.

It says in a line of JSON where the cluster is, then carries out what it is asked for, a line each, until its input ends. That
happens whatever becomes of the process at the other end, so no cluster is ever left behind.
"""

from __future__ import annotations

import asyncio
import os
import sys

import orjson

from utuple.errors import InvalidInput, UTupleError
from utuple.local.running import Cluster
from utuple.local.temporary import cluster, until_interrupted
from utuple.runtime.postgresql.unavailable import PostgresUnavailable
from utuple.testing.emptying import empty


async def host(servers: int) -> None:
    async with cluster(servers, monitor=False) as running:
        _say(
            {
                "at": running.managers[0],
                "folder": str(running.folder.path),
                "servers": running.servers,
            }
        )
        questions = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(questions), sys.stdin
        )
        while line := await questions.readline():
            try:
                await _carry_out(running, *orjson.loads(line))
                _say({})
            except UTupleError as error:
                _say({"error": str(error)})


async def _carry_out(running: Cluster, verb: str, name: str) -> None:
    if verb == "empty":
        await empty(running)
    elif name not in running.programs:
        raise InvalidInput("name", name, f"must be one of {', '.join(running.programs)}")
    elif verb == "kill":
        running.kill(name)
    else:
        await running.revive(name)


def _say(answer: object) -> None:
    os.write(sys.stdout.fileno(), orjson.dumps(answer) + b"\n")


def main(servers: str) -> int:
    try:
        asyncio.run(until_interrupted(host(int(servers))))
    except BrokenPipeError:
        return 0  # nobody waits any more
    except (UTupleError, PostgresUnavailable) as error:
        _say({"error": str(error)})
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
