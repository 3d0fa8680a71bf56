"""The file of an audit's chain on a full disk, and after a crash."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest

from utuple.runtime.trust.auditing import Auditor
from utuple.security.audit import verified
from utuple.security.chain_file import append


@contextmanager
def room_for(bytes_: int) -> Iterator[None]:
    """No file of this process grows beyond that."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def test_a_line_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "x.audit"
    append(path, b"first\n")
    with room_for(10), pytest.raises(OSError, match="File too large"):
        append(path, b"second\n")
    assert path.read_bytes() == b"first\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_was_decided_on_a_full_disk_is_shown_and_written_when_there_is_room(
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.audit"
    auditor = Auditor(path)
    auditor.note("me", "move", {"name": "a"})
    with room_for(path.stat().st_size + 20):
        auditor.note("me", "drain", {"name": "b"})
        for _ in range(3):
            auditor.refused("you", "Read", "NotAllowed")
            auditor.flush()
        shown = auditor.after(0)
        assert [orjson.loads(line)["what"] for line in shown] == ["move", "drain"]
        assert verified(shown) == auditor.head
        assert verified(path.read_bytes().splitlines()).number == 1
    auditor.flush()
    whats = [orjson.loads(line)["what"] for line in path.read_bytes().splitlines()]
    assert whats == ["move", "drain", "refused"]
    assert orjson.loads(auditor.after(2)[0])["about"] == {"Read: NotAllowed": 3}
    assert verified(path.read_bytes().splitlines()) == auditor.head == Auditor(path).head


def test_what_a_crash_left_of_a_line_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "x.audit"
    before = Auditor(path)
    before.note("me", "move", {"name": "a"})
    whole = before.head
    before.note("me", "move", {"name": "b"})
    os.truncate(path, path.stat().st_size - 5)
    after = Auditor(path)
    assert after.head == whole
    after.note("me", "move", {"name": "c"})
    assert verified(path.read_bytes().splitlines()) == after.head
    assert [one.name for one in tmp_path.iterdir()] == ["x.audit"]
