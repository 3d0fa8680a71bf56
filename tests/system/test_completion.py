"""Shell completion as a user meets it: installed by the command, then the tab key in a real bash on a terminal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import until

pytestmark = [pytest.mark.slow]
BIN = Path(sys.executable).parent


class Terminal:
    """A bash that believes somebody sits before it."""

    def __init__(self, home: Path) -> None:
        environment = {
            "HOME": str(home),
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "TERM": "dumb",
            "PS1": "ready$ ",
        }
        self.pid, self._end = pty.fork()
        if self.pid == 0:
            os.execve("/bin/bash", ["bash", "--noprofile", "-i"], environment)
        self.seen = ""

    def type(self, text: str) -> None:
        os.write(self._end, text.encode())

    def says(self, words: str) -> bool:
        while select.select([self._end], [], [], 0)[0]:
            try:
                self.seen += os.read(self._end, 65_536).decode(errors="replace")
            except OSError:
                break
        return words in self.seen

    def close(self) -> None:
        os.close(self._end)
        os.waitpid(self.pid, 0)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    install = [str(BIN / "utuple"), "--install-completion", "bash"]
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }
    done = subprocess.run(
        install, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    made = Terminal(tmp_path)
    try:
        yield made
    finally:
        made.close()


def test_the_tab_key_completes_commands_and_options(terminal: Terminal) -> None:
    terminal.type("utuple whoa\t")
    until(lambda: terminal.says("utuple whoami "), f"a command is completed: {terminal.seen!r}")
    terminal.type("\x15utuple server dr\t")
    until(lambda: terminal.says("utuple server drain "), "a command of a group, too")
    terminal.type("\x15utuple read --newe\t")
    until(lambda: terminal.says("utuple read --newest"), "and an option")
