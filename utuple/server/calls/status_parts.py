"""Parts of a uTupleServer's status: what its sections hold and cost, and who is busiest there."""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from utuple.cluster.load import NO_LOAD, LoadByCause
from utuple.model.key import key_of
from utuple.model.section import Section
from utuple.model.utuple import Family
from utuple.server.writing.engine import Engine
from utuple.store.contract import Census
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import causes_to_wire

_FAMILIES_TOLD = 32
"""In every status, so few: who is hot on a server is seldom more than these."""


def left(engine: Engine) -> list[pb.Span]:
    emptied = engine.writer.moves.participant.emptied
    return [pb.Span(start=section.start, last=section.end - 1) for section in emptied]


def sections(
    engine: Engine, rates: Mapping[Family, float], causes: Mapping[Family, LoadByCause]
) -> list[pb.SectionStatus]:
    """What each of its sections costs and holds here."""
    found = {line.section: pb.SectionStatus() for line in engine.own_lines}
    lines = engine.lines
    for section, status in found.items():
        census = engine.census.get(section)
        status.start, status.last = section.start, section.end - 1
        known = census if census is not None else Census(is_empty=False)
        status.rows, status.is_empty = known.rows, known.is_empty
        status.is_splittable = known.is_splittable
        if known.some_key is not None:
            status.some_key = known.some_key
    for family, rate in rates.items():
        line = lines.line_of(key_of(*family))
        if line is not None and line.section in found:
            found[line.section].arrival_per_s += rate
    borne: dict[Section, LoadByCause] = {}
    for family, load in causes.items():
        line = lines.line_of(key_of(*family))
        if line is not None and line.section in found:
            borne[line.section] = borne.get(line.section, NO_LOAD) + load
    for section, load in borne.items():
        found[section].by_cause.CopyFrom(causes_to_wire(load))
    for family, count in engine.writer.index.count_by_family.items():
        line = lines.line_of(key_of(*family))
        if line is not None and line.section in found:
            found[line.section].templates += count
    return list(found.values())


def families(
    engine: Engine,
    rates: Mapping[Family, float],
    causes: Mapping[Family, LoadByCause],
    sizes: Mapping[Family, float],
) -> list[pb.FamilyRate]:
    """The busiest: what is hot here, for whoever plans ahead. Half by what comes in, half by what they cost."""
    half = _FAMILIES_TOLD // 2
    busiest = heapq.nsmallest(half, rates, key=lambda family: (-rates[family], family))
    costly = heapq.nsmallest(half, causes, key=lambda family: (-causes[family].total, family))
    index = engine.writer.index
    return [
        pb.FamilyRate(
            subject=family[0],
            type=family[1],
            arrival_per_s=rates.get(family, 0.0),
            templates=index.count_by_family.get(family, 0),
            event_templates=index.efs_by_family.get(family, 0),
            mean_bytes=sizes.get(family, 0.0),
            by_cause=causes_to_wire(causes.get(family, NO_LOAD)),
        )
        for family in dict.fromkeys((*busiest, *costly))
    ]
