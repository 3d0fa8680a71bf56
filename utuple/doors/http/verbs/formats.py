"""Events going out: JSON, NDJSON, CSV or Arrow, batch by batch. Nothing is collected."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from utuple.cli.verbs.json_lines import Delivered, data_shown, line_of_delivery, time_shown
from utuple.doors.http.problems import Problem
from utuple.doors.http.streaming import Pieces
from utuple.doors.http.verbs.body import JSON, NDJSON

CSV = "text/csv"
ARROW = "application/vnd.apache.arrow.stream"
COLUMNS = ("id", "subject", "type", "address", "time", "lat", "lon", "data")

Batches = AsyncIterator[Sequence[Delivered]]


async def as_json(batches: Batches) -> Pieces:
    before = b'{"events":['
    async for batch in batches:
        yield before + b",".join(map(line_of_delivery, batch))
        before = b","
    yield b"]}" if before == b"," else before + b"]}"


async def as_ndjson(batches: Batches) -> Pieces:
    async for batch in batches:
        yield b"\n".join(map(line_of_delivery, batch)) + b"\n"


async def as_csv(batches: Batches) -> Pieces:
    yield (",".join(COLUMNS) + "\r\n").encode()
    async for batch in batches:
        text = io.StringIO()
        csv.writer(text).writerows(map(_row, batch))
        yield text.getvalue().encode()


def _row(one: Delivered) -> list[Any]:
    lat, lon = one.position or ("", "")
    shown = data_shown(one).decode()
    return [one.id, one.subject, one.type, one.address, time_shown(one.time), lat, lon, shown]


async def as_arrow(batches: Batches) -> Pieces:
    """The stream format; data as JSON text."""
    import pyarrow as pa

    text = pa.string()
    schema = pa.schema(
        [
            *((name, text) for name in ("id", "subject", "type", "address")),
            ("time", pa.timestamp("us", tz="UTC")),
            *((name, pa.float64()) for name in ("lat", "lon")),
            ("data", text),
        ]
    )
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, schema) as writer:
        async for batch in batches:
            places = [one.position or (None, None) for one in batch]
            columns: list[list[Any]] = [
                [str(one.id) for one in batch],
                *([getattr(one, name) for one in batch] for name in COLUMNS[1:5]),
                [lat for lat, _ in places],
                [lon for _, lon in places],
                [data_shown(one).decode() for one in batch],
            ]
            arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
            yield _taken(sink)
    yield _taken(sink)


def _taken(sink: io.BytesIO) -> bytes:
    written = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return written


FORMATS: dict[str, Callable[[Batches], Pieces]] = {
    JSON: as_json,
    NDJSON: as_ndjson,
    CSV: as_csv,
    ARROW: as_arrow,
}


def chosen(accept: str) -> str:
    """The best of what the client accepts."""
    wanted = []
    for place, part in enumerate(accept.split(",") if accept.strip() else ["*/*"]):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        wanted.append((-_quality(parameters), place, name.lower()))
    for quality, _, name in sorted(wanted):
        if quality == 0:
            continue
        for known in FORMATS:
            if name in (known, "*/*") or (name == known.split("/")[0] + "/*"):
                return known if known != ARROW else _arrow_if_here()
    raise Problem(
        406,
        "Not acceptable",
        f"Accept {accept!r} names none of {', '.join(FORMATS)}",
        field="Accept",
        value=accept[:200],
        rule=f"must name one of {', '.join(FORMATS)}",
    )


def _arrow_if_here() -> str:
    from importlib.util import find_spec

    if find_spec("pyarrow") is None:
        raise Problem(
            406, "Not acceptable", "this door has no Arrow: pip install 'utuple[sim]' adds it"
        )
    return ARROW


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return min(1.0, max(0.0, float(value)))
            except ValueError:
                return 0.0
    return 1.0
