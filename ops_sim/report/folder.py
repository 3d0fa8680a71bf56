"""The folder of a report: written at once, and read back for a comparison.

report.html          for a browser: needs nothing else
page.png, page.pdf   for mail
report.json          the same for programs
NAME.csv, .parquet   each table
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from ops_sim.report.render.html import html
from ops_sim.report.render.image import pages
from ops_sim.report.value import (
    Assumption,
    Axis,
    Column,
    KeyFigure,
    Plot,
    Report,
    Section,
    Series,
    Shape,
    Table,
    Threshold,
    Unit,
)
from utuple.errors import InvalidInput

FORM = 1
"""Of report.json; another number is refused."""


def write(report: Report, folder: Path, made: str, command: str) -> list[Path]:
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
    kept = [f"{table.name}.{end}" for table in report.tables for end in ("csv", "parquet")]
    return [folder / name for name in (*content, *kept)]


def read(folder: Path) -> Report:
    """What was written to a folder."""
    path = folder / "report.json" if folder.is_dir() else folder
    try:
        return from_json(orjson.loads(path.read_bytes()), path.parent)
    except FileNotFoundError:
        rule = "holds no report.json; `utuple plan ... --report DIR` writes one"
        raise InvalidInput("report", str(folder), rule) from None
    except (orjson.JSONDecodeError, KeyError, TypeError, OSError) as error:
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
    """Its rows are in its own file."""
    columns = [asdict(column) for column in table.columns]
    told = {name: getattr(table, name) for name in ("name", "title", "note", "marked")}
    return told | {"columns": columns}


def from_json(told: dict[str, Any], folder: Path) -> Report:
    if told["form"] != FORM:
        raise InvalidInput("report.form", told["form"], f"must be {FORM}: made by another version")
    return Report(
        **{name: told[name] for name in ("kind", "title", "answer", "reason")},
        figures=tuple(KeyFigure(**item | {"unit": Unit(item["unit"])}) for item in told["figures"]),
        sections=tuple(_section(item, folder) for item in told["sections"]),
        assumptions=tuple(Assumption(**item) for item in told["assumptions"]),
    )


def _section(told: dict[str, Any], folder: Path) -> Section:
    return Section(
        told["title"],
        tuple(told["text"]),
        tuple(map(_plot, told["plots"])),
        tuple(_table(item, folder) for item in told["tables"]),
    )


def _plot(told: dict[str, Any]) -> Plot:
    built = {
        "x": _axis(told["x"]),
        "y": _axis(told["y"]),
        "right": _axis(told["right"]) if told["right"] else None,
        "series": tuple(map(_series, told["series"])),
        "thresholds": tuple(Threshold(**item) for item in told["thresholds"]),
    }
    return Plot(**told | built)


def _axis(told: dict[str, Any]) -> Axis:
    return Axis(**told | {"unit": Unit(told["unit"])})


def _series(told: dict[str, Any]) -> Series:
    lists = {name: tuple(told[name]) for name in ("x", "y", "low", "labels")}
    return Series(**told | lists | {"shape": Shape(told["shape"])})


def _table(told: dict[str, Any], folder: Path) -> Table:
    from pyarrow import parquet

    columns = tuple(Column(**item | {"unit": Unit(item["unit"])}) for item in told["columns"])
    data = parquet.read_table(folder / f"{told['name']}.parquet")
    return Table(**told | {"columns": columns, "marked": tuple(told["marked"]), "data": data})
