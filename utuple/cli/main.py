"""The console script `utuple`."""

from __future__ import annotations

import os
import sys


def run() -> None:
    # We start programs (fork, then exec), also while gRPC is at work; its own fork handlers, made for
    # forking without exec, write into the child and can end it before it has begun.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    try:
        from utuple.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        # The bare install is for sensor programs, and has no command line.
        sys.exit(f"utuple: the command line needs {error.name}: pip install 'utuple[server]'")
    app()


if __name__ == "__main__":
    run()
