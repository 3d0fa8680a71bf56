"""The rules by which sCA servers share devices out, each with a switch that turns it off."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import AbstractContextManager
from typing import Any

from sca_server.core import Core
from sca_server.filling.refill import Refill, Refills
from sca_server.filling.refilling import Refilling
from sca_server.sharing.membership import Membership
from sca_server.sharing.tenure import Tenure
from tests.replacing import replaced
from tests.virtual.mutants.serving import Mutant
from utuple.client.receiving.device import Device
from utuple.cluster.line import ServerInfo
from utuple.cluster.shares import Shares


def an_sca_server_speaks_for_all_devices() -> AbstractContextManager[None]:
    """Also for those of others: what it does not know is not connected, or is not there."""
    return replaced(Tenure, "owns", lambda self, family, address: True)


def devices_get_no_time_to_come() -> AbstractContextManager[None]:
    """What became ours is spoken for at once, as if its devices were here already."""
    return replaced(Tenure, "is_steady", lambda self, family, address: True)


def devices_do_not_follow_their_share() -> AbstractContextManager[None]:
    """They stay attached where they were, as long as that one lives."""

    def stay(self: Device) -> None:
        return

    return replaced(Device, "_shared_out", stay)


def what_became_ours_is_not_read() -> AbstractContextManager[None]:
    """Devices that are away, and so do not come by themselves, are never heard of."""

    def keep(self: Refills) -> None:
        return

    return replaced(Refills, "again", keep)


def a_share_is_read_by_the_names_of_before() -> AbstractContextManager[None]:
    """uTupleServers send what belonged to it when all was settled last, not what belongs to it now."""
    read = Refilling._read

    async def read_the_old(
        self: Refilling, server: ServerInfo, refill: Refill, shares: Shares
    ) -> None:
        await read(self, server, refill, self._core.tenure._settled or shares)

    return replaced(Refilling, "_read", read_the_old)


def programs_are_not_waited_for() -> AbstractContextManager[None]:
    """That more devices are on their way is not heard: a pause is taken for the end."""

    def hear_nothing(self: Tenure, program: Hashable, *, more: bool) -> None:
        return

    return replaced(Tenure, "bring", hear_nothing)


def a_silent_sca_server_keeps_its_share() -> AbstractContextManager[None]:
    def look(self: Membership, now_s: float) -> bool:
        return False

    return replaced(Membership, "look", look)


def what_is_lost_is_kept() -> AbstractContextManager[None]:
    """Each sCA server keeps what it has read, whosever it is by now."""

    def keep(self: Any, devices: Any) -> None:
        return

    return replaced(Core, "forget_strays", keep)


SCAS: dict[str, Mutant] = {
    "an sCA server speaks for all devices": an_sca_server_speaks_for_all_devices,
    "devices get no time to come": devices_get_no_time_to_come,
    "devices do not follow their share": devices_do_not_follow_their_share,
    "what became ours is not read": what_became_ours_is_not_read,
    "a share is read by the names of before": a_share_is_read_by_the_names_of_before,
    "programs that bring more devices are not waited for": programs_are_not_waited_for,
    "a silent sCA server keeps its share": a_silent_sca_server_keeps_its_share,
    "an sCA server keeps the devices of others": what_is_lost_is_kept,
}
