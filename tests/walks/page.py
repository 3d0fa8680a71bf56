"""The walks as a page of Markdown."""

from __future__ import annotations

from tests.walks.trace import Walk, files, values

_HEAD = """# Walks

Four ways through the house, traced in a real cluster that runs in one process: `make walk > docs/walks.md`. Files are in the order in
which they are first entered; behind each function stands how often it was called, and a coroutine counts each time it goes on. What
also runs in an idle cluster is left out. The words a way is told in (uTuples, conditions, lines; clock, log, tasks) are listed apart.
`tests/system/test_walks.py` notices when a way becomes longer.
"""


def page(walks: dict[str, Walk]) -> str:
    parts = [_HEAD]
    for title, walk in walks.items():
        calls = sum(walk.values())
        parts.append(f"## {title}: {len(files(walk))} files\n")
        parts.append(f"{len(walk)} functions, {calls} calls.\n")
        for number, file in enumerate(files(walk), 1):
            own = [f"{name} {count}" for (at, name), count in walk.items() if at == file]
            parts.append(f"{number}. `{file}`: {', '.join(own)}")
        words = ", ".join(f"`{file}`" for file in values(walk))
        parts.append(f"\nAnd {len(values(walk))} files of values: {words}.\n")
    return "\n".join(parts)
