"""Registrations to one server, gathered into calls: a queue for each server, and what a call holds."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from utuple.client.config import Config
from utuple.client.routing.lines import Lines
from utuple.client.routing.route import UNKNOWN, Standing, averaged
from utuple.client.sending.cut_short import CutShort
from utuple.client.sending.send_queue import SendBatch, SendQueue
from utuple.client.transport import Transport
from utuple.cluster.load import Load
from utuple.errors import Closed, UTupleError
from utuple.model.columns import Columns, concatenate
from utuple.model.packed import Packed
from utuple.model.utuple import Family
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import load_from_wire
from utuple.wire.codec import templates_to_wire, write_columns

_ROW_BYTES = 80
"""What a row weighs beside its payload: id, time, position, lifetime, address."""


@dataclass(frozen=True, slots=True)
class RowRefusal:
    """Rows of one submission that were not registered."""

    rows: tuple[int, ...]
    refusal: pb.Refusal


@dataclass(slots=True, eq=False)
class Submission:
    """What one caller sends to one server: events, devices or one template, not mixed."""

    part: pb.Part.ValueType
    epochs: dict[Family, int]
    retry: bool
    columns: Columns = field(default_factory=Columns)
    template: Packed | None = None
    rows: int = 0
    size_bytes: int = 0
    sent: bool = False
    may_go_elsewhere: bool = False
    send_by_s: float = math.inf
    deadline_s: float = math.inf
    answer: asyncio.Future[list[RowRefusal]] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def __post_init__(self) -> None:
        if self.template is not None:
            self.rows = 1
            self.size_bytes = _ROW_BYTES + len(self.template.metadata) + len(self.template.payload)
        else:
            self.rows = len(self.columns)
            self.size_bytes = _ROW_BYTES * self.rows + len(b"".join(self.columns.payloads))

    @property
    def formals(self) -> list[bytes]:
        """The ids of the EF or the CFs that it registers."""
        if self.template is not None:
            return [self.template.id]
        return [] if self.part == pb.EVENTS else list(self.columns.each_id())

    def joins(self, shared: dict[object, object]) -> bool:
        """One call says once what it holds and whether it is a retry, and has one epoch a family."""
        own: dict[object, object] = {"retry": self.retry, "part": self.part}
        own.update(self.epochs)
        if any(shared.get(name, wanted) != wanted for name, wanted in own.items()):
            return False
        shared.update(own)
        return True


class Batcher:
    def __init__(self, transport: Transport, lines: Lines, config: Config) -> None:
        self._transport = transport
        self._lines = lines
        self._config = config
        self._known: dict[str, Standing] = {}
        """What each server's last answer said."""
        self._queues: dict[str, SendQueue[Submission]] = {}
        self._cut = CutShort()
        self._closed = False

    def standing(self, names: Sequence[str]) -> dict[str, Standing]:
        """What is known of these servers, for the choice among them."""
        found = {}
        for name in names:
            queue, known = self._queues.get(name), self._known.get(name, UNKNOWN)
            if queue is not None:
                known = replace(known, in_flight=queue.rows, owed_since_s=queue.owed_since_s)
            found[name] = known
        return found

    async def send(
        self, server: str, submission: Submission, deadline_s: float
    ) -> list[RowRefusal]:
        """What was refused of this submission; everything else is registered, durably."""
        if self._closed:
            raise Closed("this space is closed")
        queue = self._queues.get(server)
        if queue is None:
            config = self._config
            calls, few_calls = config.calls_in_flight, config.few_calls_in_flight
            queue = SendQueue(server, self._call_to(server), config, calls, few_calls)
            self._queues[server] = queue
        submission.deadline_s = deadline_s
        try:
            found: list[RowRefusal] = await queue.send(submission, deadline_s)
        except asyncio.CancelledError:
            call = queue.call_of(submission)
            if call is not None:
                self._cut.note(submission.formals, call)
            raise
        return found

    async def settled(self, formal: bytes, limit_s: float) -> None:
        """Until every registration of this formal that was cut short has been answered or has failed, or for so long."""
        await self._cut.settled(formal, limit_s)

    def _call_to(self, server: str) -> SendBatch[Submission]:
        def carry(submissions: Sequence[Submission]) -> Awaitable[None]:
            now_s = asyncio.get_running_loop().time()
            limit_s = min(self._config.attempt_s, *(p.deadline_s - now_s for p in submissions))
            try:
                address = self._lines.address_of(server)
                answering = self._transport.register(address, request_of(submissions), limit_s)
            except UTupleError as error:
                return _failed(error)
            return self._settled(server, submissions, answering, now_s)

        return carry

    async def _settled(
        self,
        server: str,
        submissions: Sequence[Submission],
        answering: Awaitable[pb.RegisterAnswer],
        left_s: float,
    ) -> None:
        answer = await answering
        self._lines.hear(answer.lines, answer.servers)
        if answer.HasField("load"):
            rows = sum(submission.rows for submission in submissions)
            self._heard(server, load_from_wire(answer.load), rows, left_s)
        distribute(submissions, answer.refusals)

    def _heard(self, server: str, load: Load, rows: int, left_s: float) -> None:
        now_s = asyncio.get_running_loop().time()
        before = self._known.get(server)
        self._known[server] = Standing(
            load,
            now_s,
            counted=self._queues[server].sent_rows - rows,
            answer_s=averaged(before.answer_s if before else None, now_s - left_s),
        )

    async def close(self) -> None:
        self._closed = True
        await asyncio.gather(*(queue.close() for queue in self._queues.values()))


async def _failed(error: UTupleError) -> None:
    raise error


def request_of(submissions: Sequence[Submission]) -> pb.RegisterRequest:
    request = pb.RegisterRequest(retry=submissions[0].retry)
    epochs: dict[Family, int] = {}
    for submission in submissions:
        epochs |= submission.epochs
    if submissions[0].part == pb.TEMPLATES:
        templates = [
            submission.template for submission in submissions if submission.template is not None
        ]
        request.templates.CopyFrom(templates_to_wire(templates, epochs=epochs))
        return request
    place = request.events if submissions[0].part == pb.EVENTS else request.devices
    write_columns(place, concatenate([submission.columns for submission in submissions]), epochs)
    return request


def distribute(submissions: Sequence[Submission], refusals: Sequence[pb.Refusal]) -> None:
    """Each submission gets its own refusals, counted from its own first row."""
    starts = [0, *accumulate(submission.rows for submission in submissions)]
    for submission, start, end in zip(submissions, starts, starts[1:], strict=False):
        own = []
        for refusal in refusals:
            rows = tuple(row - start for row in refusal.rows if start <= row < end)
            if rows:
                own.append(RowRefusal(rows, refusal))
        if not submission.answer.done():
            submission.answer.set_result(own)
