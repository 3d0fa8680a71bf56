"""Logs: one fixed phrase plus fields, one line each, on standard error.

2026-11-16T01:02:03.456Z INFO  server-1 store opened seq=42 templates=7
"""

from __future__ import annotations

import logging
import sys
import time

from utuple.runtime.log_file import LogFile

_HANDED_DOWN = ("utuple", "assignment_manager", "sca_server", "load_monitor", "asyncio")
"""asyncio: it tells of tasks that failed (`utuple.runtime.tasks`)."""


logging.getLogger("utuple").addHandler(logging.NullHandler())
"""A library is silent unless its user asks: without this, warnings go to standard error."""


class _Line(logging.Formatter):
    def __init__(self, program: str) -> None:
        super().__init__()
        self._program = program

    def format(self, record: logging.LogRecord) -> str:
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        head = f"{at}.{int(record.msecs):03d}Z {record.levelname:<7} {self._program}"
        line = f"{head} {record.getMessage()}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class Log:
    """`log.info("store opened", seq=42)`: the phrase is fixed, so it can be searched for."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def info(self, phrase: str, **fields: object) -> None:
        self._logger.info(_line(phrase, fields))

    def warning(self, phrase: str, **fields: object) -> None:
        self._logger.warning(_line(phrase, fields))

    def error(self, phrase: str, **fields: object) -> None:
        self._logger.error(_line(phrase, fields))

    def exception(self, phrase: str, **fields: object) -> None:
        """With the traceback of the exception being handled: for bugs."""
        self._logger.exception(_line(phrase, fields))


def _line(phrase: str, fields: dict[str, object]) -> str:
    said = " ".join(f"{name}={_value(value)}" for name, value in fields.items())
    return f"{phrase} {said}" if said else phrase


def _value(value: object) -> str:
    text = str(value).replace("\n", " ⏎ ")
    return repr(text) if " " in text or not text else text


class _ToFile(logging.Handler):
    def __init__(self, file: LogFile) -> None:
        super().__init__()
        self._file = file

    def emit(self, record: logging.LogRecord) -> None:
        self._file.write(self.format(record))


def log_to_stderr(program: str, file: LogFile | None = None, level: int = logging.INFO) -> None:
    """With `file`, which has taken this program's output."""
    handler = logging.StreamHandler(sys.stderr) if file is None else _ToFile(file)
    handler.setFormatter(_Line(program))
    for name in _HANDED_DOWN:
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level)
        logger.propagate = False
