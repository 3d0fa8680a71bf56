"""The table of rights: which roles may make which call at all. Pure.

Calls that carry uTuples are open to whoever may have a grant, and judged by what they carry (`rights`). Control calls go by
role alone. A call that is not in the table may be made by nobody, and a test compares the table with the protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from utuple.security.grants import Grants
from utuple.security.identity import Identity, Role
from utuple.security.rights import ALLOWED, Verdict, valid


class Rule(NamedTuple):
    roles: frozenset[Role]
    is_judged: bool = False
    """What it carries is judged by the caller's grant, in its handler."""


_USERS = Rule(frozenset((Role.DEVICE, Role.APPLICATION, Role.OPERATOR)), is_judged=True)
_ALL = Rule(frozenset(Role))
_PROGRAMS = Rule(frozenset((Role.PROGRAM,)))
_OPERATORS = Rule(frozenset((Role.OPERATOR,)))
_CONTROL = Rule(frozenset((Role.PROGRAM, Role.OPERATOR)))

CALLS: Mapping[str, Rule] = {
    "Server/Register": _USERS,
    "Server/Registering": _USERS,
    "Server/Command": _USERS,
    "Server/Commanded": _USERS,
    "Server/Read": _USERS,
    "Server/Deliver": _USERS,
    "Server/Devices": _PROGRAMS,
    "Server/Adopt": _OPERATORS,
    "Server/Status": _CONTROL,
    "Server/Move": _CONTROL,
    "Server/Leave": _OPERATORS,
    "Server/ForgetReader": _OPERATORS,
    "Server/Parked": _OPERATORS,
    "Server/Learn": _PROGRAMS,
    "Server/Ready": _PROGRAMS,
    "Server/Hear": _PROGRAMS,
    "Server/Forget": _PROGRAMS,
    "Server/Vacant": _PROGRAMS,
    "Server/Ship": _PROGRAMS,
    "Server/Take": _PROGRAMS,
    "Sca/Register": _USERS,
    "Sca/Command": _USERS,
    "Sca/Deliver": _USERS,
    "Sca/Status": _CONTROL,
    "Sca/Meet": _PROGRAMS,
    "Assignment/Lookup": _ALL,
    "Assignment/Announce": _CONTROL,
    "Assignment/Gossip": _PROGRAMS,
    "Assignment/Table": _CONTROL,
    "Monitor/Status": _CONTROL,
    "Trust/Grants": _CONTROL,
    "Trust/Publish": _CONTROL,
    "Trust/Whoami": _ALL,
    "Trust/Audit": _OPERATORS,
    "Health/Check": _ALL,
    "Health/Watch": _ALL,
    "Health/List": _ALL,
    "ServerReflection/ServerReflectionInfo": _OPERATORS,
}
"""By service and call, as in utuple.proto, and gRPC's own two services (`utuple/runtime/observed.py`). `Announce` is the operator's too: whoever drains a server says that it is gone."""


def allow_call(grants: Grants, identity: Identity, method: str) -> Verdict:
    """May this identity make this call (`/package.Service/Name`)? What it carries is another question."""
    heard = valid(grants, identity)
    if not heard.is_allowed:
        return heard
    name = method.rpartition(".")[2]
    rule = CALLS.get(name)
    if rule is None:
        return Verdict(f"{name} is in no table of rights: nobody may call it")
    if identity.role in rule.roles:
        return ALLOWED
    roles = " and ".join(sorted(f"{role}s" for role in rule.roles))
    return Verdict(f"{identity} may not call {name}: it is for {roles}")
