"""A report as one HTML file that needs nothing else: style, script, plotly and data are inside.

The page forbids itself every request (Content-Security-Policy), so that it cannot come to need one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from importlib.resources import files

import orjson

from ops_sim.report.formatting import formatted
from ops_sim.report.render import palette
from ops_sim.report.render.plotly import drawn
from ops_sim.report.value import Assumption, Column, KeyFigure, Plot, Report, Section, Table, Unit

ROWS_SHOWN = 60
"""The page shows so many rows of a table: more is for the files beside it."""
VALUE_CHARS, TEXT_CHARS = 9, 8
"""A key figure of up to so many characters is in large type: a number, and words."""
ROWS_OPEN = 25
"""A table of more rows is folded up."""
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
)


def html(report: Report, made: str, command: str) -> str:
    return "\n".join(_document(report, made, command))


def _document(report: Report, made: str, command: str) -> Iterator[str]:
    ours = files("ops_sim.report.render")
    style = ours.joinpath("report.css").read_text(encoding="utf-8")
    yield "<!doctype html>"
    yield '<html lang="en">'
    yield '<head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{escape(report.title)}</title>"
    yield f"<style>:root{{{palette.css('light')}}}"
    yield f"@media screen and (prefers-color-scheme:dark){{:root{{{palette.css('dark')}}}}}"
    yield f"{style}</style></head>"
    yield "<body><main>"
    yield '<header><p class="kicker">uTupleSpace · capacity plan</p>'
    yield f"<h1>{escape(report.title)}</h1></header>"
    yield f'<div class="answer"><strong>{_prose(report.answer)}</strong>'
    yield f"<p>{_prose(report.reason)}</p></div>"
    yield f'<dl class="figures">{"".join(map(_figure, report.figures))}</dl>'
    for section in report.sections:
        yield from _section(section)
    yield from _assumptions(report.assumptions)
    yield f"</main><footer>Made {escape(made)} by <code>{escape(command)}</code>.</footer>"
    if report.plots:
        yield from _scripts(report, ours.joinpath("report.js").read_text(encoding="utf-8"))
    yield "</body></html>"


def _scripts(report: Report, ours: str) -> Iterator[str]:
    plotly = files("plotly").joinpath("package_data", "plotly.min.js").read_text(encoding="utf-8")
    data = orjson.dumps([drawn(plot) for plot in report.plots]).decode().replace("<", r"\u003c")
    yield f'<script type="application/json" id="plots">{data}</script>'
    yield f"<script>{plotly}</script>"
    yield f"<script>{ours}</script>"


def _prose(text: str) -> str:
    """Escaped; a date is not broken at the end of a line."""
    return re.sub(r"\b\d{4}-\d\d-\d\d\b", r'<span class="date">\g<0></span>', escape(text))


def _figure(figure: KeyFigure) -> str:
    note = f'<dd class="note">{escape(figure.note)}</dd>' if figure.note else ""
    value = formatted(figure.value, figure.unit)
    most = TEXT_CHARS if isinstance(figure.value, str) else VALUE_CHARS
    kind = "value" if len(value) <= most else "value long"
    shown = f'<dd class="{kind}">{escape(value)}</dd>'
    return f"<div><dt>{escape(figure.title)}</dt>{shown}{note}</div>"


def _section(section: Section) -> Iterator[str]:
    yield f"<section><h2>{escape(section.title)}</h2>"
    yield from (f"<p>{_prose(text)}</p>" for text in section.text)
    yield from map(_plot, section.plots)
    for table in section.tables:
        yield from _table(table, is_named=table.title == section.title)
    yield "</section>"


def _plot(plot: Plot) -> str:
    label = escape(f"{plot.title}. {plot.caption}")
    return (
        f"<figure><h3>{escape(plot.title)}</h3>"
        f'<div class="plot" id="{plot.name}" role="img" aria-label="{label}">'
        "<noscript>This plot needs JavaScript; page.png beside this file does not.</noscript></div>"
        f"<figcaption>{escape(plot.caption)}</figcaption></figure>"
    )


def _table(table: Table, is_named: bool) -> Iterator[str]:
    """Without a heading of its own where that of its section says the same."""
    title = escape(table.title)
    rows = table.data.num_rows
    folded = rows > ROWS_OPEN
    yield '<div class="table">' + ("" if is_named else f"<h3>{title}</h3>")
    if folded:
        yield "<details><summary>Show the rows</summary>"
    yield f'<div class="scroll" tabindex="0" role="region" aria-label="{title}"><table><thead><tr>'
    yield "".join(f'<th scope="col"{_text(c)}>{escape(c.title)}</th>' for c in table.columns)
    yield "</tr></thead><tbody>"
    yield from _rows(table)
    yield "</tbody></table></div>"
    if folded:
        yield "</details>"
    if table.note:
        yield f'<p class="files">{escape(table.note)}</p>'
    first = f"The first {ROWS_SHOWN} of {rows:,} rows; all" if rows > ROWS_SHOWN else "Also"
    name = escape(table.name)
    links = f'<a href="{name}.csv">{name}.csv</a> and <a href="{name}.parquet">{name}.parquet</a>'
    yield f'<p class="files">{first} in {links}.</p></div>'


def _rows(table: Table) -> Iterator[str]:
    names = [column.name for column in table.columns]
    for at, row in enumerate(table.data.select(names).slice(0, ROWS_SHOWN).to_pylist()):
        marked = ' class="marked"' if at in table.marked else ""
        cells = (
            f"<td{_text(c)}>{_prose(formatted(row[c.name], c.unit))}</td>" for c in table.columns
        )
        yield f"<tr{marked}>{''.join(cells)}</tr>"


def _text(column: Column) -> str:
    return ' class="text"' if column.unit is Unit.TEXT else ""


def _assumptions(assumptions: tuple[Assumption, ...]) -> Iterator[str]:
    if not assumptions:
        return
    yield '<section><h2>Assumptions</h2><div class="scroll" tabindex="0" role="region"'
    yield ' aria-label="Assumptions"><table><tbody>'
    for item in assumptions:
        yield f'<tr><th scope="row" class="text">{escape(item.name)}</th>'
        yield f'<td class="text">{escape(item.value)}</td>'
        yield f'<td class="text">{escape(item.reason)}</td></tr>'
    yield "</tbody></table></div></section>"
