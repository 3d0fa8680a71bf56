"""The one error of the embedded PostgreSQL: what happened, what its log says, what to do next."""

from __future__ import annotations

from pathlib import Path

_LOG_LINES_SHOWN = 15
# The end of a log is read, not the whole: it may have grown for months.
_LOG_TAIL_BYTES = 16 * 1024


class PostgresUnavailable(Exception):
    """The embedded PostgreSQL cannot be used; the text is for the person at the terminal."""

    def __init__(self, what: str, next_step: str, *, log: Path | None = None) -> None:
        self.what = what
        self.next_step = next_step
        tail = last_lines(log) if log is not None else ""
        shown = f"\nThe last lines of {log}:\n{tail}" if tail else ""
        super().__init__(f"{what}{shown}\nWhat to do: {next_step}")


def last_lines(log: Path) -> str:
    """The end of a log, indented; empty if there is none (an error about an error helps nobody)."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _LOG_TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(f"  {line}" for line in text.splitlines()[-_LOG_LINES_SHOWN:])
