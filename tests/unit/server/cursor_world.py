"""A world around `Cursors`, from dice: a store, searches under way, streams, and readers that take, stop,
leave, come back and start again; drains that reveal their rows; a store that is lost, a server that is; and in between
rows of lifetime 0, which must change nothing about all that.

Each of three other servers has registered rows of two families; each family of each is revealed once, in any
order, its seqs lying between those of the other. `wrong` gathers what must never be seen.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from dataclasses import dataclass, field, replace
from random import Random

from utuple.model.columns import columns_of
from utuple.model.utuple import Exact, Family, UTuple
from utuple.model.weight import weight_bytes
from utuple.server.delivering.cursor import Cursor, Limits, Reading, Sending
from utuple.server.delivering.cursors import Cursors
from utuple.server.matching.matched import matches_of
from utuple.store.contract import OWN_ORIGIN, Batch, FormalPosition

FAMILIES = {b"a" * 16: 0, b"b" * 16: 0, b"c" * 16: 1}
"""Formals, and the family each is of."""
FORMALS = list(FAMILIES)
STREAMS = (1, 2)
OTHERS = ("X", "Y", "Z")
BROUGHT = 10
"""Rows of each of the others."""


HEAVY_BYTES = 1_000
PASSING = -1
"""In place of the seq, of what is of lifetime 0: it has none."""


def payload_of(seq: int) -> bytes:
    """Every third is heavy."""
    return b"x" * HEAVY_BYTES if seq != PASSING and seq % 3 == 0 else b"{}"


def batch_of(seqs: list[int], origin: str = OWN_ORIGIN) -> Batch:
    event = UTuple(b"e" * 16, Family("s", "t"), Exact("a", 1), {}, None, 60)
    columns = columns_of([event] * len(seqs))
    columns = replace(columns, payloads=[payload_of(seq) for seq in seqs])
    return Batch(columns, array("Q", seqs), array("q", [10**15] * len(seqs)), origin)


@dataclass
class Running:
    """A search under way, for one formal or for several: what it found when it began."""

    readings: list[Reading]
    found: list[int]


@dataclass
class Reader:
    """What one formal's reader has, by origin."""

    window: int
    window_bytes: int
    got: dict[str, list[int]]
    received: dict[str, int]
    attachment: int = 0
    weights: list[int] = field(default_factory=list)
    """Of what is not taken yet."""

    @property
    def untaken(self) -> int:
        return len(self.weights)


class World:
    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self.wrong: list[str] = []
        self.stream_rows = dice.randint(1, 8)
        self.rows: dict[str, dict[int, set[bytes]]] = {OWN_ORIGIN: {}}
        """The store: by origin and seq, the formals a row matches."""
        self.hidden: dict[tuple[str, int], dict[int, set[bytes]]] = defaultdict(dict)
        for origin in OTHERS:
            for seq in range(1, BROUGHT + 1):
                family = dice.randrange(2)
                self.hidden[origin, family][seq] = self.some_formals(family)
        self.committed = 0
        self.saved: dict[tuple[bytes, str], int] = {}
        self.limits = Limits(stream_bytes=dice.choice((1, 2_500, 10**6)))
        self.cursors = Cursors(0, self.stream_rows, self.limits)
        self.wires: dict[int, list[tuple[bytes, int, str, int]]] = {}
        self.weights: dict[int, list[int]] = {}
        """Of what is on them, with the first row of each sending."""
        self.running: list[Running] = []
        self.readers = {
            id_: Reader(
                dice.randint(1, 6), dice.choice((0, 1, 1_500, 10**6)), defaultdict(list), {}
            )
            for id_ in FORMALS
        }
        for stream in STREAMS:
            self.open(stream)

    def some_formals(self, family: int) -> set[bytes]:
        of_it = [formal for formal in FORMALS if FAMILIES[formal] == family]
        return {formal for formal in of_it if self.dice.random() < 0.7}

    # --- the server ------------------------------------------------------------------------------

    def store_rows(self) -> list[int]:
        seqs = list(range(self.committed + 1, self.committed + self.dice.randint(1, 6) + 1))
        self.rows[OWN_ORIGIN] |= {seq: self.some_formals(self.dice.randrange(2)) for seq in seqs}
        self.committed = seqs[-1]
        return seqs

    def commit(self) -> None:
        seqs = self.store_rows()
        own = self.rows[OWN_ORIGIN]
        matches = matches_of((row, id_) for row, seq in enumerate(seqs) for id_ in sorted(own[seq]))
        for sending in self.cursors.commit(self.committed, [(batch_of(seqs), matches)]):
            self.send(sending)

    def pass_by(self) -> None:
        """Rows of lifetime 0: a reader that is live and has room gets them."""
        count = self.dice.randint(1, 4)
        batch = replace(batch_of([1] * count), is_fleeting=True)
        batch = replace(batch, seqs=array("Q", [self.committed] * count))
        formals = sorted(self.some_formals(self.dice.randrange(2)))
        matches = matches_of((row, id_) for row in range(count) for id_ in formals)
        live = {cursor.id for cursor in self.cursors if cursor.is_live and self.has_room(cursor)}
        sendings = self.cursors.commit(self.committed, [(batch, matches)])
        for sending in sendings:
            self.send(sending)
        sent_to = {formal for sending in sendings for formal in sending.formals}
        if missed := (live & set(formals)) - sent_to:
            self.wrong.append(f"{len(missed)} readers with room did not get what passed by")

    def has_room(self, cursor: Cursor) -> bool:
        """Also if the others of its stream take all they can."""
        return self.cursors.room(cursor) > 0 and len(self.wires[cursor.stream]) == 0

    def commit_in_doubt(self) -> None:
        if self.dice.random() < 0.5:
            self.store_rows()
        self.reopen()

    def drain(self) -> None:
        """Section after section, and the searches that begin meanwhile."""
        while self.hidden and self.dice.random() < 0.7:
            self.reveal()
            for step in (self.begin, self.go_on, self.begin, self.take, self.begin):
                step()

    def reveal(self) -> None:
        origin, family = self.dice.choice(sorted(self.hidden))
        brought = self.hidden.pop((origin, family))
        self.rows.setdefault(origin, {}).update(brought)
        concerned = {formal for formal in FORMALS if FAMILIES[formal] == family}
        match self.dice.randrange(8):
            case 0:
                self.reopen()
            case 1:
                self.cursors.reveal(self.origins())
            case 2:
                self.cursors.reveal(self.origins(), concerned)
            case _:
                self.cursors.reveal({origin: max(brought, default=0)})

    def origins(self) -> dict[str, int]:
        return {origin: max(rows) for origin, rows in self.rows.items() if origin and rows}

    def reopen(self) -> None:
        """The searches under way do not know."""
        self.cursors.restore(self.positions())
        self.cursors.fall_behind(self.committed)
        self.cursors.reveal(self.origins())

    def crash(self) -> None:
        self.running.clear()
        self.cursors = Cursors(self.committed, self.stream_rows, self.limits)
        self.cursors.restore(self.positions())
        self.cursors.reveal(self.origins())
        for stream in STREAMS:
            self.open(stream)

    def positions(self) -> list[FormalPosition]:
        return [FormalPosition(formal, origin, seq) for (formal, origin), seq in self.saved.items()]

    def save(self) -> None:
        for position in self.cursors.unsaved_positions():
            self.saved[position.formal, position.origin] = position.seq

    # --- searches --------------------------------------------------------------------------------

    def begin(self) -> None:
        reading = self.cursors.next_reading()
        if reading is None:
            return
        beside = [one for one in self.cursors.beside(reading) if self.dice.random() < 0.8]
        self.cursors.begin_beside(beside)
        readings, rows = [reading, *beside], self.rows[reading.origin]
        if len({FAMILIES[one.formal] for one in readings}) > 1:
            self.wrong.append("formals of two families are searched together")
        formals = {one.formal for one in readings}
        after = min(one.after for one in readings)
        span = range(after + 1, reading.upto + 1)
        is_whole = bool(beside) and self.dice.random() < 0.5  # rows that are for nobody, too
        found = [q for q in sorted(rows) if q in span and (is_whole or formals & rows[q])]
        self.running.append(Running(readings, found))

    def go_on(self) -> None:
        if not self.running:
            return
        running = self.dice.choice(self.running)
        chunk = self.dice.randint(1, 4)
        part, running.found = running.found[:chunk], running.found[chunk:]
        origin = running.readings[0].origin
        if part:
            own = self.rows[origin]
            pairs = [(row, id_) for row, seq in enumerate(part) for id_ in sorted(own[seq])]
            batch, found = batch_of(part, origin), dict(matches_of(pairs))
            sending, running.readings = self.cursors.read(running.readings, batch, found)
            if sending is not None:
                self.send(sending)
        else:
            for reading in running.readings:
                for sending in self.cursors.end_reading(reading):
                    self.send(sending)
            running.readings = []
        if not running.readings:
            self.running.remove(running)

    def break_off(self) -> None:
        if self.running:
            running = self.dice.choice(self.running)
            self.running.remove(running)
            for reading in running.readings:
                self.cursors.break_reading(reading)

    # --- streams and readers ---------------------------------------------------------------------

    def send(self, sending: Sending) -> None:
        wire = self.wires[sending.stream]
        self.weights[sending.stream] += [sending.weight_bytes] + [0] * (len(sending.rows) - 1)
        counted = zip(sending.formals, sending.counts, strict=True)
        formals = [formal for formal, count in counted for _ in range(count)]
        for row, formal in zip(sending.rows, formals, strict=True):
            batch = sending.batch
            seq = PASSING if batch.is_fleeting else batch.seqs[row]
            wire.append((formal, self.readers[formal].attachment, batch.origin, seq))
        if len(wire) > self.stream_rows:
            self.wrong.append(f"{len(wire)} rows queued on a stream")

    def open(self, stream: int) -> None:
        self.wires[stream] = []
        self.weights[stream] = []
        self.cursors.open_stream(stream)

    def close(self) -> None:
        stream = self.dice.choice(STREAMS)
        self.cursors.close_stream(stream)
        self.open(stream)

    def write(self, most: int | None = None) -> None:
        for stream, wire in self.wires.items():
            count = min(len(wire), self.dice.randint(0, 4) if most is None else most)
            for formal, attachment, origin, seq in wire[:count]:
                reader = self.readers[formal]
                if attachment == reader.attachment:
                    self.receive(reader, origin, seq)
            del wire[:count]
            weight = sum(self.weights[stream][:count])
            del self.weights[stream][:count]
            self.cursors.written(stream, count, weight)

    def receive(self, reader: Reader, origin: str, seq: int) -> None:
        if seq != PASSING:
            reader.got[origin].append(seq)
            reader.received[origin] = seq
        if reader.window_bytes and sum(reader.weights) >= reader.window_bytes:
            self.wrong.append("more bytes than the reader asked for, and not for the last alone")
        reader.weights.append(weight_bytes([payload_of(seq)], (0,)))
        if reader.untaken > reader.window:
            self.wrong.append("more than the reader asked for")

    def take(self) -> None:
        formal = self.dice.choice(FORMALS)
        self.take_some(formal, self.dice.randint(0, self.readers[formal].untaken))

    def take_some(self, formal: bytes, count: int) -> None:
        reader = self.readers[formal]
        weight = sum(reader.weights[:count])
        del reader.weights[:count]
        self.cursors.taken(formal, count, weight if reader.window_bytes else 0)

    def acknowledge(self) -> None:
        formal = self.dice.choice(FORMALS)
        for origin, got in self.readers[formal].got.items():
            if got:
                self.cursors.acknowledge(formal, origin, self.dice.choice(got))

    def attach(self) -> None:
        """The same reader again, or one that was started again and goes on where it had acknowledged."""
        formal = self.dice.choice(FORMALS)
        if self.dice.random() < 0.3:
            self.readers[formal].received = {}
        self.attach_one(formal)

    def attach_one(self, formal: bytes) -> None:
        reader = self.readers[formal]
        reader.attachment += 1
        reader.weights.clear()
        for origin in (OWN_ORIGIN, *OTHERS):
            after = reader.received.get(origin, self.cursors.acknowledged(formal, origin))
            reader.got[origin] = [seq for seq in reader.got[origin] if seq <= after]
        stream = self.dice.choice(STREAMS)
        positions = dict(reader.received)
        came = self.dice.choice((0, 0, self.committed // 2))
        own = {"family": FAMILIES[formal], "seq": came}
        self.cursors.attach(formal, stream, reader.window, positions, reader.window_bytes, **own)

    def detach(self) -> None:
        self.cursors.detach(self.dice.choice(FORMALS))

    # --- the law ---------------------------------------------------------------------------------

    def run(self, steps: int) -> list[str]:
        for formal in FORMALS:
            self.attach_one(formal)
        often = [self.commit, self.begin, self.go_on, self.go_on, self.write, self.take, self.take]
        rarely = [self.drain, self.attach, self.acknowledge, self.save, self.break_off]
        rarely += [self.pass_by, self.pass_by]
        seldom = [self.detach, self.close, self.reopen, self.commit_in_doubt, self.crash]
        for _ in range(steps):
            kind = self.dice.choices((often, rarely, seldom), weights=(80, 17, 3))[0]
            self.dice.choice(kind)()
        self.settle()
        self.check()
        return self.wrong

    def settle(self) -> None:
        """Everybody reads until there is nothing left."""
        for formal in FORMALS:
            if self.cursors.get(formal) is None:
                self.attach_one(formal)
        for _ in range(3 * sum(map(len, self.rows.values())) + 50):
            self.begin()
            self.go_on()
            self.write(most=self.stream_rows)
            for formal in FORMALS:
                self.take_some(formal, self.readers[formal].untaken)

    def check(self) -> None:
        for formal, reader in self.readers.items():
            cursor = self.cursors.get(formal)
            if cursor is None or cursor.due:
                self.wrong.append(f"{formal[:1]!r} has not come to an end")
            for origin, rows in self.rows.items():
                want = [seq for seq in sorted(rows) if formal in rows[seq]]
                if reader.got[origin] != want:
                    self.wrong.append(f"{origin or 'own'}: {reader.got[origin]}, not {want}")
