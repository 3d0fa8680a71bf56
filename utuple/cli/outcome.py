"""How a command ends: errors a person can mend become one line and exit code 1, Ctrl-C is quiet."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import ParamSpec

import typer

from utuple.errors import UTupleError

FAILED = 1
INTERRUPTED = 130

Arguments = ParamSpec("Arguments")


def told(command: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """The command, with its errors told to the person at the terminal."""

    @functools.wraps(command)
    def telling(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        from utuple.runtime.postgresql.unavailable import PostgresUnavailable

        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            _leave_stdout()
        except (UTupleError, PostgresUnavailable) as error:
            print(f"utuple: {error}", file=sys.stderr)
            raise typer.Exit(FAILED) from None

    return telling


def _leave_stdout() -> None:
    """Whoever read us has gone, which is no failure; Python would complain while closing stdout."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
