"""The results page, from results: text in Markdown. Pure. What is said about a benchmark by hand lies beside the
plots, in `NAME.md`, and is taken over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from benchmarks.results import Result

HEAD = """# Performance

<!-- Written by `make performance` from the results of `make bench`: do not edit. What is said by hand lies in
docs/performance/NAME.md. -->

Each benchmark runs ours and what a user would take instead in the same run, in turns, several times. Shown are the
median and the least and the most of all runs; laws (marked "always") are judged by their worst run. A rival that was
not installed is named as skipped. Each section says of which commit and day its figures are, and how busy the machine was.
`utuple bench NAME` repeats one; `make bench-peers` installs the rivals.
"""
NO_RESULTS = "There are no results yet: `make bench`, then `make performance`.\n"
QUICK = "**These are results of `--quick` runs: they show that everything works, not how fast it is.**\n"
_WHEN = ("load_1m", "commit", "date")
"""Of one benchmark, not of the machine."""


def page(
    results: Sequence[Result],
    said: Mapping[str, str],
    what: Mapping[str, str],
    plots: Mapping[str, Sequence[str]],
) -> str:
    """`said`: by hand, of a benchmark. `what`: each benchmark in a sentence. `plots`: paths of pictures, by
    benchmark; the overview is under the empty name."""
    if not results:
        return f"{HEAD}\n{NO_RESULTS}"
    parts = [HEAD, *([QUICK] if any(result.get("quick") for result in results) else [])]
    parts += [_machine(results[0]["machine"]), _overview(results), _pictures(plots.get("", ()), "")]
    for result in results:
        name = result["benchmark"]
        parts += [
            f"## {name}\n",
            f"{what.get(name, '')}\n",
            said.get(name, ""),
            _figures(result, results[0]["machine"]),
            _notes(result),
            _pictures(plots.get(name, ()), name),
        ]
    return "\n".join(part for part in parts if part)


def _machine(machine: Mapping[str, object]) -> str:
    return f"Machine: {_where(machine)}.\n"


def _where(machine: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in machine.items() if name not in _WHEN)


def _overview(results: Iterable[Result]) -> str:
    rows = []
    for result in results:
        for figure, target in result["target"].items():
            if figure in result.get("skipped", {}):
                rows.append(
                    (
                        result["benchmark"],
                        figure,
                        "",
                        target,
                        f"skipped: {result['skipped'][figure]}",
                    )
                )
            else:
                met = "yes" if result["met_by"][figure] else "**no**"
                rows.append((result["benchmark"], figure, number(result[figure]), target, met))
    return table(("benchmark", "figure", "median", "target", "met"), rows)


def _measured(result: Result, first: Mapping[str, object]) -> str:
    """How often, when and of what; and where, if that is not where the first of the page was measured."""
    machine = result["machine"]
    said = f"{result['runs']} runs"
    if machine.get("commit"):
        said += f" of {machine['commit']} on {machine['date']}"
    if "load_1m" in machine:
        said += f", load before {machine['load_1m']:g}"
    if _where(machine) != _where(first):
        said += f", on another machine ({_where(machine)})"
    return f"{said}."


def _figures(result: Result, first: Mapping[str, object]) -> str:
    rows = []
    for figure, (least, most) in result["spread"].items():
        target = result["target"].get(figure, "")
        rows.append((figure, number(result[figure]), number(least), number(most), target))
    return f"{_measured(result, first)}\n\n" + table(
        ("figure", "median", "least", "most", "target"), rows
    )


def _notes(result: Result) -> str:
    notes = result.get("notes", {})
    return "".join(f"- {name}: {note}\n" for name, note in notes.items())


def _pictures(paths: Iterable[str], name: str) -> str:
    alt = f"Figures of {name}" if name else "Every figure as a share of its target"
    return "".join(f"![{alt}]({path})\n" for path in paths)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def number(value: float) -> str:
    """As a person reads it: three figures that count, and thousands in groups."""
    if value == 0 or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
