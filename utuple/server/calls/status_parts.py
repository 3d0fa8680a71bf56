"""Parts of a uTupleServer's status: what its sections hold and cost, and who is busiest there."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from itertools import islice

from utuple.cluster.load import NO_LOAD, LoadByCause
from utuple.cluster.spread import Spread, encode_spread, spread_of
from utuple.model.key import key_of
from utuple.model.section import Section
from utuple.model.utuple import Family, Kind
from utuple.server.writing.engine import Engine
from utuple.store.contract import Census
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import causes_to_wire

_FAMILIES_TOLD = 32
"""In every status, so few: who is hot on a server is seldom more than these."""
_SPREADS_TOLD = 8
"""Sections, those with most EFs."""
_LOOKED_AT, _SAMPLED = 2_048, 256
"""Templates, spread over all that are here; and EFs and EAs of a section that are told of: some milliseconds' work."""


def left(engine: Engine) -> list[pb.Span]:
    emptied = engine.writer.moves.participant.emptied
    return [pb.Span(start=section.start, last=section.end - 1) for section in emptied]


def sections(
    engine: Engine,
    rates: Mapping[Family, float],
    causes: Mapping[Family, LoadByCause],
    *,
    spread: bool,
) -> list[pb.SectionStatus]:
    """What each of its sections costs and holds here; and, if wished, how its EAs and EFs are spread."""
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
    if spread:
        with_most = heapq.nlargest(_SPREADS_TOLD, found, key=lambda one: found[one].templates)
        for section in with_most:
            found[section].spread = encode_spread(_spread(engine, section))
    return list(found.values())


def _spread(engine: Engine, section: Section) -> Spread:
    """From a few: of the EFs that it keeps, and of the latest EAs."""
    index = engine.writer.index
    here = {family for family in index.count_by_family if key_of(*family) in section}
    every = max(1, len(index.templates) // _LOOKED_AT)
    some = (
        one
        for one in islice(index.templates.values(), None, None, every)
        if one.packed.kind is Kind.EF and one.packed.family in here
    )
    formals = [one.utuple for one in islice(some, _SAMPLED)]
    efs = sum(index.efs_by_family.get(family, 0) for family in here)
    events = list(engine.workload.sample.of(lambda family: key_of(*family) in section, _SAMPLED))
    return spread_of(efs, formals, events)


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
