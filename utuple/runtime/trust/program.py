"""How a program becomes one of a secured cluster: its credentials, its guard, and where it listens."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import grpc

from utuple.errors import InvalidInput
from utuple.runtime.channel import bind, new_server
from utuple.runtime.clock import monotonic_s, now_us
from utuple.runtime.open_files import room_for
from utuple.runtime.trust.auditing import COUNTED_S, Auditor
from utuple.runtime.trust.exchange import GrantsExchange
from utuple.runtime.trust.guard import Guard
from utuple.runtime.trust.service import TrustService
from utuple.runtime.trust.tls import answering
from utuple.security.identity import Role
from utuple.security.own import OWN, OwnCredentials
from utuple.transport.http2.limits import SERVER
from utuple.transport.server import Server

_LOOK_S = 1.0
"""How often open calls are looked at whose caller's certificate may have ended meanwhile."""


@dataclass(frozen=True, slots=True)
class Listening:
    server: grpc.aio.Server
    address: str
    guard: Guard | None


def listen(
    name: str,
    address: str,
    credentials: str,
    *,
    connections: int = SERVER.connections,
    connections_per_address: int = SERVER.connections_per_address,
) -> Listening:
    """At this address, with these credentials if there are any; the program's own from now on."""
    limits = replace(
        SERVER,
        connections=room_for(connections),
        connections_per_address=connections_per_address,
    )
    if not credentials:
        server = new_server(limits=limits)
        return Listening(server, bind(server, address), None)
    guard = guard_of(name, credentials)
    server = new_server(guard.authorise, limits)
    return Listening(server, bind(server, address, answering(guard.own, guard.refused)), guard)


def guard_of(name: str, credentials: str) -> Guard:
    own = OwnCredentials(credentials)
    identity = own.identity
    if identity.role is not Role.PROGRAM or identity.name != name:
        rule = f"must be those of program {name} (utuple grant {name} --as program)"
        raise InvalidInput("credentials", str(identity), rule)
    if own.held.until_us <= now_us():
        raise InvalidInput("credentials", own.path.name, f"ended {own.held.until}; renew them")
    OWN.set(own)
    return Guard(own, Auditor(Path(credentials).with_suffix(".audit")))


def add_trust(listening: Listening, exchange: GrantsExchange | None) -> None:
    """The calls of `Trust`; and who is void by newer grants is cut off at once."""
    guard = listening.guard
    if guard is None or exchange is None:
        return
    server = cast(Server, listening.server)
    service = TrustService(guard, exchange.hear)
    server.add_generic_rpc_handlers((service.handlers(),))

    def cut_off() -> None:
        guard.end_void_calls(server)

    guard.when_changed.append(cut_off)


async def keep_watch(listening: Listening) -> None:
    """For ever: end the calls of those whose certificates have ended, and write down what was refused."""
    guard = listening.guard
    if guard is None:
        await asyncio.Event().wait()
        return
    written_s = monotonic_s()
    while True:
        await asyncio.sleep(_LOOK_S)
        guard.end_void_calls(cast(Server, listening.server))
        if monotonic_s() - written_s >= COUNTED_S:
            guard.audit.flush()
            written_s = monotonic_s()
