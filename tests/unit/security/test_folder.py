"""The authority's folder: what was decided counts in its order, whatever the clock says and whoever else decides at a time."""

from __future__ import annotations

import shutil
from pathlib import Path
from threading import Thread

import pytest

from utuple.errors import InvalidInput
from utuple.security import folder as folders
from utuple.security.audit import verified
from utuple.security.credentials import Credentials
from utuple.security.folder import AuthorityFolder
from utuple.security.grants import Action, Grant, Grants, family_pattern
from utuple.security.identity import Identity, Role
from utuple.security.own import held
from utuple.security.rights import valid

LOAD = {Action.EMIT: (family_pattern("truck/load"),)}
TRUCK, OTHER = Grant("truck-17", Role.DEVICE, LOAD), Grant("truck-18", Role.DEVICE, LOAD)
DAY_US = 86_400 * 1_000_000


@pytest.fixture
def folder(tmp_path: Path) -> AuthorityFolder:
    made = AuthorityFolder(tmp_path / "authority")
    made.create("here")
    return made


def copied(folder: AuthorityFolder) -> AuthorityFolder:
    """As another operator has it."""
    path = folder.path.with_name("copy")
    shutil.copytree(folder.path, path)
    return AuthorityFolder(path)


def whose(credentials: Credentials) -> Identity:
    return held(credentials, "some.creds").identity


def is_heard(grants: Grants, credentials: Credentials) -> bool:
    return valid(grants, whose(credentials)).is_allowed


def test_revoked_and_granted_in_turns_while_the_clock_is_set_back(
    folder: AuthorityFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_us, issued = folders._now_us(), list[Credentials]()
    for days in (1, 0, -1, -2):
        monkeypatch.setattr(folders, "_now_us", lambda days=days: real_us + days * DAY_US)
        credentials, _ = folder.grant(TRUCK, 30)
        grants = folder.read().grants
        assert is_heard(grants, credentials)
        assert not any(is_heard(grants, one) for one in issued)
        issued.append(credentials)
        folder.revoke("truck-17")
        assert not is_heard(folder.read().grants, credentials)
    assert held(issued[1], "some.creds").begins_us <= real_us  # not when the wrong clock said


@pytest.mark.parametrize("role", [Role.PROGRAM, Role.OPERATOR])
def test_programs_and_operators_are_revoked_too(folder: AuthorityFolder, role: Role) -> None:
    stolen = folder.issue(role, "server-2")
    folder.revoke("server-2")
    assert not is_heard(folder.read().grants, stolen)
    assert is_heard(folder.read().grants, folder.issue(role, "server-2"))


def test_a_name_that_nothing_was_issued_to_is_not_revoked(folder: AuthorityFolder) -> None:
    with pytest.raises(InvalidInput, match="'truck-71' is refused: was issued nothing"):
        folder.revoke("truck-71")


def test_of_two_operators_who_decide_at_a_time_the_second_decides_again(
    folder: AuthorityFolder,
) -> None:
    folder.grant(TRUCK, 1)
    copy = copied(folder)
    first, second = folder.allow(OTHER), copy.revoke("truck-17")
    assert first != second
    assert folder.read().grants.number == copy.read().grants.number
    copy.revoke("truck-17", first)
    grants = copy.read().grants
    assert set(grants.grants) == {"truck-18"}
    assert grants.number == folder.read().grants.number + 1


def test_a_revocation_is_not_lost_to_who_decided_at_the_same_time(folder: AuthorityFolder) -> None:
    stolen, _ = folder.grant(TRUCK, 1)
    copy = copied(folder)
    copy.revoke("truck-17")
    copy.allow(Grant("dispatch", Role.APPLICATION), folder.allow(OTHER))
    assert not is_heard(copy.read().grants, stolen)


def test_many_who_issue_at_a_time_leave_one_chain(folder: AuthorityFolder) -> None:
    def issue(number: int) -> None:
        AuthorityFolder(folder.path).issue(Role.PROGRAM, f"server-{number}")

    threads = [Thread(target=issue, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert verified(folder.audit.read_bytes().splitlines()).number == 9
