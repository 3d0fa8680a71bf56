"""What servers answer, as the values the monitor decides by."""

from __future__ import annotations

from load_monitor.observing import FamilyReport, Report, SectionReport
from load_monitor.window import Sample
from utuple.model.section import Section
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import (
    causes_from_wire,
    line_from_wire,
    load_from_wire,
    record_from_wire,
)


def report_from_wire(status: pb.ServerStatus) -> Report:
    """Refuses what no server in its right mind says."""
    load = load_from_wire(status.load)
    arrivals = {_section(message): message.arrival_per_s for message in status.sections}
    sample = Sample(
        status.name,
        load.busy,
        load.expected_wait_s(0.0),
        status.size_bytes,
        status.capacity_bytes,
        arrivals,
        status.by_cause.searches,
    )
    return Report(
        sample,
        tuple(map(line_from_wire, status.lines)),
        tuple(map(_section_report, status.sections)),
        tuple(map(record_from_wire, status.moves)),
        status.leaving,
        tuple(map(_family_report, status.families)),
        tuple(map(_section, status.left)),
        status.shipments,
    )


def _section(message: pb.SectionStatus | pb.Span) -> Section:
    return Section(message.start, message.last + 1)


def _section_report(message: pb.SectionStatus) -> SectionReport:
    return SectionReport(
        _section(message),
        message.rows,
        message.templates,
        message.is_empty,
        message.is_splittable,
        message.some_key if message.HasField("some_key") else None,
        causes_from_wire(message.by_cause),
    )


def _family_report(message: pb.FamilyRate) -> FamilyReport:
    said = message.subject, message.type, message.arrival_per_s, message.templates
    return FamilyReport(*said, causes_from_wire(message.by_cause))
