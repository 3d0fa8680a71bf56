"""Teaching: one attempt to bring every EF and CA of a section to a learner, and to have it ready."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING

from utuple.cluster.line import Line
from utuple.model.key import key_of
from utuple.runtime.clock import now_us
from utuple.server.others import Others
from utuple.server.steps import MoveRecord
from utuple.server.trail import Taught
from utuple.store.contract import StoredTemplate
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_to_wire
from utuple.wire.codec import pack, templated_to_wire

if TYPE_CHECKING:
    from utuple.server.engine import Engine

_SMALL = 200
"""So few changes left are sent while EFs and CAs are held back."""
_ROUNDS = 20
"""Rounds of changes before the hold is made whatever is left."""


class NotReady(Exception):
    """It may be later."""


class Teaching:
    def __init__(self, engine: Engine, others: Others, record: MoveRecord, address: str) -> None:
        self._engine = engine
        self._others = others
        self._record = record
        self._address = address
        self._writer = engine.writer
        """If it is another one later, the store was opened anew and this attempt is void."""
        self._taught = Taught(attempt=now_us())

    @property
    def count(self) -> int:
        return len(self._taught.ids)

    async def teach_all(self) -> None:
        """The bulk while everything goes on, then what changed meanwhile, until little is left."""
        self._writer.moving.watch(self._record.id)
        section = self._record.order.learned
        families = [one for one in self._writer.templates_of if key_of(*one) in section]
        chosen = set(families)
        known = [one for one in self._writer.templates.values() if one.utuple.family in chosen]
        portion = self._engine.config.teach_portion
        for at in range(0, max(1, len(known)), portion):
            await self._send(known[at : at + portion], [])
        for _ in range(_ROUNDS):
            if await self._send_changes() <= _SMALL:
                return

    async def teach_rest(self) -> int:
        """What is left, now that nothing more comes; the cut."""
        await self._send_changes()
        _, cut = self._changes()
        return cut

    async def make_ready(self, after: Sequence[Line], servers: Sequence[pb.ServerInfo]) -> None:
        learned = (self.count, self._taught.digest)
        request = ready_request(self._record.id, after, servers, learned=learned)
        answer = await self._others.ready(self._address, request, self._engine.config.other_s)
        if not answer.ready:
            raise NotReady(f"the learner is not ready: {answer.reason}")

    async def _send_changes(self) -> int:
        changes, _ = self._changes()
        templates = self._writer.templates
        came = [templates[id_] for id_, present in changes.items() if present and id_ in templates]
        gone = [id_ for id_, present in changes.items() if not present]
        if changes:
            await self._send(came, gone)
        return len(changes)

    def _changes(self) -> tuple[dict[bytes, bool], int]:
        if self._engine.writer is not self._writer:
            raise NotReady("the store was opened anew")
        return self._writer.moving.changes(self._record.id)

    async def _send(self, came: Sequence[StoredTemplate], gone: Sequence[bytes]) -> None:
        now = now_us()
        request = pb.LearnRequest(
            move=self._record.id,
            attempt=self._taught.attempt,
            number=self._taught.portions,
            templates=[templated_to_wire(stored.utuple) for stored in came],
            left_us=pack(array("q", [max(0, stored.expires_us - now) for stored in came])),
            cancelled=b"".join(gone),
        )
        self._taught.portions += 1
        for id_ in gone:
            self._taught.remove(id_)
        for stored in came:
            self._taught.add(stored.utuple.id)
        answer = await self._others.learn(self._address, request, self._engine.config.other_s)
        if (answer.count, answer.digest) != (self.count, self._taught.digest):
            raise NotReady(f"the learner knows {answer.count} of {self.count}")


def ready_request(
    move: bytes,
    after: Sequence[Line],
    servers: Sequence[pb.ServerInfo],
    *,
    learned: tuple[int, bytes] | None = None,
    shipped: int | None = None,
) -> pb.ReadyRequest:
    return pb.ReadyRequest(
        move=move,
        lines=[line_to_wire(line) for line in after],
        servers=servers,
        count=learned[0] if learned else 0,
        digest=learned[1] if learned else b"",
        learned=learned is not None,
        rows=shipped or 0,
        shipped=shipped is not None,
    )
