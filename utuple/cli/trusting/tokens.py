"""`utuple token`: what somebody shows at a door, in a browser or as an MQTT password."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from utuple.cli.options import AT_DEFAULT, At, Data, Json, addresses, print_json
from utuple.cli.trusting.options import Authority, authority_of

if TYPE_CHECKING:
    from pathlib import Path

    from utuple.security.credentials import Credentials

Whom = Annotated[
    str | None,
    typer.Argument(
        help="Whose, by the authority: somebody who was granted something, or operator.",
        show_default="yours, by your credentials",
    ),
]
Life = Annotated[
    str, typer.Option("--for", metavar="DURATION", help="How long: 15m, 8h, 7d; 90d at most.")
]
Console = Annotated[
    bool,
    typer.Option(
        "--console", help="Print the console's address with it, to be opened in a browser."
    ),
]
Door = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="The HTTP door.", show_default="that of the cluster on this machine"
    ),
]


def token(
    name: Whom = None,
    life: Life = "8h",
    console: Console = False,
    door: Door = None,
    authority: Authority = None,
    data: Data = None,
    at: At = AT_DEFAULT,
    json: Json = False,
) -> None:
    """A token: it proves who you are at a door (HTTP: Authorization: Bearer …; MQTT: the password), for a while.

    Whoever has it is you until it ends: give it to nobody, and ask for no longer life than you need. It is signed with your own key, so that
    no door can make another. `utuple revoke` voids it, too.
    """
    from utuple.cli.verbs.parsing import parse_duration_s
    from utuple.runtime.clock import now_us
    from utuple.security.own import held, shown_time
    from utuple.security.proofs import check_life, proved_by_token, token_of

    life_s = check_life(parse_duration_s("--for", life))
    credentials = _credentials(name, life_s, authority, data, addresses(at))
    made_us = now_us()
    made, own = token_of(credentials, made_us, life_s), held(credentials, "token")
    proved = proved_by_token(made, own.identity.cluster, credentials.authorities_pem, made_us)
    place = f"{_door(door, data, addresses(at))}#token={made}" if console or door else ""
    if json:
        said = {"identity": own.identity.uri, "until_us": proved.until_us, "token": made}
        print_json({**said, **({"console": place} if place else {})})
        return
    typer.echo(place or made)
    typer.echo(f"{own.identity}, until {shown_time(proved.until_us)}", err=True)


def _credentials(
    name: str | None, life_s: float, authority: Path | None, data: Path | None, at: list[str]
) -> Credentials:
    """One's own; or such that are made for this, and whose key nobody keeps."""
    from utuple.errors import NotAllowed
    from utuple.security.own import OWN

    if name is not None:
        return authority_of(authority, data, at).issue_for_token(name, life_s)
    own = OWN.get()
    if own is None:
        authority_of(authority, data, at)  # on the machine of the cluster: its operator
        own = OWN.get()
    if own is None:
        raise NotAllowed("whose? give --credentials FILE, or a NAME and the authority's folder")
    return own.held.credentials


def _door(given: str | None, data: Path | None, at: list[str]) -> str:
    from utuple.cli.life import folder_of
    from utuple.errors import InvalidInput

    if given is not None:
        if not given.startswith("https://"):
            raise InvalidInput("--door", given, "must begin with https://: a token is a secret")
        return given
    cluster = folder_of(data, at).read_cluster()
    if cluster is None or not cluster.layout.http:
        raise InvalidInput("--console", "here", "no HTTP door runs on this machine: say --door URL")
    return f"https://127.0.0.1:{cluster.layout.http}/"
