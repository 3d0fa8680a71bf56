"""How a command ends: errors a person can mend become one line and exit code 1, Ctrl-C is quiet."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from typing import Any, ParamSpec

import typer

from utuple.cli.options import Credentials
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
            if _CREDENTIALS in kwargs:
                _act_as(kwargs.pop(_CREDENTIALS))
            command(*args, **kwargs)
            sys.stdout.flush()
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            _leave_stdout()
        except (UTupleError, PostgresUnavailable) as error:
            print(f"utuple: {error}", file=sys.stderr)
            raise typer.Exit(FAILED) from None

    _add_credentials(command, telling)
    return telling


_CREDENTIALS = "credentials"


def _add_credentials(command: Callable[..., None], telling: Any) -> None:
    """Whatever talks to a cluster, which `--at` says, may say who it is."""
    signature = inspect.signature(command, eval_str=True)
    if "at" not in signature.parameters:
        return
    parameter = inspect.Parameter(
        _CREDENTIALS, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Credentials
    )
    parameters = [*signature.parameters.values(), parameter]
    telling.__signature__ = signature.replace(parameters=parameters)
    telling.__annotations__ = {**command.__annotations__, _CREDENTIALS: Credentials}


def _act_as(path: object) -> None:
    if path is None:
        return
    from utuple.runtime.trust.refusal import check_not_ended
    from utuple.security.own import OWN, OwnCredentials

    own = OwnCredentials(str(path))
    check_not_ended(own)
    OWN.set(own)


def _leave_stdout() -> None:
    """Whoever read us has gone, which is no failure; Python would complain while closing stdout."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
