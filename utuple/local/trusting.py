"""A secured cluster on this machine: its authority, and the credentials of the operator and of every program, in its folder.

authority/           who belongs (`utuple.security.folder`)
credentials/         NAME.creds of each program; beside them the grants and the audit it keeps
operator.creds       for whoever runs the cluster
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from pathlib import Path

from utuple.errors import UTupleError
from utuple.local.layout import DOORS, HOST, Program
from utuple.local.layout import Role as ProgramRole
from utuple.security.credentials import Credentials, read_credentials, write_credentials
from utuple.security.folder import OPERATOR, PROGRAM_DAYS, AuthorityFolder
from utuple.security.grants import Action, FamilyPattern, Grant
from utuple.security.identity import Role
from utuple.security.own import held

RENEW_BEFORE_US = 30 * 86_400 * 1_000_000
"""Credentials of programs are renewed so long before they end; those of people are advised of."""


_OF_DOORS = tuple(FamilyPattern("mqtt", kind) for kind in ("session", "share", "family"))
OWN_FAMILIES = {Action.EMIT: _OF_DOORS, Action.WATCH: _OF_DOORS}
"""In which MQTT doors remember sessions, groups and families, each for all of them. Messages are their clients' own."""


class Trust:
    def __init__(self, folder: Path) -> None:
        self.authority = AuthorityFolder(folder / "authority")
        self.operator = folder / f"{OPERATOR}.creds"
        self._credentials = folder / "credentials"

    def credentials_of(self, program: str) -> Path:
        return self._credentials / f"{program}.creds"

    def prepare(self, programs: Iterable[Program], now_us: int) -> list[str]:
        """An authority, and credentials for whoever has none, or none that hold for long. Whose were made."""
        if not self.authority.exists:
            self.authority.create(f"utuple-{secrets.token_hex(3)}")
        self._credentials.mkdir(mode=0o700, exist_ok=True)
        made = []
        if not self._holds(self.operator, now_us):
            write_credentials(self.operator, self.authority.issue(Role.OPERATOR, OPERATOR))
            made.append(OPERATOR)
        for program in programs:
            path = self.credentials_of(program.name)
            if not self._holds(path, now_us) and not self._is_out(program):
                write_credentials(path, self._issued(program))
                made.append(program.name)
        return made

    def _is_out(self, program: Program) -> bool:
        """A door that was revoked, and not granted again."""
        known = self.authority.read().grants
        return (
            program.role in DOORS
            and program.name in known.void_before_us
            and program.name not in known.grants
        )

    def _issued(self, program: Program) -> Credentials:
        """A door needs a grant as well, to be a door at all: it is made once, and a door that was revoked stays so."""
        hosts = (HOST, "localhost")
        if program.role not in DOORS:
            return self.authority.issue(Role.PROGRAM, program.name, hosts=hosts)
        if program.name in self.authority.read().grants.grants:
            return self.authority.issue(Role.DOOR, program.name, hosts=hosts)
        own = OWN_FAMILIES if program.role is ProgramRole.MQTT else {}
        grant = Grant(program.name, Role.DOOR, own)
        return self.authority.grant(grant, PROGRAM_DAYS, hosts=hosts)[0]

    def _holds(self, path: Path, now_us: int) -> bool:
        """For long, issued by the authority that signs now, and not revoked since."""
        if not path.exists():
            return False
        try:
            known = held(read_credentials(path), path.name)
        except UTupleError:
            return False
        return known.until_us - now_us > RENEW_BEFORE_US and self.authority.is_current(known)
