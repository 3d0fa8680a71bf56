"""The console script `utuple`."""

from __future__ import annotations

import sys


def run() -> None:
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
