"""Answers as messages, with each line and server encoded once: lookups are the manager's daily bread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from assignment_manager.digest import managers_token
from assignment_manager.directory import Directory, Found
from assignment_manager.gossip import Health
from assignment_manager.manager import ManagerState
from utuple.cluster.line import Line, ServerInfo
from utuple.cluster.table import Table
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_to_wire, server_to_wire

V = TypeVar("V")
M = TypeVar("M")

CACHED = 65_536
"""Encoded values kept; a cluster has fewer lines."""


class _Once(Generic[V, M]):
    """Encodes a value once. By identity, because hashing a line costs as much as encoding it; the value
    is kept beside its message, so that its identity stays its own."""

    def __init__(self, encode: Callable[[V], M]) -> None:
        self._encode = encode
        self._known: dict[int, tuple[V, M]] = {}

    def __call__(self, value: V) -> M:
        known = self._known.get(id(value))
        if known is None:
            if len(self._known) >= CACHED:
                self._known.clear()
            known = self._known[id(value)] = value, self._encode(value)
        return known[1]


class Answers:
    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._line: _Once[Line, pb.Line] = _Once(line_to_wire)
        self._server: _Once[ServerInfo, pb.ServerInfo] = _Once(server_to_wire)

    def lookup(self, found: Found) -> pb.LookupAnswer:
        servers = {server.name: server for server in self._directory.servers_of(found.lines)}
        servers |= self._directory.sca_servers
        return pb.LookupAnswer(
            lines=map(self._line, found.lines),
            line=found.line,
            servers=map(self._server, servers.values()),
        )

    def heard(
        self, managers: Sequence[ServerInfo], wanted: bool, asked: pb.Announcement
    ) -> pb.Heard:
        """Who is there, servers and managers, only if that is not what the caller was told last."""
        token, alive = self._directory.servers_token, managers_token(managers)
        servers = self._directory.servers.values() if token != asked.servers_token else ()
        return pb.Heard(
            managers=map(self._server, managers if alive != asked.managers_token else ()),
            servers=map(self._server, servers),
            wanted=wanted,
            servers_token=token,
            managers_token=alive,
        )

    def table(self, table: Table, states: Iterable[ManagerState]) -> pb.TableAnswer:
        return pb.TableAnswer(
            lines=map(self._line, table.items),
            servers=map(self._server, self._directory.servers.values()),
            managers=[
                pb.ManagerStatus(
                    manager=self._server(state.manager),
                    alive=state.health is not Health.DEAD,
                    peers=state.hosted,
                    kept=state.kept,
                )
                for state in states
            ],
            whole=table.is_whole,
        )
