"""`utuple grants`, `utuple whoami` and `utuple audit`: who may do what, and what was decided."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from utuple.cli.options import AT_DEFAULT, At, Data, Json, addresses, print_json_block
from utuple.cli.outcome import FAILED
from utuple.cli.trusting.options import Authority, authority_of, check_known

if TYPE_CHECKING:
    from utuple.security.audit import Head
    from utuple.security.signed import Signed


def grants(data: Data = None, at: At = AT_DEFAULT, json: Json = False) -> None:
    """Everybody who was granted something, and who was revoked."""
    from utuple.security.grants import decode
    from utuple.security.own import shown_time
    from utuple.security.rights import granted

    authority_of(None, data, addresses(at))  # who asks is its operator
    check_known()
    signed = asyncio.run(_grants_of(addresses(at)))
    known = decode(signed.content)
    if json:
        import orjson

        document: dict[str, Any] = orjson.loads(signed.content)
        document.pop("authorities")
        print_json_block(document)
        return
    typer.echo(f"Grants {known.number} of {known.cluster}.")
    for name in sorted(known.grants):
        typer.echo(f"  {name} ({known.grants[name].role}): {granted(known.grants[name])}")
    for name, void_us in sorted(known.void_before_us.items()):
        if name not in known.grants:
            typer.echo(f"  {name}: revoked {shown_time(void_us)}")


async def _grants_of(managers: list[str]) -> Signed:
    """Of the first that has some; else why the last one does not say."""
    from utuple.admin.trusting import grants_at
    from utuple.errors import Unavailable, UTupleError

    why: UTupleError = Unavailable("no assignment manager has heard of any grants yet; try again")
    for address in managers:
        try:
            if (signed := await grants_at(address)) is not None:
                return signed
        except UTupleError as error:
            why = error
    raise why


def whoami(at: At = AT_DEFAULT, json: Json = False) -> None:
    """Who you are to the cluster, by your credentials, until when, and what you may do."""
    from utuple.admin.trusting import whoami as ask
    from utuple.security.own import OWN

    check_known()
    own = OWN.get()
    assert own is not None
    answer = asyncio.run(ask(addresses(at)[0]))
    if json:
        print_json_block(
            {
                "identity": answer.identity,
                "until_us": own.held.until_us,
                "allowed": answer.allowed,
                "grants_number": answer.grants_number,
                "answered_by": answer.program,
            }
        )
        return
    typer.echo(f"{answer.identity}, until {own.held.until}")
    typer.echo(f"{answer.allowed[0].upper()}{answer.allowed[1:]} (grants {answer.grants_number}).")


def audit(
    verify: Annotated[
        bool, typer.Option("--verify", help="Check that nothing was changed, dropped or inserted.")
    ] = False,
    authority: Authority = None,
    data: Data = None,
    at: At = AT_DEFAULT,
    json: Json = False,
) -> None:
    """Who granted, revoked, moved and drained, and what was refused how often: of the authority and of every program.

    Each has a chain of its own, by hashes: with --verify the exit code is 1 if one does not hold, or cannot be asked for.
    """
    from utuple.security.own import shown_time

    own = authority_of(authority, data, addresses(at)).audit  # and who asks is its operator
    check_known()
    chains, silent = asyncio.run(_chains(addresses(at)))
    if own.exists():
        chains["authority"] = own.read_bytes().splitlines(keepends=True), None
    broken = {name: why for name, chain in chains.items() if verify and (why := _broken(*chain))}
    entries = [
        {"where": name, **entry}
        for name, (lines, _) in chains.items()
        if name not in broken
        for line in lines
        if (entry := _entry(line))
    ]
    entries.sort(key=lambda entry: entry["time_us"])
    if json:
        print_json_block({"entries": entries, "broken": broken, "silent": silent})
    else:
        for entry in entries:
            about = " ".join(f"{key}={value}" for key, value in entry["about"].items())
            who = entry["who"] or "somebody unknown"
            typer.echo(
                f"{shown_time(entry['time_us'])}  {entry['where']}: {who} {entry['what']} {about}"
            )
        for name, why in broken.items():
            typer.echo(f"{name}: the chain is broken: {why}", err=True)
        for name, why in silent.items():
            typer.echo(f"{name} is not heard: {why}", err=True)
        if verify and not broken and not silent:
            typer.echo(f"{len(chains)} chains hold.", err=True)
    if broken or (verify and silent):
        raise typer.Exit(FAILED)


def _entry(line: bytes) -> dict[str, Any]:
    """Empty: it was changed into something that is none, which --verify tells."""
    import orjson

    try:
        return dict(orjson.loads(line))
    except (ValueError, TypeError):
        return {}


Chain = tuple[list[bytes], "Head | None"]


async def _chains(managers: list[str]) -> tuple[dict[str, Chain], dict[str, str]]:
    """And why some are not known."""
    from utuple.admin.trusting import audit_of, programs_of
    from utuple.errors import UTupleError
    from utuple.security.audit import Head

    found, silent = dict[str, Chain](), dict[str, str]()
    for name, address in (await programs_of(managers)).items():
        try:
            lines, number, hash_ = await audit_of(address)
        except UTupleError as error:
            silent[name] = str(error)
            continue
        found[name] = lines, Head(number, hash_)
    return found, silent


def _broken(lines: list[bytes], head: Head | None) -> str:
    from utuple.security.audit import Broken, verified

    try:
        verified(lines, head)
    except Broken as error:
        return str(error)
    return ""
