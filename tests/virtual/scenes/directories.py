"""The assignment managers at rest: every one knows every peer, holds its own lines and no others, answers any key in one hop,
and has nothing left to tell. (Section 3.3.)

No history of calls shows this: a client that is told an old line is put right by the server it asks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random

from assignment_manager.manager import Manager
from assignment_manager.peer import peer_of
from assignment_manager.ring import COPIES
from tests.virtual.programs.cluster import Cluster
from tests.virtual.programs.servers import address_of
from tests.virtual.scenes.waiting import until
from tests.virtual.world.network import Call, Weather
from utuple.cluster.line import Line, ServerInfo
from utuple.cluster.table import Table
from utuple.wire import utuple_pb2 as pb
from utuple.wire.announcing import told
from utuple.wire.cluster import line_from_wire

_ASK_S = 2.0
_AWAY_S = 2.0
_DEAD_S = 25.0
"""Longer than it takes the others to find out."""
_BAD_WEATHER_S = 12.0
_SETTLED_S = 30.0
"""Fifteen rounds of gossip."""
_GRANTS_S = 10.0
"""By then a server has announced itself, and its grants have gone on by gossip."""
_LOOKS = 10
"""At the table, until it stands still."""
_BAD_WEATHER = Weather(lost=0.4, doubled=0.1, slow=0.1)


async def managers_start_again(cluster: Cluster) -> None:
    """Three ways to lose what only managers know; each is mended by one thing alone. Few managers all hold everything and hear
    everything from the servers, so that little can be lost: there one of the ways is enough."""
    dice = cluster.world.dice("directories")
    ways = [_all_start_again, _holders_start_again]
    if len(cluster.managers) > 1 and not _is_planned(
        cluster
    ):  # a monitor would move what nobody hears of
        ways.append(_one_is_dead_while_servers_are_cut_off)
    for way in dice.sample(ways, len(ways) if len(cluster.managers) > COPIES + 1 else 1):
        await way(cluster, dice)
        cluster.network.weather = Weather()
        await until(lambda: not _disagree(cluster, newest(cluster)), _SETTLED_S, _GRANTS_S)
        await directories_agree(cluster)
        cluster.network.heal()


async def _all_start_again(cluster: Cluster, dice: Random) -> None:
    """Empty, and so do those who serve simple commands, while many messages are lost: there is nobody to learn from but servers."""
    cluster.network.weather = _BAD_WEATHER
    for name in cluster.managers:
        cluster.crash(name, dice.uniform(0.05, _AWAY_S))
    await asyncio.sleep(dice.uniform(0.0, _BAD_WEATHER_S))
    for name in cluster.scas:
        cluster.crash(name, dice.uniform(0.05, _AWAY_S))
    await asyncio.sleep(_AWAY_S)


async def _holders_start_again(cluster: Cluster, dice: Random) -> None:
    """All who hold some line. Its servers tell others, who knew it and have to ask again."""
    for name in _farthest_holders(cluster):
        cluster.crash(name, dice.uniform(0.05, _AWAY_S))
    await asyncio.sleep(_AWAY_S)


async def _one_is_dead_while_servers_are_cut_off(cluster: Cluster, dice: Random) -> None:
    """Its lines go to the next managers and come back to it, in messages many of which are lost; no server helps."""
    cluster.network.block([*cluster.servers, *cluster.scas], cluster.managers, both=True)
    cluster.network.weather = _BAD_WEATHER
    cluster.crash(dice.choice(cluster.managers), _DEAD_S)
    await asyncio.sleep(_DEAD_S + dice.uniform(0.0, _BAD_WEATHER_S))


def _farthest_holders(cluster: Cluster) -> Sequence[str]:
    """Of the line whose servers tell them least: those they do tell have no reason to ask for it again."""
    ring = _machine(cluster, cluster.managers[0]).directory.ring

    def told_of(line: Line) -> int:
        holders = set(ring.holders(line.section.start))
        members = (ServerInfo(member.name, address_of(member.name)) for member in line.members)
        return sum(len(holders & told(member, cluster.managers)) for member in members)

    return ring.holders(min(newest(cluster), key=told_of).section.start)


async def directories_agree(cluster: Cluster) -> None:
    """By the operator, when all has been healed for a while. Messages may have been slow until just now: whoever was suspected
    because of that is known to be alive a few rounds of gossip later."""
    await until(lambda: not _disagree(cluster, newest(cluster)), _SETTLED_S, 0.0)
    truth = await _at_rest(cluster)
    for complaint in _disagree(cluster, truth):
        cluster.world.bug(f"{complaint}, though all is healed")
    for name in cluster.managers:
        for line in truth:
            await _asked(cluster, name, line)


async def _at_rest(cluster: Cluster) -> Table:
    """The table, once a monitor has left it alone for so long: servers that were killed by a probe may just have returned."""
    truth = newest(cluster)
    for _ in range(_LOOKS if _is_planned(cluster) else 0):
        await asyncio.sleep(_SETTLED_S)
        before, truth = truth, newest(cluster)
        if list(before) == list(truth):
            break
    return truth


def _is_planned(cluster: Cluster) -> bool:
    return any(name.startswith("monitor") for name in cluster.processes)


def newest(cluster: Cluster) -> Table:
    """What the servers have stored: the homes decide (decision 39)."""
    truth = Table()
    for name in cluster.servers:
        disk = cluster.processes[name].disk
        for line in disk.lines if disk is not None else ():
            truth.hear(line)
    return truth


def _machine(cluster: Cluster, name: str) -> Manager:
    place = cluster.network.place(address_of(name))
    assert place is not None
    machine: Manager = place.service._manager
    return machine


def _disagree(cluster: Cluster, truth: Table) -> list[str]:
    managers = {name: _machine(cluster, name) for name in cluster.managers}
    return [
        f"{name} {complaint}"
        for name, manager in managers.items()
        for complaint in _complaints(name, manager, managers, truth)
    ]


def _complaints(name: str, manager: Manager, all_: dict[str, Manager], truth: Table) -> list[str]:
    directory, found = manager.directory, []
    if directory.ring.managers != set(all_):
        return [f"takes {sorted(directory.ring.managers)} to be alive"]
    if list(directory.peers) != [peer_of(line) for line in truth]:
        found.append("does not know the newest epochs and sections")
    kept = [line for line in truth if name in directory.ring.holders(line.section.start)]
    if list(directory.lines) != kept:
        found.append(f"holds {len(directory.lines)} lines, not the {len(kept)} that are its own")
    for other, theirs in all_.items():
        if directory.servers != theirs.directory.servers:
            found.append(f"knows other servers than {other}")
        if other != name and directory.digest(other).differs(theirs.directory.digest(name)):
            found.append(f"has not settled with {other}")
    return found


async def _asked(cluster: Cluster, name: str, line: Line) -> None:
    """One key; whoever is asked asks one other at most."""
    hops: list[Call] = []
    key = line.section.end - 1
    """Whoever asks for the whole table just now asks for the first keys of sections."""

    def passes(phase: str, call: Call) -> None:
        request = call.request
        if phase == "before" and isinstance(request, pb.LookupRequest) and request.forwarded:
            hops.extend([call] if list(request.keys) == [key] else ())

    cluster.network.watchers.append(passes)
    request = pb.LookupRequest(keys=[key])
    answer = await cluster.network.call(address_of(name), "lookup", request, _ASK_S)
    cluster.network.watchers.remove(passes)
    cluster.world.count(f"look-up with {len(hops)} hops")
    if list(map(line_from_wire, answer.lines)) != [line] or len(hops) > 1:
        told = ", ".join(str(line_from_wire(one)) for one in answer.lines)
        cluster.world.bug(f"{name}: {len(hops)} hops to {told or 'nothing'} for {line}, at rest")
