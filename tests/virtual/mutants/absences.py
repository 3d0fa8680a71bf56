"""The rules of drops that are declared (law 9) and of deliveries that are shared, each with a switch that turns it off."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from tests.replacing import replaced
from tests.virtual.mutants.serving import Mutant
from tests.virtual.world.loop import LIFE
from utuple.model.terms import place_of
from utuple.server.delivering.absent import absences
from utuple.server.delivering.absent.absences import LAST_SEQ, Absence, Absences
from utuple.server.delivering.absent.away import AwayReaders
from utuple.server.delivering.sharing.brought import Brought
from utuple.server.delivering.sharing.ledger import Ledger


def the_note_of_an_absence_is_not_durable() -> AbstractContextManager[None]:
    """A server that starts again knows of none."""

    def nothing(self: Absences, notes: Mapping[str, bytes]) -> None:
        self._of, self.unsaved, self._in_flight = {}, {}, {}

    return replaced(Absences, "restore", nothing)


def the_hash_differs_by_member() -> AbstractContextManager[None]:
    def by_member(formal: bytes, event: bytes, zeta: float) -> bool:
        life = LIFE.get()
        assert life is not None
        return place_of(formal + life.name.encode(), event) < zeta

    return replaced(absences, "joins", by_member)


def what_comes_while_connected_is_dropped() -> AbstractContextManager[None]:
    """An absence does not end when the reader is back."""
    close = Absences.close

    def late(self: Absences, formal: bytes, upto: int, now_us: int) -> None:
        close(self, formal, LAST_SEQ // 2, now_us)

    return replaced(Absences, "close", late)


def drops_are_not_declared() -> AbstractContextManager[None]:
    def silent(self: AwayReaders, formal: bytes) -> None:
        return

    return replaced(AwayReaders, "declare", silent)


@contextmanager
def delivered_before_it_is_decided() -> Iterator[None]:
    """Nothing is held back: the rows of a span come as if there were no policy, until it is decided."""

    def every(self: Absence, seq: int) -> bool:
        return self.decision is not None and self.after < seq <= (self.upto or 0)

    def saved(self: Absences, formal: bytes) -> bool:
        return True

    with replaced(Absences, "is_saved", saved), replaced(Absence, "holds", every):
        yield


def an_heir_decides_before_the_last_word() -> AbstractContextManager[None]:
    named = AwayReaders.named

    def said_at_once(self: AwayReaders, name: str, move: str) -> list[Absence]:
        return named(self, name, "")

    return replaced(AwayReaders, "named", said_at_once)


def what_a_dead_one_held_is_lost() -> AbstractContextManager[None]:
    leave = Ledger.leave

    def lose(self: Ledger, stream: int, now_s: float, now_us: int, *, orderly: bool) -> None:
        held = list(self.seats[stream].held) if stream in self.seats else []
        leave(self, stream, now_s, now_us, orderly=orderly)
        for place in held:
            self.open.pop(place, None)

    return replaced(Ledger, "leave", lose)


def what_is_refused_counts_as_done() -> AbstractContextManager[None]:
    def done(
        self: Ledger,
        stream: int,
        origin: str,
        seqs: Iterable[int],
        after_s: float,
        now_s: float,
        now_us: int,
    ) -> None:
        self.settle(origin, seqs, now_s)

    return replaced(Ledger, "refuse", done)


def what_is_never_stored_stays_in_the_way() -> AbstractContextManager[None]:
    """Deliveries of lifetime 0 are taken, and their room is not given back."""
    begin = Ledger.begin

    def kept_ones(self: Ledger, stream: int, count: int, now_s: float) -> bool:
        held = dict(self.seats[stream].held)
        begin(self, stream, count, now_s)
        self.seats[stream].held = held
        return False

    return replaced(Ledger, "begin", kept_ones)


def what_is_parked_leaves_its_seat_full() -> AbstractContextManager[None]:
    """It is parked, and nothing else is given in its place."""
    tick = Ledger.tick

    def silent(self: Ledger, now_s: float, now_us: int) -> bool:
        tick(self, now_s, now_us)
        return False

    return replaced(Ledger, "tick", silent)


def what_is_parked_does_not_go_with_a_drain() -> AbstractContextManager[None]:
    def nothing(self: Brought, move: str) -> list[tuple[bytes, str, bytes]]:
        return []

    return replaced(Brought, "ended", nothing)


ABSENCES: dict[str, Mutant] = {
    "an heir decides before the last word": an_heir_decides_before_the_last_word,
    "what a dead one held is lost": what_a_dead_one_held_is_lost,
    "what is parked does not go with a drain": what_is_parked_does_not_go_with_a_drain,
    "what is parked leaves its seat full": what_is_parked_leaves_its_seat_full,
    "what is never stored stays in the way": what_is_never_stored_stays_in_the_way,
    "what is refused counts as done": what_is_refused_counts_as_done,
    "the note of an absence is not durable": the_note_of_an_absence_is_not_durable,
    "the hash differs by member": the_hash_differs_by_member,
    "what comes while connected is dropped": what_comes_while_connected_is_dropped,
    "drops are not declared": drops_are_not_declared,
    "delivered before it is decided": delivered_before_it_is_decided,
}
