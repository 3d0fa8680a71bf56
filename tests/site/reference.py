"""docs/reference/ from the code: what a page says is what the code says, and `tests/test_reference.py` compares."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cached_property
from typing import Any

import utuple
from utuple.runtime.options import reasons_of

MADE = "Made from the code by `make reference`; a test compares."
_WORDS = {
    "sdk": "The verbs, conditions and errors of the package `utuple`",
    "cli": "Every command of `utuple`, with its options",
    "http": "Every path of the HTTP door; the same as its `/openapi.json`",
    "knobs": "Every threshold, wait and limit that can be set",
    "metrics": "What `utuple metrics` and the HTTP door's `/metrics` show",
}


def pages() -> dict[str, str]:
    """Names below docs/reference/ and their texts."""
    made: dict[str, Callable[[], str]] = {
        "index": index,
        "sdk": sdk,
        "cli": cli,
        "http": http,
        "knobs": knobs,
        "metrics": metrics,
    }
    return {f"{name}.md": page().rstrip() + "\n" for name, page in made.items()}


def index() -> str:
    lines = [f"- [{name}]({name}.md): {what}." for name, what in _WORDS.items()]
    return "\n".join(["# Reference", "", MADE, "", *lines])


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


# --- the SDK ---------------------------------------------------------------------------------------


def sdk() -> str:
    classes = [utuple.Space, utuple.Watch, utuple.Device, utuple.Delivery, utuple.Receipt]
    classes += [utuple.Receipts, utuple.DeviceReceipt, utuple.Drop, utuple.Box, utuple.Circle]
    classes += [utuple.DropPolicy]
    named = [getattr(utuple, name) for name in utuple.__all__]
    errors = [one for one in named if inspect.isclass(one) and issubclass(one, utuple.UTupleError)]
    errors.sort(key=lambda one: ([base.__name__ for base in reversed(one.__mro__)]))
    functions = [one for one in named if inspect.isfunction(one) and one is not utuple.connect]
    said = [f"# The SDK\n\n{_WORDS['sdk']}. {MADE}"]
    said.append(_function("utuple.connect", utuple.connect, 2))
    said += [part for one in classes for part in _class(f"utuple.{one.__name__}", one)]
    said.append("## Conditions and drop policies")
    said.append(
        "`utuple.ANY`: any value, but one must be there. `utuple.ABSENT`: there must be none."
    )
    said += [_function(f"utuple.{one.__name__}", one, 3) for one in functions]
    said.append("## Errors")
    rows = [
        (f"`{one.__name__}`", f"`{one.__bases__[0].__name__}`", inspect.getdoc(one) or "")
        for one in errors
    ]
    said.append(table(["error", "is a", "means"], rows))
    said.append(
        "## utuple.blocking\n\nThe same without `await`, for any number of threads: `utuple.blocking.connect(…)` gives a space whose verbs "
        "are those above."
    )
    said.append(_function("utuple.blocking.connect", utuple.blocking.connect, 3))
    return "\n\n".join(said)


def _class(name: str, of: type) -> Iterator[str]:
    """With what it inherits from classes of ours."""
    yield f"## {name}\n\n{_doc(of)}"
    own = name.rpartition(".")[2]
    if is_dataclass(of):
        reasons = reasons_of(of)
        rows = [(f"`{one.name}`", f"`{_plain(one.type)}`", reasons[one.name]) for one in fields(of)]
        yield table(["field", "is", ""], [row for row in rows if not row[0].startswith("`_")])
    seen = set[str]()
    for base in of.__mro__:
        for member, value in vars(base).items() if base.__module__.startswith("utuple") else ():
            if member.startswith("_") or member in seen:
                continue
            seen.add(member)
            if isinstance(value, property | cached_property):
                yield f"### {own}.{member}\n\n{_doc(value)}"
            elif inspect.isfunction(value):
                yield _function(f"{own}.{member}", value, 3)


def _plain(kind: object) -> str:
    return str(kind).replace("'", "")


def _function(name: str, of: Callable[..., Any], level: int) -> str:
    prefix = "await " if inspect.iscoroutinefunction(of) else ""
    signature = _signature(of)
    return f"{'#' * level} {name}\n\n~~~python\n{prefix}{name}{signature}\n~~~\n\n{_doc(of)}"


def _signature(of: Callable[..., Any]) -> str:
    """One argument a line when it is long."""
    made = inspect.signature(of)
    kept = [one for one in made.parameters.values() if one.name != "self"]
    text = re.sub(r"utuple\.[a-z_.]+\.", "", str(made.replace(parameters=kept)).replace("'", ""))
    if len(text) <= 90:
        return text
    inner, _, rest = text[1:].rpartition(")")
    depth, parts, part = 0, list[str](), ""
    for letter in inner:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += letter
    lines = "".join(f"    {one},\n" for one in [*parts, part.strip()])
    return f"(\n{lines}){rest}"


def _doc(of: object) -> str:
    return inspect.getdoc(of) or ""


# --- the command line ------------------------------------------------------------------------------


def cli() -> str:

    import typer
    from typer.main import get_command

    from utuple.cli.app import app

    root = get_command(app)
    said = [f"# The command line\n\n{_WORDS['cli']}. {MADE} `utuple COMMAND --help` says the same."]
    said += _command(root, typer.Context(root, info_name="utuple"))
    return "\n\n".join(said)


def _command(command: Any, context: Any) -> Iterator[str]:
    name = context.command_path
    level = "##" if name.count(" ") <= 1 else "###"
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"{level} {name}\n\n~~~text\n{name} {usage}\n~~~\n\n{inspect.cleandoc(command.help or '')}"
    options = []
    for one in command.params:
        shown = one.get_help_record(context)
        if shown is None or "--help" in shown[0] or "completion" in shown[0]:
            continue
        options.append((f"`{_cell(shown[0])}`", re.sub(r"\s+", " ", shown[1])))
    if options:
        yield table(["option", ""], options)
    if hasattr(command, "commands"):
        for sub in command.list_commands(context):
            found = command.get_command(context, sub)
            if not found.hidden:
                yield from _command(found, type(context)(found, parent=context, info_name=sub))


# --- the HTTP door ---------------------------------------------------------------------------------


def http() -> str:
    from utuple.doors.http.openapi import document

    whole = document()
    said = [f"# HTTP\n\n{_WORDS['http']}. {MADE} How it is used: [Doors](../doors.md)."]
    for path, methods in whole["paths"].items():
        for method, operation in methods.items():
            said.append(f"## {method.upper()} {path}\n\n{operation['summary']}")
            asked = [
                (
                    f"`{one['name']}`",
                    one["in"],
                    "yes" if one.get("required") else "",
                    one.get("description", ""),
                )
                for one in operation.get("parameters", ())
            ]
            if asked:
                said.append(table(["parameter", "in", "required", ""], asked))
            for kind, body in operation.get("requestBody", {}).get("content", {}).items():
                said.append(f"Body: `{kind}`{_schema(body.get('schema', {}))}")
            answers = [
                (
                    code,
                    ", ".join(f"`{kind}`" for kind in one.get("content", {})),
                    one.get("description", ""),
                )
                for code, one in sorted(operation["responses"].items())
            ]
            said.append(table(["answer", "as", ""], answers))
    said.append("# Objects")
    for name, schema in whole["components"]["schemas"].items():
        said.append(f"## {name}\n\n{schema.get('description', '')}")
        required = schema.get("required", ())
        rows = [
            (f"`{field}`", _kind(of), "yes" if field in required else "", of.get("description", ""))
            for field, of in schema.get("properties", {}).items()
        ]
        if rows:
            said.append(table(["field", "is", "required", ""], rows))
    return "\n\n".join(said)


def _schema(schema: dict[str, Any]) -> str:
    name = schema.get("$ref", "").rpartition("/")[2]
    return f", a [{name}](#{name.lower()})" if name else ""


def _kind(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]  # type: ignore[no-any-return]
    if "anyOf" in schema:
        return " or ".join(_kind(one) for one in schema["anyOf"])
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


# --- knobs and metrics -----------------------------------------------------------------------------


def knobs() -> str:
    from assignment_manager.config import Config as Manager
    from load_monitor.config import Config as Monitor
    from load_monitor.elastic.policy import ElasticPolicy
    from load_monitor.planning.policy import Policy
    from sca_server.config import Config as Sca
    from utuple.client.config import Config as Client
    from utuple.doors.http.config import Limits as HttpLimits
    from utuple.doors.mqtt.config import Limits as MqttLimits
    from utuple.server.config import ServerConfig

    parts: tuple[tuple[str, str, type], ...] = (
        (
            "When load moves",
            "`utuple up --policy KEY=VALUE`, or `--KEY` of `python -m load_monitor`.",
            Policy,
        ),
        (
            "When servers come and go",
            "`[policy]` of `elastic.toml` ([Elasticity](../elasticity.md)).",
            ElasticPolicy,
        ),
        ("The load monitor", "Options of `python -m load_monitor`.", Monitor),
        ("A uTupleServer", "Options of `python -m utuple.server`.", ServerConfig),
        ("An sCA server", "Options of `python -m sca_server`.", Sca),
        ("An assignment manager", "Options of `python -m assignment_manager`.", Manager),
        ("The client", "`timeout_s=` of `connect`; the others are its own.", Client),
        ("The HTTP door", "Options of `python -m utuple.doors.http`.", HttpLimits),
        ("The MQTT door", "Options of `python -m utuple.doors.mqtt`.", MqttLimits),
    )
    said = [f"# Knobs\n\n{_WORDS['knobs']}. {MADE}"]
    for title, where, config in parts:
        reasons = reasons_of(config)
        rows = [(f"`{one.name}`", _default(one), reasons[one.name]) for one in fields(config)]
        said += [f"## {title}\n\n{where}", table(["knob", "default", ""], rows)]
    return "\n\n".join(said)


def _default(field: Any) -> str:
    if field.default is MISSING:
        return "" if field.default_factory is MISSING else "(made)"
    value = field.default
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"`{value}`" if isinstance(value, bool | str) and value != "" else ""
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def metrics() -> str:
    from utuple.admin.metrics import families_of
    from utuple.admin.snapshot import Snapshot
    from utuple.doors.http.operators.looking import OWN_METRICS

    nobody = Snapshot(True, [], [], [], [], [], [])
    rows = [
        (
            f"`{one.name}{'_total' if one.type == 'counter' else ''}`",
            ", ".join(f"`{label}`" for label in getattr(one, "_labelnames", ())),
            one.type,
            one.documentation,
        )
        for one in families_of(nobody)
    ]
    rows += [(f"`{name}`", "", "gauge", what) for name, what in OWN_METRICS.items()]
    text = f"# Metrics\n\n{_WORDS['metrics']}. {MADE} `utuple_http_…` and `utuple_well` are the HTTP door's own."
    return f"{text}\n\n{table(['metric', 'labels', 'kind', ''], rows)}"
