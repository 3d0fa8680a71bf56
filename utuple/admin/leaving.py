"""A server is told to leave. Has it left? What still keeps a draining one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from utuple.admin import transport
from utuple.admin.choice import NotDone, last_one, serving, staying
from utuple.admin.moves import ShownMove, sentence
from utuple.admin.snapshot import Snapshot, snapshot_of


async def tell_to_leave(at: Sequence[str], snapshot: Snapshot, name: str) -> None:
    """Of several who are told at a time none may have been the last one when it was asked about. So whoever has told one looks once
    more, and takes it back if nobody stays: then perhaps all stay, and it is tried again."""
    address = serving(snapshot, name).address
    answer = await transport.leave(address)
    if not answer.leaving:
        raise NotDone(f"{name} does not leave: {answer.reason}")
    if not staying(await snapshot_of(at, brief=True)):
        await transport.leave(address, stay=True)
        raise last_one(name)


@dataclass(frozen=True, slots=True)
class Rest:
    """What is left of a server in the cluster."""

    on: int
    """Sections in which it still takes EAs and CFs."""
    off: int
    moves: tuple[ShownMove, ...]
    """Under way, that are about it."""
    answers: bool

    @property
    def is_out(self) -> bool:
        return self.answers and not (self.on or self.off or self.moves)

    def __str__(self) -> str:
        if not self.answers:
            return "does not answer"
        parts = []
        if self.on or self.off:
            sections = self.on + self.off
            parts.append(
                f"in {sections} section{'s' if sections > 1 else ''} ({self.on} on, {self.off} off)"
            )
        parts += (f"{sentence(move)} [{move.step}]" for move in self.moves)
        return "; ".join(parts) or "in no line"


def rest_of(name: str, snapshot: Snapshot) -> Rest:
    server = snapshot.server(name)
    members = [line.member(name) for line in snapshot.lines]
    flags = [member.accumulatable for member in members if member is not None]
    return Rest(
        on=sum(flags),
        off=len(flags) - sum(flags),
        moves=tuple(move for move in snapshot.under_way if name in (move.member, move.helper)),
        answers=snapshot.whole and server is not None and server.serves,
    )
