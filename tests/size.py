"""python -m tests.size: how large the product is, package by package. `make size` prints it.

Code is what is neither blank, nor a comment, nor a docstring, nor generated from the protocol.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
PRODUCT = ("utuple", "assignment_manager", "load_monitor", "sca_server", "ops_sim")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Size:
    """One file: its lines by what they are, and how many lines of code each of its functions has."""

    path: str
    code: int
    comment: int
    blank: int
    functions: tuple[tuple[int, str], ...]

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]


def size_of(path: str, text: str) -> Size:
    tree = ast.parse(text)
    docstrings, texts = _docstring_lines(tree), _text_lines(tree)
    kinds = [
        "comment" if number in docstrings else "code" if number in texts else _kind(line)
        for number, line in enumerate(text.splitlines(), 1)
    ]
    functions = tuple(
        (kinds[item.lineno - 1 : item.end_lineno].count("code"), f"{path}:{item.name}")
        for item in ast.walk(tree)
        if isinstance(item, _FUNCTIONS)
    )
    return Size(path, kinds.count("code"), kinds.count("comment"), kinds.count("blank"), functions)


def _docstring_lines(tree: ast.Module) -> set[int]:
    lines: set[int] = set()
    for item in ast.walk(tree):
        if isinstance(item, _DOCUMENTED) and ast.get_docstring(item, clean=False) is not None:
            text = item.body[0]
            lines.update(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    return lines


def _text_lines(tree: ast.Module) -> set[int]:
    """Lines of a text that goes over several: what looks like a comment in there is none."""
    return {
        number
        for item in ast.walk(tree)
        if isinstance(item, ast.Constant) and isinstance(item.value, str)
        for number in range(item.lineno, (item.end_lineno or item.lineno) + 1)
    }


def _kind(line: str) -> str:
    stripped = line.strip()
    return "blank" if not stripped else "comment" if stripped.startswith("#") else "code"


def product() -> Iterator[Size]:
    for package in PRODUCT:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "_pb2" not in path.name:
                relative = path.relative_to(ROOT).as_posix()
                yield size_of(relative, path.read_text(encoding="utf-8"))


def page(sizes: list[Size]) -> str:
    rows = [f"{'folder':40} {'modules':>7} {'code':>7} {'comment':>7} {'blank':>7}"]
    for folder in sorted({size.folder for size in sizes}):
        rows.append(_row(folder, [size for size in sizes if size.folder == folder]))
    rows.append(_row("all", sizes))
    functions = [function for size in sizes for function in size.functions]
    files = [(size.code, size.path) for size in sizes if size.code]
    for name, measured in (("file", files), ("function", functions)):
        most, where = max(measured)
        middle = median(lines for lines, _ in measured)
        rows.append(f"{name}: {middle:g} lines of code at the median, {most} at most ({where})")
    return "\n".join(rows)


def _row(name: str, sizes: list[Size]) -> str:
    modules = sum(not size.path.endswith("__init__.py") for size in sizes)
    code, comment, blank = (
        sum(getattr(size, kind) for size in sizes) for kind in ("code", "comment", "blank")
    )
    return f"{name:40} {modules:>7} {code:>7} {comment:>7} {blank:>7}"


if __name__ == "__main__":
    sys.stdout.write(page(list(product())) + "\n")
