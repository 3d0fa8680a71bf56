"""`utuple grant` and `utuple revoke`: who belongs to the cluster, and what he may do."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from utuple.cli.options import AT_DEFAULT, At, Data, Json, addresses, print_json
from utuple.cli.trusting.options import Authority, authority_of, decide, renew_programs, say_spread

if TYPE_CHECKING:
    from collections.abc import Iterable

    from utuple.security.grants import Action, Grant
    from utuple.security.identity import Role
    from utuple.security.signed import Signed
    from utuple.security.within import Scope

Families = Annotated[
    list[str] | None,
    typer.Option(metavar="SUBJECT/TYPE", help="May be given several times; * stands for any."),
]


Name = Annotated[str, typer.Argument(help="Whom, such as truck-17.")]
RoleName = Annotated[
    str,
    typer.Option("--as", metavar="ROLE", help="device, application, operator, program or door."),
]
Address = Annotated[
    str | None,
    typer.Option(help="Only for this address.", show_default="a device's own name, else any"),
]
Prefixed = Annotated[str | None, typer.Option(help="Only for addresses that begin so; '' for any.")]
Place = Annotated[
    str | None, typer.Option(help="Only there: 'south,west,north,east' or 'lat,lon,radius_m'.")
]
MaxLifetime = Annotated[
    str | None, typer.Option(help="The longest lifetime: seconds, or 15m, 1h, 7d.")
]
Days = Annotated[float, typer.Option(help="How long the credentials hold.")]
Hosts = Annotated[
    list[str] | None,
    typer.Option(help="Of a program or a door: a name or address at which it listens."),
]
Output = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", show_default="NAME.creds")
]


def grant(
    name: Name,
    role: RoleName,
    emit: Families = None,
    watch: Families = None,
    serve: Families = None,
    command: Families = None,
    address: Address = None,
    prefix: Prefixed = None,
    area: Place = None,
    max_lifetime: MaxLifetime = None,
    days: Days = 365.0,
    host: Hosts = None,
    output: Output = None,
    authority: Authority = None,
    data: Data = None,
    at: At = AT_DEFAULT,
    json: Json = False,
) -> None:
    """Issue credentials, and say what their holder may do: that, and nothing else. Granted again, the last word counts.

    The file has the holder's key in it: give it to nobody else. `watch` covers `read`. A program's credentials need no grant. A door speaks
    for whoever proves to it who he is; what it is granted is for what it remembers itself (MQTT: --emit and --watch mqtt/session, mqtt/share and mqtt/family).
    """
    from utuple.security.authority import check_days
    from utuple.security.credentials import read_credentials, write_credentials
    from utuple.security.grants import Action
    from utuple.security.identity import Role, check_name, check_role
    from utuple.security.own import held

    wanted, managers = check_role(role), addresses(at)
    folder, path = (
        authority_of(authority, data, managers),
        output or Path(f"{check_name(name)}.creds"),
    )
    have, silent, words, one = 0, list[str](), "It is part of the cluster.", None
    if wanted is not Role.PROGRAM:
        asked = (
            (Action.EMIT, emit),
            (Action.WATCH, watch),
            (Action.SERVE, serve),
            (Action.COMMAND, command),
        )
        one = _grant(name, wanted, asked, _scope(address, prefix), area, max_lifetime)
        words = _said(one)
    check_days(days)
    if one is not None:
        # first, since what another has decided meanwhile says when these are issued
        have, silent = asyncio.run(decide(managers, partial(folder.allow, one)))
    write_credentials(path, folder.issue(wanted, name, days, host or ()))
    known = held(read_credentials(path), path.name)
    if json:
        said = {"identity": known.identity.uri, "file": str(path), "until_us": known.until_us}
        number = folder.read().grants.number
        print_json({**said, "number": number, "in_force": have, "not_reached": silent})
        return
    typer.echo(f"{path}: {known.identity}, until {known.until}")
    typer.echo(words)
    if one is not None:
        say_spread(have, silent)


def _grant(
    name: str,
    role: Role,
    asked: Iterable[tuple[Action, list[str] | None]],
    scope: Scope,
    area: str | None,
    max_lifetime: str | None,
) -> Grant:
    from utuple.cli.verbs.parsing import parse_area, parse_duration_s
    from utuple.security.grants import Grant, family_pattern

    return Grant(
        name,
        role,
        {action: tuple(map(family_pattern, texts)) for action, texts in asked if texts},
        scope,
        parse_area(area) if area is not None else None,
        parse_duration_s("--max-lifetime", max_lifetime) if max_lifetime is not None else None,
    )


def _said(one: Grant) -> str:
    from utuple.security.rights import granted

    words = granted(one)
    return words[0].upper() + words[1:] + "."


def _scope(address: str | None, prefix: str | None) -> Scope:
    from utuple.errors import InvalidInput
    from utuple.model.condition import Equal, Prefix
    from utuple.model.value import check_name

    if address is not None and prefix is not None:
        raise InvalidInput("--prefix", prefix, "give an --address or a --prefix, not both")
    if address is not None:
        return Equal(check_name("--address", address))
    return Prefix(prefix) if prefix is not None else None


def revoke(
    name: Annotated[str, typer.Argument(help="Whose credentials, such as truck-17.")],
    authority: Authority = None,
    data: Data = None,
    at: At = AT_DEFAULT,
    json: Json = False,
) -> None:
    """Whatever was issued to this name until now is void: calls are refused, open streams end.

    It has no grant any longer. Grant it again, and it gets new credentials. The operator and the programs of a cluster of this machine get
    theirs at once.
    """
    managers, folder = addresses(at), authority_of(authority, data, addresses(at))

    def decision(before: Signed | None) -> Signed:
        """Programs of this machine get new credentials before theirs are void, and so does whoever revokes himself."""
        made = folder.revoke(name, before)
        renewed.extend(renew_programs(authority, data, managers))
        return made

    renewed = list[str]()
    have, silent = asyncio.run(decide(managers, decision))
    if json:
        number = folder.read().grants.number
        print_json({"name": name, "number": number, "in_force": have, "not_reached": silent})
        return
    typer.echo(f"{name} is revoked.")
    if renewed:
        typer.echo(f"Renewed: {', '.join(sorted(set(renewed)))}.", err=True)
    say_spread(have, silent)
