"""sCA servers that join, leave and die while commands flow, in the calm: every answer must be right.

Devices stay connected all the time, so each command to one of them is handed over, once, whichever sCA server it reaches first
and however often it is sent. One device is known and away: "not connected" is what its sender is to hear, never that there is no
such device. In the end each sCA server keeps the devices of its share and no other.

In some seeds the program of these devices is busy in the middle of a change: some of them have followed their share, the others do
so seconds later. They are connected all the time, so nobody may be told otherwise; a program that is busy only cannot confirm.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from benchmarks.chaos.checker import Outcome
from tests.virtual.coverage import BUSY, SHARED_OUT, shared_out_by
from tests.virtual.programs.clients import CONFIG, Client, id_of
from tests.virtual.programs.cluster import Cluster
from utuple.client.arguments import Place, template
from utuple.client.receiving.deliveries import Deliveries
from utuple.client.routing.lines import Lines
from utuple.client.sending.receipt import Receipt
from utuple.cluster.shares import Shares
from utuple.errors import UTupleError
from utuple.model.utuple import Family, UTuple

DEVICES = 6
BUSY_AFTER = 3
AWAY = "away"
CHANGES = 2
_EVERY_S = 0.3
_AT_ONCE, _AT_ONCE_S = 6, 0.002
_ON_THEIR_WAY = CONFIG.window - 1
_BETWEEN_S = 14.0
"""From one change to the next: all has settled by then."""
_OVERLAPPING_S = 2.0
"""In some seeds the second comes while devices still move because of the first."""
_BUSY_S = 8.0
"""Longer than devices are waited for that nobody has announced, shorter than a program may say that more are on their way."""
_TURNS = 20
"""Of the event loop, each of which tells one listener: by then the first devices have said that they come."""
_BUSY = 0.5
"""The share of seeds with a busy program."""


class _Scene:
    def __init__(self, cluster: Cluster, client: Client, family: Family) -> None:
        self.cluster = cluster
        self.world = cluster.world
        self.client = client
        self.family = family
        self.dice = cluster.world.dice("shared out")
        self.asked: list[asyncio.Task[None]] = []
        self.on_their_way: Counter[str] = Counter()
        """Commands without an answer, by device."""
        self.died_us = 0
        """When an sCA server last did."""
        self.shares = self.lines.scas
        self.was_busy = False
        self.may_be_busy = False
        """Nothing else changes while it is: of a program that says nothing at all nobody can know."""

    @property
    def lines(self) -> Lines:
        assert self.client.space is not None
        return self.client.space._parts.lines

    # --- devices and commands --------------------------------------------------------------------------

    async def serve(self, number: int) -> tuple[str, Deliveries, asyncio.Task[None]]:
        assert self.client.space is not None
        label, asked_us = f"spread {number}", self.world.now_us
        device = await self.client.space.serve(
            subject=self.family.subject, type=self.family.type, address=label
        ).open()
        self.world.history.served(label, device._utuple, asked_us, self.world.now_us)
        return label, device, asyncio.create_task(self.client._take_commands(device, label))

    async def leave_one_away(self) -> None:
        assert self.client.space is not None
        subject, type_ = self.family
        device = self.client.space.serve(subject=subject, type=type_, address=AWAY, reader=AWAY)
        async with device:
            pass

    async def command(self, sender: Client, address: str) -> None:
        space, number, began_us = sender.space, self.world.next_number(), self.world.now_us
        assert space is not None
        data, family = {"n": number}, self.family
        utuple = UTuple(id_of(number), family, template(Place(address=address)), data, None, 0.0)
        try:
            receipt = await space.command(
                subject=family.subject, type=family.type, address=address, data=data
            )
        except UTupleError as error:
            self.world.bug(f"a command to {address} fails while sCA servers change", error)
            return
        handed = [address] if receipt.handed_over else []
        self.world.history.commanded(utuple, began_us, self.world.now_us, Outcome.OK, handed)
        self.judge(address, receipt, began_us)

    def judge(self, address: str, receipt: Receipt, began_us: int) -> None:
        """Who asked one that died before it answered cannot know that nobody got it."""
        said = [device.reason or "handed over" for device in receipt.devices]
        right = [["not connected"]] if address == AWAY else [["handed over"]]
        if self.was_busy or (address == AWAY and self.died_us >= began_us):
            right.append(["not confirmed"])
        if said not in right:
            self.world.bug(f"a command to {address} is answered {said} while sCA servers change")

    # --- a busy program --------------------------------------------------------------------------------

    def be_busy(self) -> None:
        """Its devices so far were told to follow their share, those opened later were not yet. If nothing of it has come to a server
        by then, that cannot know of the others."""
        before, self.shares = self.shares, self.lines.scas
        told, untold = (
            {owner for at in numbers if (owner := self.new_owner(at, before)) is not None}
            for numbers in (range(BUSY_AFTER), range(BUSY_AFTER, DEVICES))
        )
        if not self.may_be_busy or not untold or not untold <= told:
            return
        if self.cluster.stop(self.client.process.name, _BUSY_S):
            self.was_busy, self.may_be_busy = True, False
            self.world.count(BUSY)

    def new_owner(self, number: int, before: Shares) -> str | None:
        """None: it stays."""
        then, now = (
            shares.owner(self.family, f"spread {number}") for shares in (before, self.shares)
        )
        return now if now != then else None

    async def flow(self, senders: list[Client]) -> None:
        """Until cancelled: a command to each device, every now and then."""
        while True:
            self.command_each(senders)
            if self.dice.random() < 0.3:
                self.asked.append(asyncio.create_task(self.command(self.client, AWAY)))
            await asyncio.sleep(_EVERY_S * (0.5 + self.dice.random()))

    def command_each(self, senders: list[Client]) -> None:
        """While an sCA server is away commands wait, and then all come at once: what is more than a window of its program
        would not be confirmed, and its sender be told so."""
        for number in range(DEVICES):
            sender, address = self.dice.choice(senders), f"spread {number}"
            if self.on_their_way[address] < _ON_THEIR_WAY:
                self.on_their_way[address] += 1
                self.asked.append(asyncio.create_task(self.command_one(sender, address)))

    async def command_one(self, sender: Client, address: str) -> None:
        await self.command(sender, address)
        self.on_their_way[address] -= 1

    async def flow_thickly(self, senders: list[Client]) -> None:
        """For as long as word of a change is on its way: some commands are in their devices' hands and not confirmed yet."""
        for _ in range(_AT_ONCE):
            self.command_each(senders)
            await asyncio.sleep(_AT_ONCE_S * self.dice.random())

    # --- sCA servers -----------------------------------------------------------------------------------

    def change(self) -> str:
        """What happened, if it could."""
        cluster, dice = self.cluster, self.dice
        serving = [name for name in cluster.serving_scas if cluster.processes[name].is_up]
        kind = dice.choice(("joins", "leaves", "dies", "restarts") if serving else ("joins",))
        name = dice.choice(cluster.scas if kind == "joins" else serving)
        match kind:
            case "joins":
                done = cluster.join_sca(name)
            case "leaves":
                done = len(serving) > 1 and cluster.leave_sca(name)
            case "dies":
                done = len(serving) > 1 and cluster.crash(name, 4 * _BETWEEN_S)
            case _:
                done = cluster.crash(name, dice.choice((0.1, 1.0, 5.0)))
        if done and kind in ("dies", "restarts"):
            self.died_us = self.world.now_us
        return kind if done else ""

    def check_shares(self) -> None:
        cluster = self.cluster
        up = [name for name in cluster.serving_scas if cluster.processes[name].is_up]
        for name in up:
            program = cluster.processes[name].sca
            assert program is not None
            tenure, index = program.core.tenure, program.core.index
            if sorted(tenure.shares.names) != sorted(up):
                self.world.bug(f"{name} shares devices out among {tenure.shares.names}, not {up}")
            strays = [
                one.address for one in index.all() if not tenure.owns(one.family, one.address)
            ]
            if strays:
                self.world.bug(f"{name} keeps what is another's: {strays}")


async def shared_out(cluster: Cluster, client: Client, other: Client, family: Family) -> None:
    scene = _Scene(cluster, client, family)
    opened = [await scene.serve(number) for number in range(BUSY_AFTER)]
    listeners = [*[lambda: None] * _TURNS, scene.be_busy] if scene.dice.random() < _BUSY else []
    unlisten = [scene.lines.listen_to_scas(one) for one in listeners]
    opened += [await scene.serve(number) for number in range(BUSY_AFTER, DEVICES)]
    await scene.leave_one_away()
    senders = [client, other]
    flowing = asyncio.create_task(scene.flow(senders))
    apart_s = scene.dice.choice((_BETWEEN_S, _BETWEEN_S, _OVERLAPPING_S))
    for _ in range(CHANGES):
        await asyncio.sleep(1.0 + scene.dice.random())
        if kind := scene.change():
            # A newcomer refuses streams until it has heard grants: nothing of the program has come to it by then.
            is_deaf = kind == "restarts" or (kind == "joins" and cluster.trust is not None)
            scene.may_be_busy = apart_s == _BETWEEN_S and not is_deaf
            cluster.world.count(shared_out_by(kind))
            await scene.flow_thickly(senders)
            await asyncio.sleep(apart_s)
    await asyncio.sleep(_BETWEEN_S)
    flowing.cancel()
    await asyncio.gather(*scene.asked)
    cluster.world.count(SHARED_OUT)
    for end in unlisten:
        end()
    scene.check_shares()
    for label, device, taking in opened:
        cluster.world.history.served_no_more(label, cluster.world.now_us)
        await device.close()
        await taking
