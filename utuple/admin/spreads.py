"""How the EAs and EFs of sections are spread, as their members say: what a partition is cut by, and whether it is worth it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from utuple.admin import transport
from utuple.admin.snapshot import Snapshot
from utuple.cluster.layout import Layout
from utuple.cluster.line import Line
from utuple.cluster.spread import Spread, decode_spread
from utuple.wire import utuple_pb2 as pb


async def spreads_of(snapshot: Snapshot, lines: Sequence[Line]) -> dict[Line, Spread]:
    """EFs as the home keeps them, EAs as all members have taken them; nothing of a line whose home is silent."""
    names = sorted({member.name for line in lines for member in line.members})
    asked = (_said(snapshot, name) for name in names)
    said = dict(zip(names, await asyncio.gather(*asked), strict=True))
    return {
        line: home.with_values_of(
            said[one.name].get(line.section.start, Spread())
            for one in line.members
            if one.name != line.home
        )
        for line in lines
        if (home := said[line.home].get(line.section.start)) is not None
    }


async def _said(snapshot: Snapshot, name: str) -> Mapping[int, Spread]:
    server = snapshot.server(name)
    if server is None or not server.address:
        return {}
    status = await transport.server_status(server.address, brief=True, spread=True)
    return _by_start(status) if status is not None else {}


def _by_start(status: pb.ServerStatus) -> dict[int, Spread]:
    return {one.start: decode_spread(one.spread) for one in status.sections if one.spread}


def asked_said(spread: Spread) -> str:
    """Which dimensions EFs constrain: `data.kg 98 %, address 3 %`."""
    return ", ".join(f"{name} {share:.0%}" for name, share in spread.asked.items()) or "nothing"


def asked_rows(spreads: Mapping[Line, Spread]) -> list[tuple[str, int, str]]:
    """For `utuple status`: sections that have EFs, by their start."""
    found = sorted(spreads.items(), key=lambda pair: pair[0].section.start)
    return [
        (f"{line.section.start:016x}", spread.efs, asked_said(spread))
        for line, spread in found
        if spread.efs
    ]


def savings_said(spread: Spread, layout: Layout, line: Line) -> list[str]:
    """What each member would keep and take, and why."""
    if not spread.formals:
        return ["what it saves is not known: no EF of the section was seen"]
    said = [f"{spread.efs:,} EFs; they ask for {asked_said(spread)}"]
    kept = spread.kept(layout, line.home)
    for name in (one for one in line.accumulatable if one != line.home):
        share = kept.get(name, 0.0)
        takes = ", ".join(
            f"{axis.dimension} {spread.taken(axis, line.home).get(name, 0.0):.0%}"
            for axis in layout.axes
        )
        said.append(f"{name} keeps {share:.0%} of the EFs instead of all; of the EAs, by {takes}")
    copies = sum(kept.get(name, 0.0) for name in line.accumulatable)
    said.append(f"an EF is registered at {copies:.1f} servers instead of {len(line.accumulatable)}")
    said.append(f"{line.home} is home and keeps all of them")
    wanting = [f"{a.dimension} {1 - spread.asked.get(a.dimension, 0.0):.0%}" for a in layout.axes]
    said.append(f"EFs that every segment keeps, as they do not ask for it: {', '.join(wanting)}")
    return said
