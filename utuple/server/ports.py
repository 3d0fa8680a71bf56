"""Ports: what the folders of a server ask of each other, so that none of them needs the whole engine.

    writing     owns the order. `Engine` (writing/engine.py) is what stands behind the ports below, and the only module
                that imports delivering and moving as a whole
    delivering  is given a `DeliveryPort`: it reads what the writer holds and asks for a commit
    moving      is given a `MovePort`: it takes its steps in the writer's order and holds back EFs and CAs
    calls       are the top: they may import the engine itself

A port has the few members that are used, and nobody stores what it gives across an `await`: when the store is lost,
the writer's core is thrown away and a new one is made from the store.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Protocol

from utuple.cluster.line import ServerInfo
from utuple.cluster.table import Table
from utuple.model.columns import Columns
from utuple.model.packed import Packed
from utuple.model.section import Section
from utuple.model.utuple import Family
from utuple.security.identity import Identity
from utuple.security.rights import Verdict
from utuple.server.config import ServerConfig
from utuple.server.delivering.absent.absences import Absence
from utuple.server.matching.index import TemplateIndex
from utuple.server.matching.matched import Matches
from utuple.server.moving.state import MoveState
from utuple.server.moving.steps import Outcome, Step
from utuple.server.writing.lines import OwnLines
from utuple.server.writing.request import Answer, Request
from utuple.store.contract import FormalPosition, Store, StoredTemplate


class WriterCore(Protocol):
    """What the writer holds in memory (`Writer`). It is ahead of the commit that is under way: what others are told
    comes from durable values, such as `MovePort.lines`."""

    seq: int

    @property
    def lines(self) -> OwnLines: ...

    @property
    def moves(self) -> MoveState: ...

    @property
    def index(self) -> TemplateIndex: ...

    @property
    def templates(self) -> Mapping[bytes, StoredTemplate]:
        """Every EF and CA by id."""

    def commands_for(self, devices: Columns, now_us: int) -> Matches:
        """The stored CAs these CFs meet."""

    def forget(self, id_: bytes) -> None:
        """An EF or CA is cancelled, or was moved elsewhere."""


class DeliveryJudge(Protocol):
    """May this caller be given this, by the grants of now?"""

    def may_receive(self, half: Packed, caller: Identity) -> Verdict: ...

    def may_serve(self, row: Columns, caller: Identity) -> Verdict: ...


class DeliveryPort(Protocol):
    """The engine, as delivering sees it."""

    @property
    def config(self) -> ServerConfig: ...

    @property
    def store(self) -> Store: ...

    @property
    def judge(self) -> DeliveryJudge | None:
        """None: nothing is secured."""

    @property
    def writer(self) -> WriterCore: ...

    @property
    def lines(self) -> Table:
        """Durable lines: a search finds what was committed, and the writer's own may be ahead of that."""

    @property
    def is_serving(self) -> bool:
        """Is the store open? A search would fail otherwise."""

    async def register(self, request: Request) -> Answer:
        """In the writer's order; answered when it is durable."""

    def wake(self) -> None:
        """There is housekeeping to commit."""


class MovePort(Protocol):
    """The engine, as moving sees it."""

    @property
    def config(self) -> ServerConfig: ...

    @property
    def store(self) -> Store: ...

    @property
    def writer(self) -> WriterCore: ...

    @property
    def lines(self) -> Table:
        """Durable lines: the only ones others may be told of."""

    @property
    def reads(self) -> int:
        """EFs of lifetime 0 that are being read now: what they were promised is not deleted under them."""

    async def step(self, step: Step) -> Outcome:
        """One step of a move, in the writer's order; answered when it is durable."""

    def new_id(self) -> bytes:
        """Of a move."""

    def hold(self, section: Section) -> Callable[[], None]:
        """Hold back EFs and CAs of the section until what this gives is called, or for a while at most."""

    def address_of(self, name: str) -> ServerInfo | None:
        """Where another server is, as far as anybody here knows."""

    def positions(self) -> Iterable[FormalPosition]:
        """How far readers have acknowledged, as of now."""

    def absences(self, move: str) -> Iterable[Absence]:
        """When readers with a drop policy were away, in this server's name, for a drain that goes on; "": its last word."""

    def ledgers(self) -> Iterable[tuple[bytes, str, bytes]]:
        """Formals whose deliveries are settled one by one, origins, and what is open or parked of each."""

    def acknowledged(self) -> AsyncIterator[tuple[Family, bytes, list[bytes]]]:
        """By CF, with its family: the living CAs it has acknowledged."""
