"""The judge: may this identity do that? Default deny. Pure.

`allow` is asked of every uTuple that is registered and of every template; what it says no to is answered with what would be
allowed. A template must lie within the grant as a whole: then whatever it matches may be seen, and no delivery has to be
asked about, unless the grants have changed since.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from utuple.model.area import Area, Position
from utuple.model.columns import MICROSECONDS, Columns
from utuple.model.condition import Equal, Prefix
from utuple.model.utuple import Exact, Family, Template
from utuple.security.grants import Action, Grant, Grants
from utuple.security.identity import Identity, Role
from utuple.security.within import Scope, address_within, area_within


@dataclass(frozen=True, slots=True)
class Verdict:
    reason: str = ""
    """Empty: allowed. Else why not, with what would be."""

    @property
    def is_allowed(self) -> bool:
        return not self.reason


ALLOWED = Verdict()


def valid(grants: Grants, identity: Identity) -> Verdict:
    """May this identity be heard at all?"""
    if identity.cluster != grants.cluster:
        return Verdict(
            f"{identity} belongs to cluster {identity.cluster}; this is {grants.cluster}"
        )
    if identity.issued_us < grants.void_before_us.get(identity.name, 0):
        return Verdict(
            f"the credentials of {identity} were revoked; ask an operator for new ones (utuple grant)"
        )
    if identity.role in (Role.PROGRAM, Role.OPERATOR):
        return ALLOWED
    grant = grants.grants.get(identity.name)
    if grant is None or grant.role is not identity.role:
        return Verdict(
            f"{identity} has no grant; an operator gives one (utuple grant {identity.name} --as {identity.role} …)"
        )
    return ALLOWED


def allow(
    grants: Grants,
    identity: Identity,
    action: Action,
    family: Family,
    place: Exact | Template,
    lifetime_s: float = 0.0,
) -> Verdict:
    """One uTuple, exact or template."""
    heard = valid(grants, identity)
    if not heard.is_allowed:
        return heard
    grant = _grant(grants, identity)
    if not any(pattern.covers(family) for pattern in grant.families.get(action, ())):
        return _refused(identity, grant, action, f"{family.subject}/{family.type}")
    if isinstance(place, Exact):
        address_fits = _holds(grant.scope_of(action), place.address)
        area_fits = _contains(grant.area, place.position)
    else:
        address_fits = address_within(place.address, grant.scope_of(action))
        area_fits = area_within(place.area, grant.area)
    if not address_fits:
        return _refused(identity, grant, action, f"for {_said_address(place)}")
    if not area_fits:
        return _refused(identity, grant, action, "there")
    if grant.max_lifetime_s is not None and lifetime_s > grant.max_lifetime_s:
        return _refused(identity, grant, action, f"with a lifetime of {lifetime_s:g} s")
    return ALLOWED


def allow_rows(
    grants: Grants, identity: Identity, action: Action, columns: Columns
) -> dict[int, Verdict]:
    """The rows of a batch that are refused. Asked column by column; only a column with something wrong is asked by row."""
    heard = valid(grants, identity)
    if not heard.is_allowed:
        return dict.fromkeys(range(len(columns)), heard)
    grant = _grant(grants, identity)
    if _all_fit(grant, action, columns):
        return {}
    refused = {}
    for row in range(len(columns)):
        verdict = allow(
            grants,
            identity,
            action,
            columns.families[columns.family[row]],
            Exact(columns.addresses[row], columns.times_us[row], columns.position_at(row)),
            columns.lifetimes_us[row] / MICROSECONDS,
        )
        if not verdict.is_allowed:
            refused[row] = verdict
    return refused


def allow_addressed(
    grants: Grants,
    identity: Identity,
    action: Action,
    families: Sequence[Family],
    family: Sequence[int],
    addresses: Sequence[str],
) -> dict[int, Verdict]:
    """The rows that are refused of a batch whose rows say one address each, and nothing of a place."""
    heard = valid(grants, identity)
    if not heard.is_allowed:
        return dict.fromkeys(range(len(addresses)), heard)
    grant = _grant(grants, identity)
    patterns = grant.families.get(action, ())
    if (
        all(any(pattern.covers(one) for pattern in patterns) for one in families)
        and _all_addressed(grant.scope_of(action), addresses)
        and grant.area is None
    ):
        return {}
    verdicts = (
        allow(grants, identity, action, families[family[row]], Template(Equal(address)))
        for row, address in enumerate(addresses)
    )
    return {row: verdict for row, verdict in enumerate(verdicts) if not verdict.is_allowed}


def allow_address(
    grants: Grants, identity: Identity, action: Action, family: Family, address: str
) -> Verdict:
    """One of which the place is not known here: it was judged with its place before."""
    heard = valid(grants, identity)
    if not heard.is_allowed:
        return heard
    grant = _grant(grants, identity)
    if not any(pattern.covers(family) for pattern in grant.families.get(action, ())):
        return _refused(identity, grant, action, f"{family.subject}/{family.type}")
    if not _holds(grant.scope_of(action), address):
        return _refused(identity, grant, action, f"for {address}")
    return ALLOWED


def _all_fit(grant: Grant, action: Action, columns: Columns) -> bool:
    patterns = grant.families.get(action, ())
    return (
        all(any(pattern.covers(family) for pattern in patterns) for family in columns.families)
        and _all_addressed(grant.scope_of(action), columns.addresses)
        and (grant.area is None or _all_inside(grant.area, columns))
        and (
            grant.max_lifetime_s is None
            or not columns.lifetimes_us
            or max(columns.lifetimes_us) <= grant.max_lifetime_s * MICROSECONDS
        )
    )


def _all_addressed(scope: Scope, addresses: Sequence[str]) -> bool:
    """A gateway repeats few addresses, so each is asked once."""
    return scope is None or all(_holds(scope, address) for address in set(addresses))


def _all_inside(area: Area, columns: Columns) -> bool:
    return all(_contains(area, columns.position_at(row)) for row in range(len(columns)))


def _grant(grants: Grants, identity: Identity) -> Grant:
    """Operators and programs may have none: then it is one that grants nothing."""
    found = grants.grants.get(identity.name)
    if found is None or found.role is not identity.role:
        return Grant(identity.name, Role.OPERATOR)
    return found


def _holds(scope: Scope, address: str) -> bool:
    return scope is None or scope.meets(address)


def _contains(area: Area | None, position: Position | None) -> bool:
    return area is None or (position is not None and area.contains(position))


def _refused(identity: Identity, grant: Grant, action: Action, what: str) -> Verdict:
    return Verdict(f"{identity} may not {action} {what}; {granted(grant)}")


def words_for(grants: Grants, identity: Identity) -> str:
    """What an identity may do, for whoever asks who he is."""
    heard = valid(grants, identity)
    if not heard.is_allowed:
        return heard.reason
    roles = {Role.OPERATOR: "it runs the cluster; ", Role.PROGRAM: "it is part of the cluster; "}
    return roles.get(identity.role, "") + granted(_grant(grants, identity))


def granted(grant: Grant) -> str:
    """What a grant allows, in words."""
    allowed = [
        f"{action} {_listed(map(str, patterns))}{_said_scope(grant.scope_of(action))}"
        for action, patterns in grant.families.items()
        if patterns
    ]
    if not allowed:
        return "nothing is granted to it"
    limits = []
    if grant.area is not None:
        limits.append(f"within {grant.area}")
    if grant.max_lifetime_s is not None:
        limits.append(f"for at most {grant.max_lifetime_s:g} s")
    return f"it may {'; '.join(allowed)}{''.join(f', {limit}' for limit in limits)}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _said_scope(scope: Scope) -> str:
    match scope:
        case Equal(value):
            return f" as {value}"
        case Prefix(text):
            return f" as {text}…"
        case _:
            return ""


def _said_address(place: Exact | Template) -> str:
    if isinstance(place, Exact):
        return place.address
    match place.address:
        case Equal(value):
            return str(value)
        case Prefix(text):
            return f"{text}…"
        case _:
            return "these addresses"
