"""The table of rights: which roles may make which call at all. Pure.

Calls that carry uTuples are open to whoever may have a grant, and judged by what they carry (`rights`). Control calls go by
role alone. A call that is not in the table may be made by nobody, and a test compares the table with the protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from utuple.security.grants import Grants
from utuple.security.identity import Identity, Role
from utuple.security.rights import ALLOWED, Verdict, valid


class Rule(NamedTuple):
    roles: frozenset[Role]
    is_judged: bool = False
    """What it carries is judged by the caller's grant, in its handler."""


_USERS = Rule(frozenset((Role.DEVICE, Role.APPLICATION, Role.OPERATOR, Role.DOOR)), is_judged=True)
_ALL = Rule(frozenset(Role))
_PROGRAMS = Rule(frozenset((Role.PROGRAM,)))
_OPERATORS = Rule(frozenset((Role.OPERATOR,)))
_CONTROL = Rule(frozenset((Role.PROGRAM, Role.OPERATOR)))
_GRANTS = Rule(frozenset((Role.PROGRAM, Role.OPERATOR, Role.DOOR)))

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
    "Server/Older": _PROGRAMS,
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
    "Trust/Grants": _GRANTS,
    "Trust/Publish": _CONTROL,
    "Trust/Whoami": _ALL,
    "Trust/Audit": _OPERATORS,
    "Health/Check": _ALL,
    "Health/Watch": _ALL,
    "Health/List": _ALL,
    "ServerReflection/ServerReflectionInfo": _OPERATORS,
}
"""By service and call, as in utuple.proto, and gRPC's own two services (`utuple/runtime/observed.py`). `Announce` is the operator's too: whoever drains a server says that it is gone."""


@dataclass(frozen=True, slots=True)
class Through:
    """The door by which somebody came in, and whether he proved to it who he is by a token, which he has signed for that; else
    it is his certificate that the door shows, and that he has its key only the door has seen."""

    door: Identity
    by_token: bool


_SPOKEN_FOR = frozenset((Role.DEVICE, Role.APPLICATION))
_BY_TOKEN = _SPOKEN_FOR | {Role.OPERATOR}
"""For programs and doors nobody speaks. For an operator only who can show his own signature: a door that was stolen has met
his certificate perhaps, and must not become him by that."""


def allow_call(
    grants: Grants, identity: Identity, method: str, through: Through | None = None
) -> Verdict:
    """May this identity make this call (`/package.Service/Name`), and through this door, if it came by one? What it carries is
    another question, of the same identity's grant: nothing is added by the door's."""
    if through is not None:
        spoken = _may_speak(grants, through, identity)
        if not spoken.is_allowed:
            return spoken
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


def _may_speak(grants: Grants, through: Through, whom: Identity) -> Verdict:
    door = through.door
    if door.role is not Role.DOOR:
        return Verdict(f"{door} may not speak for {whom}: it is no door")
    heard = valid(grants, door)
    if not heard.is_allowed:
        return heard
    if whom.role in (_BY_TOKEN if through.by_token else _SPOKEN_FOR):
        return ALLOWED
    if whom.role is Role.OPERATOR:
        return Verdict(f"{door} may speak for {whom} by a token only (utuple token)")
    return Verdict(f"{door} may not speak for {whom}")
