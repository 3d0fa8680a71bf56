"""The first table of a cluster, given once: by `utuple up` to what it has started, by `utuple found` to servers that were
started by hand.

Each server takes its line of a table if it has no line yet, durably, and keeps what it has if it has one. So a founding may be
cut short, and run again, and run twice at once, as long as all of them give the same table. What may differ is who is to be in
it, and that is decided at one place: the first server is given its line before any other is given one. Whoever finds another
table's line there, or anywhere, gives nothing more. For the same reason nothing is given before all that are named
answer, nor while a server that is not named does: two that run at once see the same servers, and so name the same first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from utuple.admin import transport
from utuple.cluster.line import Line, ServerInfo, first_table
from utuple.errors import InvalidInput, UTupleError
from utuple.wire.cluster import line_from_wire, server_from_wire

ASK_AGAIN_S = 0.1


class NotFounded(UTupleError):
    """The cluster was not given a table; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A server that answers."""

    info: ServerInfo
    lines: tuple[Line, ...] = ()
    """Its own: none until it is given one."""


@dataclass(frozen=True, slots=True)
class Give:
    """Give these servers the table."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """These do not answer yet."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Founded:
    """There is a table: this one, or that of another founding, or one that moves have changed since."""


Look = Callable[[], Awaitable[Mapping[str, Seen]]]


def in_order(names: Sequence[str]) -> list[str]:
    """The same table, in whatever order they are named: server-2 before server-10."""
    if not names or len(set(names)) != len(names):
        raise InvalidInput("NAME", " ".join(names), "name every server of the new cluster, once")
    return sorted(names, key=by_number)


def by_number(name: str) -> tuple[str, int, str]:
    head, _, number = name.rpartition("-")
    return (head, int(number), name) if number.isdecimal() else (name, 0, name)


def next_step(names: Sequence[str], seen: Mapping[str, Seen]) -> Give | Wait | Founded:
    """What is to be done, given who answers and what each of them has. `names` are in order."""
    table = dict(zip(names, first_table(list(names)), strict=True))
    begun = {name: server.lines for name, server in seen.items() if server.lines}
    if any(name not in table or lines != (table[name],) for name, lines in begun.items()):
        return Founded()
    missing = tuple(name for name in names if name not in seen)
    if not begun:
        others = [name for name in seen if name not in table]
        if missing:
            return Wait(missing)
        if others:
            raise NotFounded(
                f"{', '.join(others)} answer too and are not named: name them, or stop them and start them "
                "again afterwards; they are given load then"
            )
    if names[0] not in begun:
        return Wait(missing) if names[0] in missing else Give(tuple(names[:1]))
    empty = tuple(name for name in names if name in seen and name not in begun)
    if empty:
        return Give(empty)
    return Wait(missing) if missing else Founded()


@dataclass(frozen=True, slots=True)
class Difference:
    """Between the servers that were named and those of the table there is."""

    not_in_table: tuple[str, ...] = ()
    not_named: tuple[str, ...] = ()

    @property
    def sentences(self) -> list[str]:
        said = []
        if self.not_in_table:
            said.append(
                f"Not in the table: {', '.join(self.not_in_table)}. A cluster is founded once; a server that comes later is "
                "started, and the load monitor gives it its part."
            )
        if self.not_named:
            said.append(f"In the table and not named: {', '.join(self.not_named)}.")
        return said


def difference(names: Sequence[str], lines: Sequence[Line]) -> Difference:
    have = {member.name for line in lines for member in line.members}
    return Difference(
        tuple(sorted(set(names) - have, key=by_number)),
        tuple(sorted(have - set(names), key=by_number)),
    )


async def found(names: Sequence[str], look: Look, say: Callable[[str], None]) -> bool:
    """Until the cluster has a table. False: nothing was left to give."""
    names = in_order(names)
    lines = first_table(names)
    has_given = False
    while True:
        seen = await look()
        step = next_step(names, seen)
        match step:
            case Founded():
                return has_given
            case Wait():
                say(f"waiting for {', '.join(step.names)}")
                await asyncio.sleep(ASK_AGAIN_S)
            case Give():
                infos = [seen[name].info for name in names if name in seen]
                answers = await asyncio.gather(
                    *(transport.adopt(seen[name].info.address, lines, infos) for name in step.names)
                )
                has_given |= any(answer is not None and answer.adopted for answer in answers)
                if None in answers:
                    await asyncio.sleep(ASK_AGAIN_S)


async def looked_at(infos: Sequence[ServerInfo]) -> dict[str, Seen]:
    """Those of these that answer under their own name."""
    statuses = await asyncio.gather(
        *(transport.server_status(info.address, brief=True) for info in infos)
    )
    return {
        info.name: Seen(info, tuple(map(line_from_wire, status.lines)))
        for info, status in zip(infos, statuses, strict=True)
        if status is not None and status.name == info.name
    }


async def known_servers(managers: Sequence[str]) -> dict[str, Seen]:
    """All that have announced themselves and answer."""
    table = await transport.first_table_of(managers)
    infos = map(server_from_wire, table.servers)
    return await looked_at([info for info in infos if info.role in ("", "server")])
