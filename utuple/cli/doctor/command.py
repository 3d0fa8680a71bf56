"""`utuple doctor`."""

from __future__ import annotations

import asyncio
from dataclasses import asdict

import typer

from utuple.cli.options import AT_DEFAULT, At, Data, Json, addresses, print_json_block
from utuple.cli.outcome import FAILED


def doctor(at: At = AT_DEFAULT, data: Data = None, json: Json = False) -> None:
    """Look for what is wrong here, and say what to do about it.

    Versions, disk, ports, open files, certificates; then the cluster: programs, table, durability settings, clocks,
    room, and a round trip of an event. Exit code 1 if something is wrong.
    """
    from utuple.cli.doctor.gathering import gathered
    from utuple.cli.doctor.judging import judged
    from utuple.cli.life import folder_of

    asked = addresses(at)
    found = judged(asyncio.run(gathered(asked, folder_of(data, asked))))
    wrong = [one for one in found if not one.is_well]
    if json:
        print_json_block({"well": not wrong, "findings": [asdict(one) for one in found]})
    else:
        for one in found:
            mark = typer.style("✓", fg="green") if one.is_well else typer.style("✗", fg="red")
            typer.echo(f"{mark} {one.name}: {one.said}")
            if one.cure:
                typer.echo(f"    → {one.cure}")
        typer.echo("\nAll is well." if not wrong else f"\n{len(wrong)} to mend.")
    if wrong:
        raise typer.Exit(FAILED)
