"""`utuple up --limit server.share_efs=1000`: the limits of programs that an operator sets (docs/security.md, "Fair shares"),
checked as the programs would check them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from utuple.local.folder import ClusterFile

OPTION = "--limit"


def with_limits(cluster: ClusterFile, given: Sequence[str]) -> ClusterFile:
    """These, and those of its folder that are not named."""
    return replace(cluster, limits={**cluster.limits, **limits_of(given)})


def limits_of(given: Sequence[str]) -> dict[str, str]:
    """By program and name, as the programs take them."""
    from utuple.errors import InvalidInput

    known, found = _known(), dict[str, str]()
    for text in given:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or name not in known:
            rule = f"must be NAME=VALUE, with one of these names: {', '.join(known)}"
            raise InvalidInput(OPTION, text, rule)
        if name in found:
            raise InvalidInput(OPTION, text, "is given twice")
        kind = known[name]
        try:
            number = kind(value.replace("_", "").replace(",", ""))
        except ValueError:
            rule = "must be a whole number" if kind is int else "must be a number"
            raise InvalidInput(OPTION, text, rule) from None
        if not 0 < number < float("inf"):
            raise InvalidInput(OPTION, text, "must be above 0, and finite")
        found[name] = str(number)
    return found


def _known() -> Mapping[str, type[int] | type[float]]:
    """Names, and what kind of number each is."""
    from sca_server.shares import ScaShareLimits
    from utuple.server.sharing import ShareLimits

    shares = (("server", ShareLimits()), ("sca", ScaShareLimits()))
    found = {
        f"{program}.{field.name}": type(getattr(limits, field.name))
        for program, limits in shares
        for field in fields(limits)
    }
    counts = ("connections", "connections_per_address")
    names = (f"{program}.{name}" for program in ("server", "sca", "manager") for name in counts)
    return found | dict.fromkeys(names, int)
