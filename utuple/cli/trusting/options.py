"""Options and ways that the commands about rights share."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from utuple.errors import Unavailable, UTupleError

if TYPE_CHECKING:
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


Decide = Callable[["Signed | None"], "Signed"]
"""Makes the next document, after this one if that is newer than the authority's own copy."""
_TRIES = 5
_AGAIN_S = 0.5


async def decide(
    managers: Sequence[str], decision: Decide, tries: int = _TRIES
) -> tuple[int, list[str]]:
    """Decided, and given to every program: how many have it in force, and who does not answer. Of two operators who decide at a time,
    each with a copy of the authority, one finds the other's grants in force, and decides once more after those."""
    before = await _newest_at(managers)
    for _ in range(tries):
        have, silent, before = await _spread(managers, decision(before))
        if before is None:
            return have, silent
        await asyncio.sleep(random.uniform(0, _AGAIN_S))
    raise Unavailable("others are changing the grants too, and theirs are in force; try again")


async def _newest_at(managers: Sequence[str]) -> Signed | None:
    """The grants the cluster has, if it answers: the authority's own copy may be older."""
    from utuple.admin.trusting import grants_at

    for address in managers:
        try:
            return await grants_at(address)
        except UTupleError:
            continue
    return None


async def _spread(managers: Sequence[str], given: Signed) -> tuple[int, list[str], Signed | None]:
    """To every program: how many have these in force, who does not answer, and the newest of the others that are in force somewhere."""
    from utuple.admin.trusting import grants_at, programs_of, publish

    try:
        programs = await programs_of(managers)
    except UTupleError:
        return 0, list(managers), None
    answers = dict(zip(programs, await publish(programs.values(), given), strict=True))
    silent = [name for name, answer in answers.items() if answer is None]
    others = [(answer.number, name) for name, answer in answers.items() if answer and answer.others]
    found = await grants_at(programs[max(others)[1]]) if others else None
    return len(programs) - len(silent), silent, found


def check_known() -> None:
    """Whoever asks shows who he is; a cluster that is not secured has nothing to say about it."""
    from utuple.errors import NotAllowed
    from utuple.security.own import OWN

    if OWN.get() is None:
        raise NotAllowed("nobody: give --credentials FILE, or set UTUPLE_CREDENTIALS")


def say_spread(have: int, silent: Sequence[str]) -> None:
    typer.echo(f"In force at {have} programs.", err=True)
    if silent:
        typer.echo(
            f"Not reached: {', '.join(silent)}; they hear of it when they are back, from the managers.",
            err=True,
        )


def renew_programs(given: Path | None, data: Path | None, at: Sequence[str]) -> list[str]:
    """Whose credentials do not hold any longer, of a cluster of this machine; programs notice by themselves. Of others their operator does it
    (`utuple grant`)."""
    from utuple.cli.life import folder_of
    from utuple.runtime.clock import now_us
    from utuple.security.own import OWN, OwnCredentials

    folder = folder_of(data, at)
    cluster = folder.read_cluster() if given is None else None
    if cluster is None or not cluster.secure:
        return []
    made = folder.trust.prepare(cluster.layout.programs, now_us())
    own = OWN.get()
    if own is not None and own.path.resolve() == folder.trust.operator.resolve():
        OWN.set(OwnCredentials(own.path))
    return made
