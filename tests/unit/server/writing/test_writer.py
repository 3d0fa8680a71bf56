"""The writer's core: one order, epochs checked in it, retries told from first attempts."""

from __future__ import annotations

from dataclasses import replace

from utuple.cluster.layout import Axis, Layout
from utuple.cluster.line import Line, Member
from utuple.model.columns import columns_of
from utuple.model.condition import Equal
from utuple.model.key import HASH_SPACE
from utuple.model.packed import packed
from utuple.model.section import Section
from utuple.model.utuple import Exact, Family, Kind, Template, UTuple
from utuple.server.writing.request import Part, Reason, Request
from utuple.server.writing.transaction import Housekeeping, PreparedBatch
from utuple.server.writing.writer import Writer
from utuple.store.contract import NO_SEQ, Known, Recovered

NOW = 1_000_000
FAMILY = Family("truck", "load")
LINE = Line(Section(0, HASH_SPACE), 3, (Member("A"), Member("B")))
NONE = Housekeeping()


def ea(number: int, lifetime_s: float = 60, **data: object) -> UTuple:
    return UTuple(
        number.to_bytes(16, "big"), FAMILY, Exact("t1", number), data or {"kg": 1}, None, lifetime_s
    )


def ef(number: int, lifetime_s: float = 60) -> UTuple:
    return UTuple(number.to_bytes(16, "big"), FAMILY, Template(), None, {}, lifetime_s, "r")


def ca(number: int, lifetime_s: float = 60) -> UTuple:
    return UTuple(number.to_bytes(16, "big"), FAMILY, Template(), {"on": True}, None, lifetime_s)


def cf(number: int) -> UTuple:
    return UTuple(number.to_bytes(16, "big"), FAMILY, Exact("d1", 1), None, {}, 60, "r")


def events(*utuples: UTuple, epoch: int = 3, retry: bool = False) -> Request:
    return Request(retry=retry, events=columns_of(utuples), epochs={FAMILY: epoch})


def templates(*utuples: UTuple, epoch: int = 3) -> Request:
    return Request(templates=list(enumerate(map(packed, utuples))), epochs={FAMILY: epoch})


def writer(line: Line = LINE) -> Writer:
    return Writer("A", Recovered(seq=10, lines=[line]))


def prepare(
    core: Writer, *requests: Request, known: dict[bytes, Known] | None = None
) -> PreparedBatch:
    prepared = core.prepare(list(requests), known or {}, NONE, NOW)
    core.match(prepared)
    return prepared


def test_a_batch_meets_its_own_templates_and_seqs_follow_the_order() -> None:
    core = writer()
    done = prepare(core, events(ea(1), ea(2)), templates(ef(100)))
    batch, found = done.events[0]
    assert [row for row, _ in found.pairs()] == [0, 1]
    assert done.transaction.templates[0].seq == 11
    assert list(batch.seqs) == [12, 13]
    assert done.transaction.seq == core.seq == 13


def test_what_lies_outside_its_segments_is_refused_with_the_line_and_the_rest_is_taken() -> None:
    """Law 7: of what lies elsewhere it does not keep the EFs. CFs are not partitioned."""
    cut = Layout((Axis("data.kg", (5,), (("B",), ("A", "B"))), Axis("lat", (), (("B",),))))
    line = replace(LINE, members=(Member("B"), Member("A")), layout=cut)
    devices = Request(devices=columns_of([cf(7)]), epochs={FAMILY: 3})
    done = prepare(writer(line), events(ea(1, kg=4), ea(2, kg=5), ea(3, kg=9)), devices)
    batch, _ = done.events[0]
    assert [batch.columns.id_at(row)[-1] for row in range(len(batch))] == [2, 3]
    refused, taken = done.answers
    (refusal,) = refused.refusals
    assert (refusal.part, refusal.reason, refusal.rows) == (Part.EVENTS, Reason.NOT_SERVED, [0])
    assert refused.lines == [line]
    assert not taken.refusals and len(done.transaction.devices) == 1


def test_another_epoch_is_refused_and_the_newer_line_sent_along() -> None:
    for epoch in (2, 4):
        done = prepare(writer(), events(ea(1), epoch=epoch), templates(ef(9), epoch=epoch))
        assert [answer.refusals[0].reason for answer in done.answers] == [Reason.STALE] * 2
        assert done.answers[0].lines == [LINE]
        assert done.transaction.is_empty and done.transaction.seq == 10


def test_a_section_it_has_no_line_for_is_refused() -> None:
    core = Writer("A", Recovered())
    assert prepare(core, events(ea(1))).answers[0].refusals[0].reason is Reason.NOT_SERVED


def test_a_member_that_is_off_takes_templates_but_no_events() -> None:
    off = replace(LINE, members=(Member("A", accumulatable=False), Member("B")))
    done = prepare(writer(off), events(ea(1)), templates(ef(9)))
    assert done.answers[0].refusals[0].reason is Reason.OFF
    assert done.answers[1].refusals == []


def test_a_retry_of_what_is_stored_is_a_no_op_and_other_content_a_conflict() -> None:
    stored = {ea(1).id: Known(ea(1).id, "t1", b'{"kg":1}')}
    core = writer()
    done = prepare(core, events(ea(1), ea(2), retry=True), known=stored)
    assert done.answers[0].refusals == []
    assert [batch.columns.id_at(0) for batch, _ in done.events] == [ea(2).id]
    clash = prepare(core, events(ea(1, kg=5), retry=True), known=stored)
    assert clash.answers[0].refusals[0].reason is Reason.CONFLICT
    assert not clash.events


def test_a_retry_in_the_same_batch_as_its_first_attempt_is_stored_once() -> None:
    done = prepare(writer(), events(ea(1)), events(ea(1), retry=True))
    assert sum(len(batch) for batch in done.transaction.events) == 1


def test_lifetime_0_matches_now_and_keeps_nothing() -> None:
    core = writer()
    prepare(core, templates(ef(100)))
    done = prepare(core, events(ea(1, lifetime_s=0)))
    assert len(done.events[0][1]) == 1
    assert done.is_idle and done.transaction.is_empty, "the store has no part in it"
    assert done.transaction.seq == 11, "a seq that is not durable would be given again"
    assert done.events[0][0].is_fleeting
    reading = prepare(core, templates(ef(101, lifetime_s=0)))
    assert reading.answers[0].seq == 11
    assert reading.transaction.is_empty and core.index.count(Kind.EF) == 1


def test_of_a_call_with_both_only_what_lives_is_stored_and_numbered() -> None:
    core = writer()
    prepare(core, templates(ef(100)))
    mixed = events(ea(1, lifetime_s=0), ea(2), ea(3, lifetime_s=0), ea(4))
    done = prepare(core, mixed)
    (stored, met), (fleeting, also_met) = done.events
    assert [*stored.columns.each_id()] == [ea(2).id, ea(4).id] and list(stored.seqs) == [12, 13]
    assert [*fleeting.columns.each_id()] == [ea(1).id, ea(3).id] and fleeting.is_fleeting
    assert [len(rows) for _, rows in (*met, *also_met)] == [2, 2]
    assert done.transaction.events == [stored] and done.transaction.seq == core.seq == 13


def test_a_retry_of_lifetime_0_is_not_looked_up() -> None:
    core = writer()
    again = replace(events(ea(1, lifetime_s=0), ea(2)), retry=True)
    looked_up, _ = core.retried([again])
    assert [key.id for key in looked_up] == [ea(2).id]


def test_a_template_again_is_a_no_op_and_with_other_content_a_conflict() -> None:
    core = writer()
    prepare(core, templates(ef(100)))
    again = prepare(core, templates(ef(100)))
    assert again.answers[0].refusals == [] and core.index.count(Kind.EF) == 1
    other = replace(ef(100), where={"kg": Equal(1)})
    clash = prepare(core, templates(other))
    assert clash.answers[0].refusals[0].reason is Reason.CONFLICT


def test_a_cancelled_template_matches_nothing_more() -> None:
    core = writer()
    prepare(core, templates(ef(100)))
    cancel = Request(cancels=[(0, ef(100).id, FAMILY)], epochs={FAMILY: 3})
    done = prepare(core, cancel, events(ea(1)))
    assert done.cancelled == [ef(100).id]
    assert not done.events[0][1]


def test_a_device_meets_stored_commands_and_a_command_is_searched_each_time_it_comes() -> None:
    core = writer()
    first = prepare(core, templates(ca(200)))
    assert [stored.seq for stored in first.commands] == [11]
    device = Request(devices=columns_of([cf(300)]), epochs={FAMILY: 3})
    assert [*prepare(core, device).devices[0][1].ids] == [ca(200).id]
    again = prepare(core, templates(ca(200)))
    assert len(again.commands) == 1, "R5: what comes again is searched again"


def test_a_command_of_lifetime_0_is_searched_and_neither_written_nor_numbered() -> None:
    core = writer()
    before = core.seq
    done = prepare(core, templates(ca(200, lifetime_s=0)))
    assert [(one.packed.id, one.seq) for one in done.commands] == [(ca(200).id, NO_SEQ)]
    assert done.is_idle and core.seq == before and core.index.count(Kind.CA) == 0
    kept = prepare(core, templates(ca(201), ca(202, lifetime_s=0)))
    assert [one.seq for one in kept.commands] == [before + 1, NO_SEQ], "in the order they came"
    assert [one.packed.id for one in kept.transaction.templates] == [ca(201).id]


def test_the_first_table_is_adopted_once() -> None:
    core = Writer("A", Recovered())
    done = prepare(core, Request(adopt=[LINE]))
    assert done.answers[0].adopted and done.transaction.lines == [LINE]
    newer = replace(LINE, epoch=9)
    again = prepare(core, Request(adopt=[newer]))
    assert not again.answers[0].adopted and core.lines.all == [LINE]


def test_only_retries_are_looked_up() -> None:
    core = writer()
    looked_up, _ = core.retried([events(ea(1)), events(ea(2), retry=True)])
    assert [key.id for key in looked_up] == [ea(2).id]


def test_refusals_point_at_the_rows_of_the_call() -> None:
    request = replace(events(ea(1), epoch=1), event_rows=[7])
    refusal = prepare(writer(), request).answers[0].refusals[0]
    assert (refusal.part, list(refusal.rows)) == (Part.EVENTS, [7])
