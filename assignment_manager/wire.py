"""Between the protocol and the manager's values. Everything that comes in is checked here: what is
refused is named by field, value and rule, and nothing of it is kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from assignment_manager.config import Config
from assignment_manager.digest import BUCKETS, Detail, Digest
from assignment_manager.directory import PassOn
from assignment_manager.gossip import Alive
from assignment_manager.manager import Rumour
from assignment_manager.peer import Peer
from utuple.cluster.address import check_address
from utuple.cluster.line import Line, ServerInfo
from utuple.cluster.shares import SCA_ROLES
from utuple.errors import InvalidInput, Overloaded
from utuple.model.section import Section
from utuple.model.value import check_name
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import (
    REMEMBERED,
    line_from_wire,
    line_to_wire,
    server_from_wire,
    server_to_wire,
)
from utuple.wire.codec import refuse_unknown

M = TypeVar("M", bound=Message)

GONE = "gone"
"""The role of a server that was drained and stopped: the newest word about a name is what is passed on, so
this is how the managers forget it."""
SERVER_ROLES = ("server", "monitor", *SCA_ROLES, GONE)
MANAGER_ROLES = ("manager",)


def parsed(kind: type[M], raw: bytes) -> M:
    try:
        message = kind.FromString(raw)
    except DecodeError:
        raise InvalidInput("request", raw[:64], f"must be a {kind.DESCRIPTOR.full_name}") from None
    refuse_unknown(message, kind.DESCRIPTOR.name)
    return message


class Reader:
    """Reads messages within the limits of a config."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def keys(self, request: pb.LookupRequest) -> list[int]:
        _limit("keys", request.keys, self._config.max_keys)
        return list(request.keys)

    def announcement(
        self, message: pb.Announcement
    ) -> tuple[ServerInfo, list[Line], list[ServerInfo]]:
        if not message.HasField("server"):
            raise InvalidInput("server", None, "an announcement says whose it is")
        roles = MANAGER_ROLES if message.forwarded else SERVER_ROLES
        server = self.server(message.server, roles)
        return server, self.lines(message.lines), self.servers(message.others, "others")

    def rumour(self, message: pb.Rumour) -> Rumour:
        _limit("alive", message.alive, self._config.max_managers)
        _limit("peers", message.peers, self._config.max_peers)
        if not message.alive:
            raise InvalidInput("alive", [], "the first is the one that speaks")
        _check_buckets("buckets", message.buckets)
        _check_buckets("server_buckets", message.server_buckets)
        digest = message.digest
        return Rumour(
            tuple(self._alive(alive) for alive in message.alive),
            Digest(digest.servers, digest.peers, digest.kept),
            _detail(message.detail) if message.HasField("detail") else None,
            tuple(message.server_buckets),
            tuple(self.servers(message.servers, "servers")),
            tuple(message.buckets),
            tuple(self._peer(peer) for peer in message.peers),
        )

    def lines(self, messages: Sequence[pb.Line]) -> list[Line]:
        _limit("lines", messages, self._config.max_lines)
        return [self._line(message) for message in messages]

    def servers(self, messages: Sequence[pb.ServerInfo], field: str) -> list[ServerInfo]:
        _limit(field, messages, self._config.max_servers)
        return [self.server(message, SERVER_ROLES) for message in messages]

    def server(self, message: pb.ServerInfo, roles: tuple[str, ...]) -> ServerInfo:
        return _server(message.SerializeToString(), roles)

    def room_for(self, peers: int, servers: int) -> None:
        """Refuse news when the directory is full."""
        for what, count, most in (
            ("peers", peers, self._config.max_peers),
            ("servers", servers, self._config.max_servers),
        ):
            if count >= most:
                raise Overloaded(f"the directory holds {count} {what}, its limit is {most}")

    def _line(self, message: pb.Line) -> Line:
        refuse_unknown(message, "line")
        _limit("members", message.members, self._config.max_members)
        for member in message.members:
            refuse_unknown(member, "member")
        return line_from_wire(message)

    def _alive(self, message: pb.Alive) -> Alive:
        refuse_unknown(message, "alive")
        return Alive(self.server(message.manager, MANAGER_ROLES), message.beat, message.kept)

    def _peer(self, message: pb.Peer) -> tuple[Peer, bool]:
        refuse_unknown(message, "peer")
        return Peer(Section(message.start, message.last + 1), message.epoch), message.kept


@lru_cache(REMEMBERED)
def _server(raw: bytes, roles: tuple[str, ...]) -> ServerInfo:
    """The same few come with every message; each is read and checked once."""
    message = pb.ServerInfo.FromString(raw)
    refuse_unknown(message, "server")
    server = server_from_wire(message)
    check_name("server.name", server.name)
    check_address("server.address", server.address)
    if server.role not in roles:
        raise InvalidInput("server.role", server.role, f"must be one of {', '.join(roles)}")
    if server.since_us < 0:
        raise InvalidInput("server.since_us", server.since_us, "must be at least 0")
    return server


def _check_buckets(field: str, buckets: Sequence[int]) -> None:
    _limit(field, buckets, BUCKETS)
    for bucket in buckets:
        if bucket >= BUCKETS:
            raise InvalidInput(field, bucket, f"must be below {BUCKETS}")


def _detail(message: pb.BucketDigests) -> Detail:
    for name in ("servers", "peers", "kept"):
        if len(getattr(message, name)) != BUCKETS:
            found = len(getattr(message, name))
            raise InvalidInput(f"detail.{name}", f"{found} digests", f"must be {BUCKETS}")
    return Detail(tuple(message.servers), tuple(message.peers), tuple(message.kept))


def rumour_to_wire(rumour: Rumour) -> pb.Rumour:
    digest, detail = rumour.digest, rumour.detail
    return pb.Rumour(
        digest=pb.Digest(servers=digest.servers, peers=digest.peers, kept=digest.kept),
        detail=None
        if detail is None
        else pb.BucketDigests(servers=detail.servers, peers=detail.peers, kept=detail.kept),
        buckets=rumour.buckets,
        server_buckets=rumour.server_buckets,
        alive=[
            pb.Alive(manager=server_to_wire(alive.manager), beat=alive.beat, kept=alive.kept)
            for alive in rumour.alive
        ],
        servers=[server_to_wire(server) for server in rumour.servers],
        peers=[
            pb.Peer(start=p.section.start, last=p.section.end - 1, epoch=p.epoch, kept=kept)
            for p, kept in rumour.peers
        ],
    )


def passed_on_to_wire(own: ServerInfo, batch: PassOn) -> pb.Announcement:
    return pb.Announcement(
        server=server_to_wire(own),
        lines=[line_to_wire(line) for line in batch.lines],
        forwarded=True,
        others=[server_to_wire(server) for server in batch.servers],
    )


def portions(batch: PassOn, size: int) -> Iterable[PassOn]:
    """The servers go along with the first."""
    for at in range(0, len(batch.lines), size):
        yield PassOn(batch.to, batch.lines[at : at + size], batch.servers if at == 0 else ())


def _limit(field: str, values: Sequence[object], most: int) -> None:
    if len(values) > most:
        raise InvalidInput(field, f"{len(values)} values", f"must be at most {most}")
