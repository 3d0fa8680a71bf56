"""Intake: from the protocol to requests, and from answers back. Rows are admitted here, one by one.

What is large is decoded by a thread, so that it does not hold up the event loop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from utuple.cluster.line import ServerInfo
from utuple.errors import InvalidInput
from utuple.model.columns import Columns
from utuple.model.limits import MAX_PAGE_ROWS
from utuple.model.packed import Packed, checked, checked_utuple
from utuple.model.utuple import ID_BYTES, Family, Kind, UTuple, check_id, check_time
from utuple.runtime.aside import aside
from utuple.server.calls.admission import admit, admit_template
from utuple.server.writing.request import (
    NO_COLUMNS,
    Answer,
    Part,
    Reason,
    Refusal,
    Request,
    invalid,
)
from utuple.store.contract import Page
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_from_wire, line_to_wire, server_from_wire, server_to_wire
from utuple.wire.codec import (
    columns_from_wire,
    epochs_from_wire,
    family_from_wire,
    refuse_unknown,
    template_from_wire,
    templates_from_wire,
)

_LARGE_BYTES = 64 << 10
_LARGE_ROW_BYTES = 256
"""A request of so many bytes, whose rows are so large on average, is checked by a thread: a megabyte of JSON takes tens
of milliseconds. Rows that are small are checked sooner than a thread begins."""


def request_from_wire(message: pb.RegisterRequest) -> Request:
    refuse_unknown(message, "request")
    refusals: list[Refusal] = []
    epochs: dict[Family, int] = {}
    events, event_rows = _columns(message, Part.EVENTS, epochs, refusals)
    devices, device_rows = _columns(message, Part.DEVICES, epochs, refusals)
    templates: list[tuple[int, Packed]] = []
    if message.HasField("templates"):
        epochs |= _merged(epochs, epochs_from_wire(message.templates))
        for row, half in enumerate(templates_from_wire(message.templates)):
            try:
                templates.append((row, admit_template(half)))
            except InvalidInput as error:
                refusals.append(invalid(Part.TEMPLATES, row, error))
    cancels: list[tuple[int, bytes, Family]] = []
    for row, cancel in enumerate(message.cancels):
        try:
            family = family_from_wire(cancel.family)
            cancels.append((row, check_id(cancel.id), family))
        except InvalidInput as error:
            refusals.append(invalid(Part.CANCELS, row, error))
        else:
            epochs = _merged(epochs, {family: cancel.family.epoch})
    return Request(
        message.retry,
        events,
        event_rows,
        devices,
        device_rows,
        templates,
        cancels,
        epochs,
        refusals,
    )


def _columns(
    message: pb.RegisterRequest, part: Part, epochs: dict[Family, int], refusals: list[Refusal]
) -> tuple[Columns, Sequence[int] | None]:
    """EAs or CFs, without those that are refused."""
    name: Literal["events", "devices"] = "events" if part is Part.EVENTS else "devices"
    if not message.HasField(name):
        return NO_COLUMNS, None
    columns, own_epochs = columns_from_wire(getattr(message, name))
    epochs.update(_merged(epochs, own_epochs))
    columns, rows, refused = admit(columns, part)
    refusals += refused
    return columns, rows


def _merged(epochs: dict[Family, int], more: dict[Family, int]) -> dict[Family, int]:
    """One call routes one family by one line."""
    if not epochs:
        return more
    for family, epoch in more.items():
        if epochs.get(family, epoch) != epoch:
            raise InvalidInput("epoch", epoch, f"this call also routes {family} by another epoch")
    return epochs | more


def read_from_wire(message: pb.Templates) -> tuple[UTuple, int]:
    """A single EF to read, and the epoch it was routed by."""
    half, epoch = template_from_wire(message)
    return checked_utuple(_of_kind(half, Kind.EF)), epoch


def page_from_wire(message: pb.Page, template: UTuple, now_us: int) -> Page:
    refuse_unknown(message, "page")
    if not 0 < message.rows <= MAX_PAGE_ROWS:
        raise InvalidInput("page.rows", message.rows, f"must lie between 1 and {MAX_PAGE_ROWS}")
    after = None
    if message.after_id:
        after = check_time("page.after", message.after_us), check_id(message.after_id)
    return Page(template, message.rows, message.newest_first, after, now_us)


def _of_kind(half: Packed, kind: Kind) -> Packed:
    if half.kind is not kind:
        raise InvalidInput("kind", half.kind.value, f"this call takes {kind.value}s")
    return half


def one_command(message: pb.Templates, retry: bool = False) -> Request:
    """A single CA to hand out."""
    half, epoch = template_from_wire(message)
    half = checked(_of_kind(half, Kind.CA))
    return Request(retry=retry, templates=[(0, half)], epochs={half.family: epoch})


def adoption(message: pb.AdoptRequest) -> Request:
    refuse_unknown(message, "request")
    lines = [line_from_wire(line) for line in message.lines]
    if not lines:
        raise InvalidInput("lines", [], "the first table has at least one line")
    return Request(adopt=lines, adopt_servers=[server_from_wire(info) for info in message.servers])


_PARTS: dict[Part, pb.Part.ValueType] = {
    Part.EVENTS: pb.EVENTS,
    Part.DEVICES: pb.DEVICES,
    Part.TEMPLATES: pb.TEMPLATES,
    Part.CANCELS: pb.CANCELS,
}
_REASONS: dict[Reason, pb.Reason.ValueType] = {
    Reason.INVALID: pb.INVALID,
    Reason.CONFLICT: pb.CONFLICT,
    Reason.STALE: pb.STALE,
    Reason.NOT_SERVED: pb.NOT_SERVED,
    Reason.OFF: pb.OFF,
    Reason.NOT_ALLOWED: pb.NOT_ALLOWED,
}


def refusals_to_wire(refusals: Iterable[Refusal]) -> list[pb.Refusal]:
    return [
        pb.Refusal(
            part=_PARTS[refusal.part],
            reason=_REASONS[refusal.reason],
            rows=refusal.rows,
            field=refusal.field,
            value=refusal.value,
            rule=refusal.rule,
        )
        for refusal in refusals
    ]


def answer_into(
    message: pb.RegisterAnswer | pb.CommandAnswer | pb.ReadChunk,
    answer: Answer,
    servers: dict[str, ServerInfo],
) -> None:
    """Refusals, and the newer lines with where their members are, so the client needs no lookup."""
    message.refusals.extend(refusals_to_wire(answer.refusals))
    message.lines.extend(line_to_wire(line) for line in answer.lines)
    named = {member.name for line in answer.lines for member in line.members}
    message.servers.extend(
        server_to_wire(server) for name, server in servers.items() if name in named
    )


def asked_rows(message: pb.RegisterRequest) -> int:
    """How many uTuples it says it carries, before it is decoded."""
    ids = len(message.events.ids) + len(message.devices.ids) + len(message.templates.ids)
    return ids // ID_BYTES + len(message.cancels)


# --- beside the event loop, where it is large


def is_large(request: pb.RegisterRequest, size: int) -> bool:
    return size > _LARGE_BYTES and size > _LARGE_ROW_BYTES * asked_rows(request)


async def asked_to_read(message: pb.Templates) -> tuple[UTuple, int]:
    if message.ByteSize() > _LARGE_BYTES:
        return await aside(read_from_wire, message)
    return read_from_wire(message)


async def asked_to_command(request: pb.CommandRequest) -> Request:
    if request.ByteSize() > _LARGE_BYTES:
        return await aside(one_command, request.command, request.retry)
    return one_command(request.command, request.retry)
