"""Who reads on which stream, and what each may have there (law 8). Without a judge everything is allowed.

It is asked when a formal is attached, and again of everything attached when other grants are in force."""

from __future__ import annotations

from utuple.delivery.attachments import Attachments
from utuple.delivery.notice import News, Notice
from utuple.model.columns import Columns
from utuple.model.packed import Packed
from utuple.security.identity import Identity
from utuple.security.owners import may_use
from utuple.security.rights import ALLOWED, Verdict
from utuple.server.delivering.devices import Devices
from utuple.server.delivering.sharing.seats import Seats
from utuple.server.ports import DeliveryPort


class StreamRights:
    def __init__(self, engine: DeliveryPort) -> None:
        self._engine = engine
        self._callers: dict[int, Identity] = {}

    def opened(self, stream: int, caller: Identity | None) -> None:
        if caller is not None:
            self._callers[stream] = caller

    def closed(self, stream: int) -> None:
        self._callers.pop(stream, None)

    def refusal(
        self, stream: int, of: Packed | Columns, formal: bytes, generation: int
    ) -> Notice | None:
        """What its reader is told who may not have what meets this EF, or this CF; None if he may."""
        reason = self._why_not(stream, of)
        return Notice(News.NOT_ALLOWED, formal, generation, reason=reason) if reason else None

    def withdrawn(
        self, attached: Attachments[int], devices: Devices, seats: Seats
    ) -> list[tuple[int, Notice]]:
        """By stream, those that may not have theirs any longer."""
        held = [(f, attached.holders[f], attached.generation_of(f)) for f in attached]
        sitting = [
            (pool.formal, one.stream, one.generation)
            for pool in seats
            for one in pool.ledger.seats.values()
        ]
        found = []
        for formal, stream, generation in [*held, *sitting]:
            stored, device = self._engine.writer.templates.get(formal), devices.get(formal)
            of = stored.packed if stored is not None else device.row if device is not None else None
            if of is not None and (told := self.refusal(stream, of, formal, generation)):
                found.append((stream, told))
        return found

    def _why_not(self, stream: int, of: Packed | Columns) -> str:
        """Why the reader on this stream may not be given what meets this EF, or this CF; empty if it may."""
        judge, caller = self._engine.judge, self._callers.get(stream)
        if judge is None or caller is None:
            return ""
        if isinstance(of, Packed):
            return judge.may_receive(of, caller).reason
        return judge.may_serve(of, caller).reason

    def may_speak(self, stream: int, kept: str | None) -> Verdict | None:
        """The reader on this stream, for the reader that is kept so; None if there is none."""
        caller = self._callers.get(stream)
        if caller is None:
            return ALLOWED
        return None if kept is None else may_use(caller, kept)
