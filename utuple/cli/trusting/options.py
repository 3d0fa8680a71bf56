"""Options and ways that the commands about rights share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from utuple.security.folder import AuthorityFolder
    from utuple.security.signed import Signed

Authority = Annotated[
    Path | None,
    typer.Option(
        "--authority",
        metavar="DIR",
        envvar="UTUPLE_AUTHORITY",
        show_default="authority/ in the data folder of the cluster",
        help="The folder of the cluster's authority: whoever has it decides who belongs.",
    ),
]


def authority_of(given: Path | None, data: Path | None, at: Sequence[str]) -> AuthorityFolder:
    """Whoever has the folder of a local cluster is its operator, unless he says otherwise."""
    from utuple.cli.life import folder_of
    from utuple.security.folder import AuthorityFolder
    from utuple.security.own import OWN, OwnCredentials

    if given is not None:
        return AuthorityFolder(given)
    trust = folder_of(data, at).trust
    if OWN.get() is None and trust.operator.exists():
        OWN.set(OwnCredentials(trust.operator))
    return trust.authority


async def newest_at(managers: Sequence[str]) -> Signed | None:
    """The grants the cluster has, if it answers: the authority's own copy may be older."""
    from utuple.admin.trusting import grants_at
    from utuple.errors import UTupleError

    for address in managers:
        try:
            return await grants_at(address)
        except UTupleError:
            continue
    return None


async def spread(managers: Sequence[str], given: Signed) -> tuple[int, list[str]]:
    """Give these to every program: how many have them in force, and who does not answer."""
    from utuple.admin.trusting import programs_of, publish
    from utuple.errors import UTupleError

    try:
        programs = await programs_of(managers)
    except UTupleError:
        return 0, list(managers)
    numbers = await publish(programs.values(), given)
    silent = [name for name, number in zip(programs, numbers, strict=True) if number is None]
    return len(programs) - len(silent), silent


def say_spread(have: int, silent: Sequence[str]) -> None:
    typer.echo(f"In force at {have} programs.", err=True)
    if silent:
        typer.echo(
            f"Not reached: {', '.join(silent)}; they hear of it when they are back, from the managers.",
            err=True,
        )
