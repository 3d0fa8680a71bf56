"""Sharing devices out with the other sCA servers: meets them again and again, and acts when their names change.

What to believe is `membership`'s, what may be said of a device meanwhile `tenure`'s. Here is what follows from a change: readers
are told, so that devices move; the managers are told, so that clients hear of it; the others are met at once, so that all agree
soon; CFs are read again if some became ours, and those that are another's by now are forgotten.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from sca_server import transport
from sca_server.config import Config
from sca_server.core import Core
from sca_server.filling.refill import Refills
from sca_server.outbox import Servers
from sca_server.readers import Stream
from sca_server.sharing.membership import Membership
from utuple.cluster.line import ServerInfo
from utuple.errors import UTupleError
from utuple.runtime import clock
from utuple.runtime.logs import Log
from utuple.runtime.tasks import Tasks

_log = Log("sca_server.sharing.meeting")

_LOOK_S = 0.02
"""How often one that leaves looks whether its devices have gone."""


class Sharing:
    def __init__(
        self,
        config: Config,
        core: Core,
        membership: Membership,
        refills: Refills,
        *,
        wake: Callable[[Stream], None],
        announce: Callable[[], None],
    ) -> None:
        self._config = config
        self._core = core
        self._membership = membership
        self._refills = refills
        self._wake = wake
        self._announce = announce
        self._meetings = Tasks()
        self._met: set[str] = set()
        """Those that are being met now."""
        self._shares = membership.shares
        core.servers = Servers(tuple(membership.infos))
        self._sweeping = asyncio.Event()
        self.read_again = asyncio.Event()
        """CFs are to be read: at once, and not at leisure."""

    @property
    def infos(self) -> list[ServerInfo]:
        return self._membership.infos

    @property
    def own(self) -> ServerInfo:
        return self._membership.own

    async def run(self) -> None:
        """For ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._sweep())
            while True:
                self._beat()
                self._meet_all()
                if self._membership.look(self._now_s()):
                    self._act("an sCA server is silent")
                self.progress()
                await asyncio.sleep(self._config.meet_every_s)

    def _beat(self) -> None:
        now_s, awake = clock.monotonic_s(), self._core.awake
        stood_still = awake.is_late(now_s)
        awake.beat(now_s)
        if stood_still and self._membership.peers:
            _log.warning("stood still: asks the other sCA servers what they know")
            self._membership.doubt()
            self._core.tenure.doubt(self._now_s())
            self._refills.again()

    def _now_s(self) -> float:
        return self._core.awake.at(clock.monotonic_s())

    # --- what is heard --------------------------------------------------------------------------------

    def hear(self, infos: Iterable[ServerInfo]) -> None:
        """From a manager."""
        if self._membership.hear(infos, self._now_s()):
            self._act("heard of sCA servers")
        self.progress()

    def met(self, name: str, infos: Iterable[ServerInfo]) -> list[ServerInfo]:
        """Another has called, or answered; what it is told. It has heard what we knew before it answered, and we act on what
        it says before we do."""
        if self._membership.answered(name, infos, self._now_s()):
            self._act(f"met {name}")
        self.progress()
        return self.infos

    # --- meeting --------------------------------------------------------------------------------------

    def _meet_all(self) -> None:
        for peer in self._membership.peers:
            if peer.name not in self._met:
                self._met.add(peer.name)
                self._meetings.start(self._meet(peer), f"meeting {peer.name}")

    async def _meet(self, peer: ServerInfo) -> None:
        """Again while we do not agree with it."""
        try:
            known: object = None
            while known != self._membership.shares:
                known = self._membership.shares
                told = await transport.meet(
                    peer, self.own.name, self.infos, self._config.meet_limit_s
                )
                self.met(peer.name, told)
        except UTupleError:
            pass  # it is silent, and may be so for too long
        finally:
            self._met.discard(peer.name)

    # --- what follows ---------------------------------------------------------------------------------

    def _act(self, why: str) -> None:
        """Something is news of an sCA server: all are told. If the names have changed, shares have."""
        shares = self._membership.shares
        if shares != self._shares:
            self._shares = shares
            _log.info("devices are shared out anew", among=", ".join(shares.names), reason=why)
            if self._core.tenure.change(shares, self._now_s()):
                self._refills.again()
            elif self._core.tenure.is_settled:
                self._refills.nothing_gained()
            self._sweeping.set()
        self._announce()
        for stream in self._core.tell_servers(Servers(tuple(self.infos))):
            self._wake(stream)
        self._meet_all()

    def progress(self) -> None:
        """Something was heard or read, or time has passed: all may agree now, or have settled."""
        tenure, now_s = self._core.tenure, self._now_s()
        if tenure.agree(by_all=self._membership.all_agree(), now_s=now_s):
            self.read_again.set()
        if tenure.settle(filled=self._refills.reading.is_complete, now_s=now_s):
            self._refills.settle()
            _log.info("settled", among=", ".join(tenure.shares.names))

    async def _sweep(self) -> None:
        """For ever: forget the CFs of others, in slices, so that commands go on between them."""
        step = self._config.slice_rows
        while True:
            await self._sweeping.wait()
            self._sweeping.clear()
            devices = self._core.index.all()
            for at in range(0, len(devices), step):
                self._core.forget_strays(devices[at : at + step])
                await asyncio.sleep(0)

    # --- leaving --------------------------------------------------------------------------------------

    async def leave(self) -> None:
        """Others take the devices over. What was handed to a device here may be confirmed until it has gone."""
        if not self._membership.peers:
            return
        self._membership.leave(clock.now_us())
        self._act("this one leaves")
        until_s = clock.monotonic_s() + self._config.leave_s
        while self._core.readers.attached.holders and clock.monotonic_s() < until_s:
            self._meet_all()
            await asyncio.sleep(_LOOK_S)
        await asyncio.gather(*self._meetings, return_exceptions=True)

    async def close(self) -> None:
        await self._meetings.close()
