"""The walks as a page of Markdown."""

from __future__ import annotations

from tests.walks.trace import Walk, files

_HEAD = """# Walks

Four ways through the house, traced in a real cluster that runs in one process. Files are in the order in which they are first entered; behind each function stands how often it was called,
and a coroutine counts each time it goes on. What also runs in an idle cluster is left out.
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
        parts.append("")
    return "\n".join(parts)
