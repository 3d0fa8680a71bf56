"""The folder of a cluster's authority: its key, the grants as they were last signed, and the audit of what was granted.

    authority.pem     the certificate and key that sign                                       mode 0600
    authorities.pem   certificates of all authorities that hold: two while one is replaced
    vouching.pem      what the one being replaced says of the one that signs
    grants.signed     the document with the highest number
    audit.jsonl       who granted, revoked and renewed

Whoever has this folder decides who belongs to the cluster. No program needs it: programs have their own credentials.
"""

from __future__ import annotations

import fcntl
import getpass
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from utuple.errors import InvalidInput, UTupleError
from utuple.security.audit import entry_of
from utuple.security.audit import verified as verified_chain
from utuple.security.authority import DAYS_MAX, Authority, check_days, new_authority
from utuple.security.chain_file import append, whole_lines
from utuple.security.credentials import Credentials, pem_blocks, replace_private
from utuple.security.grants import Grant, Grants, decode
from utuple.security.identity import Identity, Role
from utuple.security.own import Held
from utuple.security.signed import Signed, signed, signed_from, verified

PROGRAM_DAYS = 365.0
"""Programs' credentials are renewed in time by whoever keeps the authority (`utuple up`)."""


OPERATOR = "operator"
"""Of the cluster, without a grant."""


class NoAuthority(UTupleError):
    """There is none in this folder; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Known:
    """What the folder holds."""

    authority: Authority
    authorities_pem: tuple[str, ...]
    vouching_pem: tuple[str, ...]
    grants: Grants
    signed: Signed


class AuthorityFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._own = path / "authority.pem"
        self._all = path / "authorities.pem"
        self._vouching = path / "vouching.pem"
        self._grants = path / "grants.signed"
        self.audit = path / "audit.jsonl"

    @property
    def exists(self) -> bool:
        return self._own.exists()

    def create(self, cluster: str) -> Known:
        """A new cluster's, with grants that grant nothing."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self.changing():
            if self.exists:
                raise InvalidInput("authority", self.path.name, "is there already")
            authority = new_authority(cluster, _now_us())
            certificate = authority.certificate_pem.decode()
            document = Grants(cluster, 1, authorities=(certificate,))
            replace_private(self._all, certificate)
            replace_private(self._grants, signed(document, authority).to_bytes().decode())
            replace_private(self._own, certificate + authority.key_pem.decode())
            self._note("create", {"cluster": cluster, "number": 1})
        return self.read()

    def read(self) -> Known:
        try:
            own = pem_blocks(self._own.read_text())
            authorities = pem_blocks(self._all.read_text())
            vouching = self._vouching.read_text() if self._vouching.exists() else ""
            given = signed_from(self._grants.read_bytes())
        except OSError as error:
            raise _missing(self.path, error.strerror or "it cannot be read") from None
        certificate, key = own["CERTIFICATE"][0], own["PRIVATE KEY"][0]
        cluster = decode(given.content).cluster
        authority = Authority(cluster, certificate.encode(), key.encode())
        try:
            grants = verified(given, cluster, authorities["CERTIFICATE"])
        except InvalidInput as error:
            raise InvalidInput(str(self._grants), error.value, error.rule) from None
        vouching_pem = tuple(pem_blocks(vouching)["CERTIFICATE"])
        return Known(authority, tuple(authorities["CERTIFICATE"]), vouching_pem, grants, given)

    def is_current(self, shown: Held) -> bool:
        """Issued by the authority that signs now, trusting all that hold, and not revoked since?"""
        known, credentials = self.read(), shown.credentials
        void_us = known.grants.void_before_us.get(shown.identity.name, 0)
        return (
            known.authority.has_issued(credentials.certificate_pem)
            and set(known.authorities_pem) == set(credentials.authorities_pem)
            and shown.identity.issued_us >= void_us
        )

    # --- what is decided here --------------------------------------------------------------------

    def grant(
        self,
        grant: Grant,
        days: float,
        at_least: Signed | None = None,
        hosts: Sequence[str] = (),
    ) -> tuple[Credentials, Signed]:
        """Credentials for it, and the grants in which it may do this and nothing else."""
        check_days(days)
        document = self.allow(grant, at_least)
        return self.issue(grant.role, grant.name, days, hosts), document

    def allow(self, grant: Grant, at_least: Signed | None = None) -> Signed:
        with self.changing():
            known = self._newest(at_least)
            return self._publish(known, known.grants.granted(grant), "grant", {"name": grant.name})

    def revoke(self, name: str, at_least: Signed | None = None) -> Signed:
        """Whatever was issued to this name until now is void."""
        with self.changing():
            known = self._newest(at_least)
            named = {*known.grants.grants, *known.grants.void_before_us}
            if name not in named and name not in self._issued():
                have = ", ".join(sorted(known.grants.grants)) or "nobody"
                rule = f"was issued nothing by this authority; these have a grant: {have}"
                raise InvalidInput("name", name, rule)
            revoked = known.grants.revoked(name, self._instant_us(known))
            return self._publish(known, revoked, "revoke", {"name": name})

    def issue(
        self, role: Role, name: str, days: float = PROGRAM_DAYS, hosts: Sequence[str] = ()
    ) -> Credentials:
        """Credentials of this name. Of a program and of an operator the role is enough; others need a grant too."""
        with self.changing():
            known = self.read()
            identity = Identity(known.authority.cluster, role, name)
            credentials = self._issue(known, identity, days, hosts)
            self._note("issue", {"name": name, "role": role.value})
            return credentials

    def issue_for_token(self, name: str, life_s: float) -> Credentials:
        """Of somebody who was granted something, or of an operator, to sign one token with: nobody keeps the key."""
        with self.changing():
            known = self.read()
            grant = known.grants.grants.get(name)
            if grant is None and name != OPERATOR:
                have = ", ".join(sorted(known.grants.grants)) or "nobody"
                raise InvalidInput("name", name, f"has no grant; these have: {have}")
            role = Role.OPERATOR if grant is None else grant.role
            if role is Role.DOOR:
                raise InvalidInput("name", name, "is a door: nobody speaks for it")
            identity = Identity(known.authority.cluster, role, name)
            credentials = self._issue(known, identity, min(life_s / 86_400, DAYS_MAX))
            self._note("token", {"name": name, "role": role.value, "life_s": life_s})
            return credentials

    def replace_authority(self, at_least: Signed | None = None) -> Signed:
        """A new authority signs from now on; the old one holds too, until it is retired."""
        with self.changing():
            known = self._newest(at_least)
            fresh = new_authority(
                known.authority.cluster, _now_us(), after_us=self._instant_us(known)
            )
            authorities = (*known.authorities_pem, fresh.certificate_pem.decode())
            document = signed(known.grants.authorised_by(authorities), known.authority)
            replace_private(self._vouching, known.authority.vouch_for(fresh))
            replace_private(self._all, "".join(authorities))
            replace_private(self._grants, document.to_bytes().decode())
            replace_private(self._own, fresh.certificate_pem.decode() + fresh.key_pem.decode())
            self._note("replace authority", {"number": known.grants.number + 1})
            return document

    def retire_authorities(self, at_least: Signed | None = None) -> Signed:
        """Only the one that signs holds: credentials of older ones are not accepted any longer."""
        with self.changing():
            known = self._newest(at_least)
            own = known.authority.certificate_pem.decode()
            document = signed(known.grants.authorised_by((own,)), known.authority)
            replace_private(self._grants, document.to_bytes().decode())
            replace_private(self._all, own)
            self._vouching.unlink(missing_ok=True)
            self._note("retire authorities", {"number": known.grants.number + 1})
            return document

    def _issue(
        self, known: Known, identity: Identity, days: float, hosts: Sequence[str] = ()
    ) -> Credentials:
        after_us = self._instant_us(known)
        issued = known.authority.issue(identity, days, hosts, now_us=_now_us(), after_us=after_us)
        return issued.trusting(*known.authorities_pem).vouched_for(*known.vouching_pem)

    def _newest(self, at_least: Signed | None) -> Known:
        """The folder's own, or what the cluster has if that is newer: two operators may have a copy each. Of the same number it is what the
        cluster has: then both have decided at a time, and no revocation is lost by that."""
        known = self.read()
        if at_least is None:
            return known
        theirs = verified(at_least, known.authority.cluster, known.authorities_pem)
        if theirs.number < known.grants.number or theirs == known.grants:
            return known
        void = {**theirs.void_before_us}
        for name, instant_us in known.grants.void_before_us.items():
            void[name] = max(instant_us, void.get(name, 0))
        return replace(known, grants=replace(theirs, void_before_us=void), signed=at_least)

    def _publish(self, known: Known, grants: Grants, what: str, about: dict[str, object]) -> Signed:
        document = signed(grants, known.authority)
        replace_private(self._grants, document.to_bytes().decode())
        self._note(what, {**about, "number": grants.number})
        return document

    # --- files -----------------------------------------------------------------------------------

    @contextmanager
    def changing(self) -> Iterator[None]:
        """One at a time."""
        if not self.path.is_dir():
            raise _missing(self.path, "there is no such folder")
        with os.fdopen(os.open(self.path / "lock", os.O_WRONLY | os.O_CREAT, 0o600), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _note(self, what: str, about: dict[str, object]) -> None:
        entry = verified_chain(self._lines()).next(self._instant_us(), _person(), what, about)
        append(self.audit, entry.line())

    def _lines(self) -> list[bytes]:
        return whole_lines(self.audit) if self.audit.exists() else []

    def _issued(self) -> set[object]:
        """Names, in whatever role."""
        return {
            entry.about.get("name")
            for entry in map(entry_of, self._lines())
            if entry.what in ("issue", "grant", "token")
        }

    def _instant_us(self, known: Known | None = None) -> int:
        """Now, and after whatever was decided before: whether a certificate was issued before a revocation must not hang on a clock that
        was set back meanwhile."""
        lines = self._lines()
        decided = entry_of(lines[-1]).time_us if lines else 0
        void = known.grants.void_before_us.values() if known is not None else ()
        return max(_now_us(), 1 + decided, *(1 + instant_us for instant_us in void))


def _missing(path: Path, why: str) -> NoAuthority:
    return NoAuthority(
        f"no authority in {path} ({why}): say where it is with --authority DIR or --data DIR; `utuple up --secure` makes one"
    )


def _person() -> str:
    """Who has the folder open: the user of this machine."""
    with suppress(KeyError, OSError):
        return getpass.getuser()
    return str(os.getuid())


def _now_us() -> int:
    return time.time_ns() // 1_000
