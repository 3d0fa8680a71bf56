"""The folder of a report: written at once, and read back for a comparison.

report.html          for a browser: needs nothing else
page.png, page.pdf   for mail
report.json          the same for programs
NAME.csv, .parquet   each table
"""

from __future__ import annotations

from dataclasses import asdict, fields, is_dataclass
from enum import EnumType
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import orjson

from ops_sim.report.render.html import html
from ops_sim.report.render.image import pages
from ops_sim.report.value import Report, Table
from utuple.errors import InvalidInput

FORM = 1
"""The version of report.json; a report of another one is refused."""


def write(report: Report, folder: Path, made: str, command: str) -> None:
    """Everything of the folder; what else is in it stays."""
    from pyarrow import csv, parquet

    if folder.exists() and not folder.is_dir():
        raise InvalidInput("--report", str(folder), "is a file; a report is a folder")
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "report.html": html(report, made, command).encode(),
        **pages(report, made),
        "report.json": orjson.dumps(to_json(report, made, command), option=orjson.OPT_INDENT_2),
    }
    for name, data in content.items():
        (folder / name).write_bytes(data)
    for table in report.tables:
        csv.write_csv(table.data, folder / f"{table.name}.csv")
        parquet.write_table(table.data, folder / f"{table.name}.parquet")


def read(folder: Path) -> Report:
    """What was written to a folder."""
    path = folder / "report.json" if folder.is_dir() else folder
    try:
        return from_json(orjson.loads(path.read_bytes()), path.parent)
    except FileNotFoundError:
        rule = "holds no report.json; `utuple plan ... --report DIR` writes one"
        raise InvalidInput("report", str(folder), rule) from None
    except InvalidInput:
        raise
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise InvalidInput("report", str(path), f"is no report: {error}") from None


def to_json(report: Report, made: str, command: str) -> dict[str, Any]:
    sections = [
        {
            "title": section.title,
            "text": section.text,
            "plots": [asdict(plot) for plot in section.plots],
            "tables": [_table_json(table) for table in section.tables],
        }
        for section in report.sections
    ]
    return {
        "form": FORM,
        "made": made,
        "command": command,
        **{name: getattr(report, name) for name in ("kind", "title", "answer", "reason")},
        "figures": [asdict(figure) for figure in report.figures],
        "sections": sections,
        "assumptions": [asdict(assumption) for assumption in report.assumptions],
    }


def _table_json(table: Table) -> dict[str, Any]:
    """A table without its rows, which are in a file of its own."""
    columns = [asdict(column) for column in table.columns]
    told = {name: getattr(table, name) for name in ("name", "title", "note", "marked")}
    return told | {"columns": columns}


def from_json(told: dict[str, Any], folder: Path) -> Report:
    from pyarrow import parquet

    if told["form"] != FORM:
        raise InvalidInput("report.form", told["form"], f"must be {FORM}: made by another version")
    for section in told["sections"]:
        for table in section["tables"]:
            table["data"] = parquet.read_table(folder / f"{table['name']}.parquet")
    report: Report = _built(Report, {field.name: told[field.name] for field in fields(Report)})
    return report


def _built(kind: Any, told: Any) -> Any:
    """A value of this type from what JSON made of it: dataclasses came as objects, tuples as lists, enums as texts."""
    if isinstance(kind, UnionType):  # as in `Axis | None`
        kind = next((one for one in get_args(kind) if is_dataclass(one)), None) if told else None
    if get_origin(kind) is tuple:
        return tuple(_built(get_args(kind)[0], item) for item in told)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{name: _built(hints[name], value) for name, value in told.items()})  # type: ignore[operator]
    return kind(told) if isinstance(kind, EnumType) else told
