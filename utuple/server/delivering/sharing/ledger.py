"""The ledger of a reader that settles each delivery by itself: who has it, how often it was tried, when it comes again. Pure.

An EF whose terms say `share`, `ack_within_s` or `attempts` is read by one or several programs (*seats*). Every delivery goes to
one of them, and is open until that one acknowledges it. It is due again when the seat says so (`nack`), when it was begun
and not acknowledged in time, or when the seat has gone; after so many attempts it is parked, where it waits for an operator and
blocks nobody. A delivery that a seat has in store but has not begun is nobody's attempt: one poisonous event must not
drag those behind it along.

Durable are, by origin, how far deliveries were handed out and which of them are open, with their attempts: a server that starts
again goes on behind the first, and gives the second to whoever is there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from utuple.model.terms import Terms

LEAST_WINDOW, MOST_WINDOW = 16, 1_000
"""Deliveries a seat has at a time. It begins with the least, has more while it settles them within `_PROMPT_S`, and fewer
when it does not: what lies in a slow one's store would be done sooner by another."""
_PROMPT_S = 1.0

Place = tuple[str, int]
"""Origin and seq."""
_FLEETING = "\0"
"""In place of an origin (none is called so), for deliveries of lifetime 0. They have no seq, come once, and are never noted. But a seat
holds them until its program has taken them: it counts what it takes in the order of sending, whatever it is."""


@dataclass(slots=True)
class Open:
    attempts: int = 0
    """That failed."""
    seat: int | None = None
    sent_s: float = 0.0
    begun_s: float | None = None
    due_s: float = 0.0
    """When it is given to somebody, if nobody has it."""


@dataclass(frozen=True, slots=True)
class Parked:
    attempts: int
    parked_us: int
    reason: str


@dataclass(slots=True)
class Seat:
    stream: int
    generation: int
    window: int = LEAST_WINDOW
    held: dict[Place, None] = field(default_factory=dict)
    """In the order they were sent, those of lifetime 0 among them."""

    @property
    def kept(self) -> list[Place]:
        return [place for place in self.held if place[0] != _FLEETING]

    @property
    def room(self) -> int:
        return self.window - len(self.held)


class Ledger:
    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.upto: dict[str, int] = {}
        """By origin: everything up to this seq was handed out, and is open, settled or parked."""
        self.open: dict[Place, Open] = {}
        self.parked: dict[Place, Parked] = {}
        self.seats: dict[int, Seat] = {}
        self.changed: set[str] = set()
        """Origins whose note is to be written."""
        self._fleeting = 0
        """Deliveries of lifetime 0 so far."""

    # --- seats -----------------------------------------------------------------------------------

    def sit(self, stream: int, generation: int) -> None:
        self.seats[stream] = Seat(stream, generation)

    def leave(self, stream: int, now_s: float, now_us: int, *, orderly: bool) -> None:
        """What this seat had is due for the others. If it broke off, what it had begun was tried in vain; if nothing is
        known to be begun, that was the first."""
        seat = self.seats.pop(stream, None)
        if seat is None:
            return
        begun = [place for place in seat.kept if self.open[place].begun_s is not None]
        failed = set() if orderly else set(begun or list(seat.held)[:1])
        for place in seat.kept:
            self._free(place, now_s, now_us, "its program died", counts=place in failed)

    @property
    def window(self) -> int:
        """Deliveries that may be open. Where there are none, one is read ahead and waits for a seat."""
        return max(1, sum(seat.window for seat in self.seats.values()))

    def assign(
        self, origin: str, rows: Iterable[tuple[int, str]], now_s: float
    ) -> dict[int, list[int]]:
        """Who gets which of these rows (seq and address), by their number. Nobody is there: they are due."""
        given: dict[int, list[int]] = {}
        for number, (seq, address) in enumerate(rows):
            place = (origin, seq)
            one = self.open.setdefault(place, Open())
            self.upto[origin] = max(seq, self.upto.get(origin, 0))
            seat = self._seat_for(address)
            if seat is None:
                one.due_s = now_s
            else:
                one.seat, one.sent_s, one.begun_s = seat.stream, now_s, None
                seat.held[place] = None
                given.setdefault(seat.stream, []).append(number)
        self.changed.add(origin)
        return given

    def assign_fleeting(self, addresses: Iterable[str]) -> dict[int, list[int]]:
        """Who gets which of these rows of lifetime 0. Nobody is there: nobody does."""
        given: dict[int, list[int]] = {}
        for number, address in enumerate(addresses):
            seat = self._seat_for(address)
            if seat is not None:
                self._fleeting += 1
                seat.held[_FLEETING, self._fleeting] = None
                given.setdefault(seat.stream, []).append(number)
        return given

    def _seat_for(self, address: str) -> Seat | None:
        seats = self.seats.values()
        if not seats:
            return None
        if self.terms.sticky:
            return max(seats, key=lambda seat: _weight(seat.stream, address))
        return max(seats, key=lambda seat: seat.room)

    # --- what seats say --------------------------------------------------------------------------

    def begin(self, stream: int, count: int, now_s: float) -> bool:
        """The program has taken so many more, in the order they were sent. True: some were of lifetime 0, and there is room again."""
        seat = self.seats.get(stream)
        if seat is None:
            return False
        waiting = [
            place
            for place in seat.held
            if place[0] == _FLEETING or self.open[place].begun_s is None
        ]
        fleeting = [place for place in waiting[:count] if place[0] == _FLEETING]
        for place in waiting[:count]:
            if place[0] != _FLEETING:
                self.open[place].begun_s = now_s
        for place in fleeting:
            del seat.held[place]
        return bool(fleeting)

    def settle(self, origin: str, seqs: Iterable[int], now_s: float) -> int:
        """Done, whoever says so. Returns how many of them were open."""
        done = 0
        for seq in seqs:
            one = self.open.pop((origin, seq), None)
            if one is not None:
                done += 1
                self._release((origin, seq), one, is_prompt=now_s - one.sent_s < _PROMPT_S)
        if done:
            self.changed.add(origin)
        return done

    def refuse(
        self,
        stream: int,
        origin: str,
        seqs: Iterable[int],
        after_s: float,
        now_s: float,
        now_us: int,
    ) -> None:
        """Not done: again after so long. Only who has it may say so."""
        for seq in seqs:
            one = self.open.get((origin, seq))
            if one is not None and one.seat == stream:
                self._free(
                    (origin, seq), now_s, now_us, "it was refused", counts=True, after_s=after_s
                )

    def tick(self, now_s: float, now_us: int) -> bool:
        """What was begun and not settled in time is due again, or parked. True: there was some, and its seats have room."""
        is_late = False
        late_s = now_s - self.terms.redelivered_after_s
        for seat in list(self.seats.values()):
            for place in seat.kept:
                begun_s = self.open[place].begun_s
                if begun_s is not None and begun_s <= late_s:
                    seat.window = LEAST_WINDOW
                    self._free(place, now_s, now_us, "it was not acknowledged in time", counts=True)
                    is_late = True
        return is_late

    # --- what is due -----------------------------------------------------------------------------

    def due(self, now_s: float) -> dict[str, list[int]]:
        """By origin, what nobody has and somebody should have, as far as there is room."""
        room = sum(max(0, seat.room) for seat in self.seats.values())
        found: dict[str, list[int]] = {}
        for (origin, seq), one in sorted(self.open.items()) if room > 0 else ():
            if one.seat is None and one.due_s <= now_s and room > 0:
                found.setdefault(origin, []).append(seq)
                room -= 1
        return found

    def next_due_s(self) -> float | None:
        return min((one.due_s for one in self.open.values() if one.seat is None), default=None)

    def position(self, origin: str) -> int:
        """Everything up to this seq is settled or parked."""
        first = min((seq for there, seq in self.open if there == origin), default=None)
        return self.upto.get(origin, 0) if first is None else first - 1

    # --- parked ----------------------------------------------------------------------------------

    def unpark(self, places: Iterable[Place], now_s: float, *, again: bool) -> list[Place]:
        """Released, to be tried anew; or dropped. Returns those that were parked."""
        found = [place for place in places if self.parked.pop(place, None) is not None]
        for place in found:
            if again:
                self.open[place] = Open(due_s=now_s)
            self.changed.add(place[0])
        return found

    def _free(
        self,
        place: Place,
        now_s: float,
        now_us: int,
        reason: str,
        *,
        counts: bool,
        after_s: float = 0.0,
    ) -> None:
        one = self.open[place]
        self._release(place, one, is_prompt=None)
        one.seat, one.begun_s, one.due_s = None, None, now_s + after_s
        one.attempts += counts
        if one.attempts >= self.terms.most_attempts:
            del self.open[place]
            self.parked[place] = Parked(one.attempts, now_us, reason)
        self.changed.add(place[0])

    def _release(self, place: Place, one: Open, *, is_prompt: bool | None) -> None:
        seat = self.seats.get(one.seat) if one.seat is not None else None
        if seat is not None:
            seat.held.pop(place, None)
            if is_prompt is not None:
                grown = seat.window + 1 if is_prompt else seat.window // 2
                seat.window = min(MOST_WINDOW, max(LEAST_WINDOW, grown))

    # --- notes -----------------------------------------------------------------------------------

    def encode(self, origin: str) -> bytes:
        form = {
            "upto": self.upto.get(origin, 0),
            "open": [[seq, o.attempts] for (there, seq), o in self.open.items() if there == origin],
            "parked": [
                [seq, p.attempts, p.parked_us, p.reason]
                for (there, seq), p in self.parked.items()
                if there == origin
            ],
        }
        return json.dumps(form).encode()

    def restore(self, origin: str, body: bytes) -> None:
        """What is open is due: whoever had it has to say that it is there."""
        form = json.loads(body)
        self.upto[origin] = form["upto"]
        for seq, attempts in form["open"]:
            self.open[origin, seq] = Open(attempts)
        for seq, *said in form["parked"]:
            self.parked[origin, seq] = Parked(*said)

    def inherit(self, origin: str, body: bytes) -> None:
        """Of a server that was drained, which has said its last word. What was handed out here already, because nobody had told
        of this ledger in time, is known here."""
        form, own_upto = json.loads(body), self.upto.get(origin, 0)
        self.upto[origin] = max(own_upto, form["upto"])
        for seq, attempts in form["open"]:
            if seq > own_upto:
                self.open[origin, seq] = Open(attempts)
        for seq, *said in form["parked"]:
            if (origin, seq) not in self.open:
                self.parked[origin, seq] = Parked(*said)
        self.changed.add(origin)


def _weight(stream: int, address: str) -> bytes:
    """Rendezvous hashing: when a seat goes, only its own addresses go elsewhere."""
    return hashlib.blake2b(f"{stream}/{address}".encode(), digest_size=8).digest()


def attempts_of(ledger: Ledger, origin: str, seqs: Sequence[int]) -> Mapping[int, list[int]]:
    """The numbers of these rows, by the attempts that each of them had."""
    found: dict[int, list[int]] = {}
    for number, seq in enumerate(seqs):
        found.setdefault(ledger.open[origin, seq].attempts, []).append(number)
    return found
