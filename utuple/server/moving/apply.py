"""Applying one step of a move inside the writer's batch. Pure.

`home` and `participant` know what may be done; here it is also done to what the writer holds: EFs and CAs that were
learned, and rows that were received as shadows.
"""

from __future__ import annotations

from array import array
from typing import assert_never

from utuple.model.columns import Columns
from utuple.model.utuple import Kind
from utuple.server.moving.steps import (
    DONE,
    Abort,
    Begin,
    BeginShipping,
    CheckHeard,
    CheckLine,
    Commit,
    End,
    EndShipping,
    Forget,
    HearGrants,
    HearLines,
    Learn,
    Leave,
    Outcome,
    Promise,
    Prune,
    ReceiveRows,
    Step,
    refused,
)
from utuple.server.ports import WriterCore
from utuple.server.writing.transaction import Draft, PreparedBatch
from utuple.store.contract import Batch, StoredTemplate, stored_templates


def apply_step(
    writer: WriterCore, step: Step, draft: Draft, prepared: PreparedBatch, now_us: int
) -> Outcome:
    home, participant = writer.moves.home, writer.moves.participant
    match step:
        case Begin():
            return home.begin(step, draft, now_us)
        case Commit():
            committed = home.commit(step, draft, now_us)
            if committed.done:
                participant.settle(step.id, draft)
            return committed
        case Abort():
            return home.abort(step, draft, now_us)
        case End():
            return home.end(step, draft, now_us)
        case Learn():
            return _learn(writer, step, draft, prepared, now_us)
        case Promise():
            return participant.promise(step, draft)
        case HearLines():
            return participant.hear(step.lines, step.servers, draft, step.settled)
        case Forget():
            return participant.forget(step.id, draft)
        case CheckLine():
            return participant.check_line(step.line)
        case CheckHeard():
            heard = writer.lines.reaches(step.line)
            return Outcome(heard, "" if heard else "it was not heard of here", count=writer.seq)
        case Prune():
            return _prune(writer, step, prepared)
        case BeginShipping():
            return participant.begin_shipping(step, draft)
        case ReceiveRows():
            return _receive(writer, step, draft, prepared, now_us)
        case EndShipping():
            return participant.end_shipping(step.id, draft)
        case Leave():
            return participant.leave(draft, stay=step.stay)
        case HearGrants():
            return writer.moves.hear_grants(step, draft)
    assert_never(step)


def _learn(
    writer: WriterCore, step: Learn, draft: Draft, prepared: PreparedBatch, now_us: int
) -> Outcome:
    """What is known already stays (R4); every CA meets the CFs that are here (R5), as every EF does when
    its reader comes."""
    taught = writer.moves.participant.learning(step)
    if taught is None:
        return refused("a portion that is late or not the next")
    for id_ in step.cancelled:
        taught.remove(id_)
        writer.forget(id_)
        prepared.cancelled.append(id_)
    ids = [half.id for half in step.templates]
    taught.add_all(ids)
    expiries = [now_us + left_us for left_us in step.left_us]
    learned = stored_templates(
        step.templates, range(writer.seq + 1, writer.seq + 1 + len(ids)), expiries
    )
    writer.seq += len(ids)
    if not writer.templates.keys().isdisjoint(ids):
        learned = [_with_what_is_known(writer.templates.get(one.packed.id), one) for one in learned]
    writer.index.add_all(learned)
    draft.templates += learned
    prepared.commands += [one for one in learned if one.packed.kind is Kind.CA]
    return Outcome(True, count=len(taught.ids), digest=taught.digest)


def _prune(writer: WriterCore, step: Prune, prepared: PreparedBatch) -> Outcome:
    """Not as if they were cancelled: the home keeps them, and nobody is told."""
    allowed = writer.moves.participant.may_prune(step.line)
    if allowed.done:
        for id_ in step.ids:
            writer.forget(id_)
            prepared.cancelled.append(id_)
    return allowed


def _with_what_is_known(held: StoredTemplate | None, came: StoredTemplate) -> StoredTemplate:
    if held is None:
        return came
    return held._replace(expires_us=max(held.expires_us, came.expires_us))


def _receive(
    writer: WriterCore, step: ReceiveRows, draft: Draft, prepared: PreparedBatch, now_us: int
) -> Outcome:
    """Rows from a drained server, as shadows; and what happened to its formals since."""
    participant = writer.moves.participant
    rows = len(step.events) + len(step.devices)
    if rows and not participant.may_receive(step.id, step.origin, step.after):
        return refused("does not follow what was brought here")
    if len(step.events):
        expires = array("q", [now_us + left for left in step.events_left_us])
        draft.events.append(Batch(step.events, step.seqs, expires, step.origin, step.id))
    if len(step.devices):
        draft.devices.append(_numbered(writer, step.devices, step.devices_left_us, step.id, now_us))
    if rows:
        upto = max(step.seqs, default=0)
        participant.note_received(step.id, step.origin, upto, len(step.events), draft)
    for id_ in step.cancelled:
        writer.forget(id_)
        prepared.cancelled.append(id_)
    draft.positions.extend(step.positions)
    return DONE


def _numbered(
    writer: WriterCore, devices: Columns, left_us: array[int], move: bytes, now_us: int
) -> Batch:
    """CFs stand in this server's own order, since its CAs search them by it."""
    first = writer.seq + 1
    writer.seq += len(devices)
    seqs = array("Q", range(first, writer.seq + 1))
    return Batch(devices, seqs, array("q", [now_us + left for left in left_us]), "", move)
