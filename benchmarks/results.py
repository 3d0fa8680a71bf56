"""Results of benchmarks as files: one JSON object each, named after the benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from utuple.errors import InvalidInput

Result = Mapping[str, Any]
"""What `utuple bench NAME --json` prints."""


def write_result(folder: Path, result: Result) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result['benchmark']}.json"
    path.write_bytes(orjson.dumps(result, option=orjson.OPT_INDENT_2) + b"\n")
    return path


def read_results(folder: Path, names: Sequence[str]) -> list[Result]:
    """Those that are there, in this order."""
    if not folder.is_dir():
        raise InvalidInput("--from", str(folder), "is no folder; `make bench` makes one")
    paths = [folder / f"{name}.json" for name in names]
    return [_checked(path) for path in paths if path.exists()]


def _checked(path: Path) -> Result:
    try:
        result = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError as error:
        raise InvalidInput("result", str(path), f"is not JSON ({error})") from None
    missing = {"benchmark", "target", "met", "runs", "spread", "machine"}.difference(result)
    if missing:
        raise InvalidInput("result", str(path), f"lacks {', '.join(sorted(missing))}")
    checked: Result = result
    return checked
