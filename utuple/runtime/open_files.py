"""How many connections there are file descriptors for: the soft limit of this process is raised as far as it may be."""

from __future__ import annotations

import resource

from utuple.errors import InvalidInput
from utuple.runtime.logs import Log
from utuple.transport.http2.limits import SERVER

_log = Log("utuple.runtime")

OWN_FILES = 256
"""For everything but connections that come in: logs, PostgreSQL, connections to other programs."""


def room_for(connections: int) -> int:
    """As many, or fewer where that is the default and this process may not have so many files open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + OWN_FILES
    if hard != resource.RLIM_INFINITY and hard < wanted:
        wanted = hard
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    room = max(1, wanted - OWN_FILES)
    if room < connections:
        why = f"this process may have {hard} files open, {OWN_FILES} of them for itself: raise the limit (ulimit -Hn, LimitNOFILE=)"
        if connections != SERVER.connections:
            raise InvalidInput("connections", connections, f"must be at most {room}: {why}")
        _log.warning("fewer connections", connections=room, reason=why)
    return room
