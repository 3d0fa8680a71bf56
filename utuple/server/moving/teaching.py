"""Teaching: one attempt to bring every EF and CA of a section to a learner, and to have it ready. Of a partitioned line that
is cut anew the EFs are brought that it has not kept so far.

They go in small portions, so that neither server's event loop is kept from its other work for long. The next
is made while those before are on their way; where several may be, one that overtook another is refused, and is
sent again with all after it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from utuple.cluster.line import Line
from utuple.cluster.move import target
from utuple.cluster.record import MoveRecord
from utuple.model.columns import left_us, lifetime_us
from utuple.model.key import key_of
from utuple.model.portions import portions
from utuple.model.utuple import ID_BYTES, Kind
from utuple.runtime.clock import now_us
from utuple.server.moving.servers import NotReady, OtherServers
from utuple.server.moving.taught import TaughtIds
from utuple.server.ports import MovePort
from utuple.store.contract import StoredTemplate
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import templates_to_wire

_SMALL = 50
"""So few changes left are sent while EFs and CAs are held back: a few milliseconds' work."""
_ROUNDS = 20
"""Rounds of changes before the hold is made whatever is left."""
_BESIDE_BYTES = 32
"""Id, lifetime and what is left of it."""
_IN_FLIGHT = 2
"""Portions on their way at once. With more, the learner would take one in while PostgreSQL writes another; but
steps of moves go ahead of registrations, so that its own users would have to wait until all is learned."""


Changes = tuple[Sequence[StoredTemplate], Sequence[bytes]]
"""What came, and what was cancelled."""


@dataclass(frozen=True, slots=True)
class _Portion:
    request: pb.LearnRequest
    known: tuple[int, bytes]
    """What the learner then knows: count and digest."""


class Teaching:
    def __init__(
        self, port: MovePort, others: OtherServers, record: MoveRecord, learner: str
    ) -> None:
        self._port = port
        self._others = others
        self._record = record
        self._learner = learner
        self._writer = port.writer
        """If it is another one later, the store was opened anew and this attempt is void."""
        self._log = self._writer.moves.home.start_change_log(record.id)
        self._taught = TaughtIds(attempt=now_us())
        (after,) = target(record.move, record.before) if record.move.layout.axes else (None,)
        self._after: Line | None = after

    def _needed(self, known: Iterable[StoredTemplate]) -> list[StoredTemplate]:
        """Who keeps a share of a partitioned line, and is asked for more, learns that and nothing else: by R2 it has the rest, and
        every CA."""
        if self._after is None:
            return list(known)
        before, after, name = self._record.before, self._after, self._learner
        return [
            one
            for one in known
            if one.packed.kind is Kind.EF
            and name in after.keepers(half := one.utuple)
            and name not in before.keepers(half)
        ]

    @property
    def count(self) -> int:
        return len(self._taught.ids)

    async def teach_all(self) -> None:
        """The bulk while everything goes on, then what changed meanwhile, until little is left."""
        await self._send(self._everything())
        before = 0
        for round_ in range(_ROUNDS):
            sent = await self._send_changes()
            if sent <= _SMALL or (round_ and sent >= before):  # it does not become less any more
                return
            before = sent

    def _everything(self) -> Iterator[Changes]:
        section = self._record.move.learned
        chosen = {
            family for family in self._writer.index.count_by_family if key_of(*family) in section
        }
        known = list(self._writer.templates.values())
        are_all = len(chosen) == len(self._writer.index.count_by_family)
        if not known:
            yield (), ()  # the learner hears that there is nothing
        for first, end in self._cuts(map(_size, known)):
            some = known[first:end]
            if not are_all:
                some = [one for one in some if one.packed.family in chosen]
            yield self._needed(some), ()

    def _cuts(self, sizes: Iterable[int]) -> Iterator[tuple[int, int]]:
        config = self._port.config
        return portions(sizes, config.teach_portion_bytes, config.teach_portion)

    async def teach_rest(self) -> int:
        """What is left. The cut is as of before it is sent: what comes meanwhile lies behind it, whether
        EFs and CAs are held back or not, and the commit finds that out."""
        changes, cut = self._changes()
        await self._send(self._portions_of(changes))
        return cut

    async def make_ready(self, after: Sequence[Line]) -> None:
        learned = self._taught.summary
        await self._others.make_ready(self._learner, self._record.id, after, learned=learned)

    async def _send_changes(self) -> int:
        changes, _ = self._changes()
        await self._send(self._portions_of(changes))
        return len(changes)

    def _portions_of(self, changes: Mapping[bytes, bool]) -> Iterator[Changes]:
        """In portions too: while much is taught slowly, much changes."""
        templates = self._writer.templates
        changed = [
            (id_, templates.get(id_) if present else None) for id_, present in changes.items()
        ]
        sizes = (ID_BYTES if stored is None else _size(stored) for _, stored in changed)
        for first, end in self._cuts(sizes):
            some = changed[first:end]
            came = [stored for _, stored in some if stored is not None]
            yield self._needed(came), [id_ for id_, _ in some if not changes[id_]]

    def _changes(self) -> tuple[dict[bytes, bool], int]:
        if self._port.writer is not self._writer:
            raise NotReady("the store was opened anew")
        return self._log.take_unsent()

    # --- portions --------------------------------------------------------------------------------

    async def _send(self, portions: Iterable[Changes]) -> None:
        flying: deque[tuple[_Portion, asyncio.Task[pb.LearnAnswer]]] = deque()
        try:
            for came, gone in portions:
                portion = self._portion(came, gone)
                if len(flying) >= _IN_FLIGHT:
                    await self._land(flying)
                flying.append((portion, asyncio.create_task(self._carry(portion))))
                await asyncio.sleep(
                    0
                )  # it leaves, and others have their turn, before the next is made
            while flying:
                await self._land(flying)
        finally:
            for _, task in flying:
                task.cancel()
            await asyncio.gather(*(task for _, task in flying), return_exceptions=True)

    async def _land(self, flying: deque[tuple[_Portion, asyncio.Task[pb.LearnAnswer]]]) -> None:
        """The oldest has arrived; or, if it was overtaken, it and all that are on their way have."""
        portion, task = flying[0]
        answer = await task
        flying.popleft()
        if not answer.digest:  # refused, and so are those after it
            late = [portion, *(one for one, _ in flying)]
            await asyncio.gather(*(task for _, task in flying))
            flying.clear()
            for portion in late:
                answer = await self._carry(portion)
                self._check(portion, answer)
        self._check(portion, answer)

    def _portion(self, came: Sequence[StoredTemplate], gone: Sequence[bytes]) -> _Portion:
        now = now_us()
        request = pb.LearnRequest(
            move=self._record.id,
            attempt=self._taught.attempt,
            number=self._taught.portions,
            templates=templates_to_wire(
                [stored.packed for stored in came],
                [
                    left_us(lifetime_us(stored.packed.lifetime_s), stored.expires_us, now)
                    for stored in came
                ],
            ),
            cancelled=b"".join(gone),
        )
        self._taught.portions += 1
        for id_ in gone:
            self._taught.remove(id_)
        self._taught.add_all([stored.packed.id for stored in came])
        return _Portion(request, self._taught.summary)

    async def _carry(self, portion: _Portion) -> pb.LearnAnswer:
        return await self._others.learn(self._learner, portion.request)

    @staticmethod
    def _check(portion: _Portion, answer: pb.LearnAnswer) -> None:
        if (answer.count, answer.digest) != portion.known:
            raise NotReady(f"the learner knows {answer.count} of {portion.known[0]}")


def _size(stored: StoredTemplate) -> int:
    """Of one on the wire."""
    _, _, _, metadata, payload, _, reader, terms = stored.packed
    return len(metadata) + len(payload) + len(reader) + len(terms) + _BESIDE_BYTES
