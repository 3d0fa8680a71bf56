"""`utuple authority`: the authority itself is replaced while everything runs, with both valid meanwhile."""

from __future__ import annotations

import asyncio

import typer

from utuple.cli.options import AT_DEFAULT, At, Data, Json, addresses, print_json
from utuple.cli.outcome import told
from utuple.cli.trusting.options import (
    Authority,
    Decide,
    authority_of,
    decide,
    renew_programs,
    say_spread,
)

authority = typer.Typer(
    help="The cluster's authority: replace it with a new one, then retire the old.",
    no_args_is_help=True,
)


@authority.command()
@told
def replace(
    authority: Authority = None, data: Data = None, at: At = AT_DEFAULT, json: Json = False
) -> None:
    """A new authority signs from now on; credentials of the old one hold too, until it is retired.

    The programs of `utuple up` get new credentials at once, and use them without a restart. Grant everybody else again in the meantime: what is issued now
    trusts both. Whoever still has old credentials is vouched for by the old authority.
    """
    folder = authority_of(authority, data, addresses(at))
    reached = _decided(addresses(at), folder.replace_authority)
    if made := renew_programs(authority, data, addresses(at)):
        typer.echo(f"Renewed: {', '.join(made)}.", err=True)
    _say(reached, json, "replaced")


@authority.command()
@told
def retire(
    authority: Authority = None, data: Data = None, at: At = AT_DEFAULT, json: Json = False
) -> None:
    """Only the authority that signs now holds: credentials of older ones are refused from now on."""
    folder = authority_of(authority, data, addresses(at))
    _say(_decided(addresses(at), folder.retire_authorities), json, "retired")


def _decided(managers: list[str], decision: Decide) -> tuple[int, list[str]]:
    """Once: a second authority in the same breath would be known to nobody."""
    return asyncio.run(decide(managers, decision, tries=1))


def _say(reached: tuple[int, list[str]], json: bool, what: str) -> None:
    have, silent = reached
    if json:
        print_json({what: True, "in_force": have, "not_reached": silent})
        return
    typer.echo(f"The authority is {what}.")
    say_spread(have, silent)
