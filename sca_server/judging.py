"""The judge at an sCA server: the commands and CFs of a caller against the grants. Pure; without one everything is allowed.

A CF was judged with its position when it was registered. Here its position is not kept, so that later it is asked again by
family and address alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from sca_server.commands import Commands
from sca_server.index import Device
from sca_server.shares import ScaShares
from utuple.errors import NotAllowed
from utuple.model.columns import Columns
from utuple.security.grants import Action, Grants
from utuple.security.identity import Identity
from utuple.security.owners import may_use, owned, under_others
from utuple.security.rights import Verdict, allow_address, allow_addressed, allow_rows

Wrong = list[tuple[int, NotAllowed]]


class Holder(Protocol):
    """Who has the grants in force."""

    @property
    def grants(self) -> Grants: ...


class ScaJudge:
    def __init__(
        self, holder: Holder, refused: Callable[[str, str, str], None], shares: ScaShares
    ) -> None:
        """`refused` hears of what was: who, what, why."""
        self.shares = shares
        self._holder = holder
        self._refused = refused

    def devices(self, columns: Columns, caller: Identity) -> tuple[Columns, Wrong]:
        """With their readers under their owner's name; and the rows that are refused."""
        wrong = under_others(caller, columns.each_id())
        wrong |= allow_rows(self._holder.grants, caller, Action.SERVE, columns)
        readers = [owned(caller.name, reader) for reader in columns.readers]
        return replace(columns, readers=readers), self._told(caller, Action.SERVE, wrong)

    def commands(self, commands: Commands, caller: Identity) -> Wrong:
        wrong = allow_addressed(
            self._holder.grants,
            caller,
            Action.COMMAND,
            commands.families,
            commands.family,
            commands.addresses,
        )
        return self._told(caller, Action.COMMAND, wrong)

    def may_serve(self, device: Device, caller: Identity) -> Verdict:
        own = may_use(caller, device.reader)
        if not own.is_allowed:
            return own
        grants = self._holder.grants
        return allow_address(grants, caller, Action.SERVE, device.family, device.address)

    def _told(self, caller: Identity, what: str, wrong: dict[int, Verdict]) -> Wrong:
        for _ in wrong:
            self._refused(caller.uri, what, "NotAllowed")
        return [(row, NotAllowed(verdict.reason)) for row, verdict in wrong.items()]
