"""Absences: when each reader was away, and what is dropped of what arrived meanwhile. Pure.

An absence is a span of one origin's seqs, noted durably. It is opened with the seq the writer had reached when the reader
went, and closed with the seq it had reached when the reader came back. Each note goes into the next transaction, and so
into the first one that holds a later row: after a crash there is never a row that lies on another side of a note
than the living server took it to lie. What is dropped is decided when the reader is back, by the policy over the rows of
the span (`Survey`), and noted before anything of the span is delivered or declared. So it is the same subset after
any crash, retry or move, and nothing that arrives while the reader is connected is ever looked at.

    open (after, ζ)  →  closed (upto)  →  decided (how many are dropped, which stay)  →  heard by the reader  →  passed
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from utuple.model.terms import MOST_KEPT, DropPolicy, joins
from utuple.store.contract import OWN_ORIGIN, Batch

MOST_ABSENCES = 200
"""Of one EF that are not passed yet. A reader that comes and goes more often, and acknowledges nothing, is given
everything of the absences after them."""
LAST_SEQ = (1 << 63) - 1
NOTE = "absence/"


@dataclass(frozen=True, slots=True)
class Decision:
    dropped: int = 0
    first_us: int = 0
    last_us: int = 0
    """The earliest and the latest time of the events dropped."""
    first_seq: int = 0
    last_seq: int = LAST_SEQ
    """newest, oldest: what lies between stays."""
    since_us: int | None = None
    """expire: what is younger stays."""
    seqs: tuple[int, ...] | None = None
    """latest_per_address: these stay."""


@dataclass(frozen=True, slots=True)
class Absence:
    formal: bytes
    origin: str
    after: int
    policy: DropPolicy
    began_us: int
    zeta: float | None = None
    """respond_within: the share that joins, frozen when the reader went. None: nothing is dropped."""
    upto: int | None = None
    ended_us: int = 0
    decision: Decision | None = None
    is_heard: bool = False
    move: str = ""
    """Brought here by this drain, whose server may still decide it and tell the reader: it has not said its last word."""

    @property
    def key(self) -> tuple[str, int]:
        return self.origin, self.after

    @property
    def note(self) -> str:
        return f"{NOTE}{self.formal.hex()}/{self.after}/{self.origin}"

    @property
    def is_undecided(self) -> bool:
        """It is to be decided here."""
        return self.upto is not None and self.decision is None and not self.move

    @property
    def is_awaited(self) -> bool:
        """It is to be decided by the server that is being drained, or here, once that one has said its last word."""
        return bool(self.move) and self.decision is None

    def holds(self, seq: int) -> bool:
        return self.upto is not None and self.after < seq <= self.upto

    def keeps(self, seq: int, id_: bytes, time_us: int) -> bool:
        """Is this event of the span delivered?"""
        decision = self.decision
        assert decision is not None, "nothing is delivered of a span before it is decided"
        match self.policy.kind:
            case "respond_within":
                return self.zeta is None or joins(self.formal, id_, self.zeta)
            case "expire":
                return decision.since_us is None or time_us >= decision.since_us
            case "latest_per_address":
                return decision.seqs is None or _is_among(seq, decision.seqs)
        return decision.first_seq <= seq <= decision.last_seq


def _is_among(seq: int, ascending: Sequence[int]) -> bool:
    at = bisect_left(ascending, seq)
    return at < len(ascending) and ascending[at] == seq


class Survey:
    """Looks at every row of a closed span, in the order of seqs, and decides."""

    def __init__(self, absence: Absence) -> None:
        self._absence, self._policy = absence, absence.policy
        self._rows = 0
        self._dropped = 0
        self._first_us, self._last_us = 0, 0
        self._newest: deque[tuple[int, int]] = deque()
        self._latest: dict[str, tuple[int, int]] | None = {}
        self._last_seq = LAST_SEQ
        age_us = round(self._policy.number * 1_000_000)
        self._since_us = absence.ended_us - age_us if self._policy.kind == "expire" else None

    def look(self, batch: Batch) -> None:
        columns = batch.columns
        for row, seq in enumerate(batch.seqs):
            self._rows += 1
            time_us = columns.times_us[row]
            match self._policy.kind:
                case "newest":
                    self._newest.append((seq, time_us))
                    if len(self._newest) > self._policy.number:
                        self._drop(self._newest.popleft()[1])
                case "oldest":
                    if self._rows > self._policy.number:
                        self._drop(time_us)
                    else:
                        self._last_seq = seq
                case "latest_per_address":
                    self._replace(columns.addresses[row], seq, time_us)
                case "expire":
                    assert self._since_us is not None
                    if time_us < self._since_us:
                        self._drop(time_us)
                case "respond_within":
                    zeta = self._absence.zeta
                    if zeta is not None and not joins(
                        self._absence.formal, columns.id_at(row), zeta
                    ):
                        self._drop(time_us)

    def _replace(self, address: str, seq: int, time_us: int) -> None:
        if self._latest is None:
            return
        before = self._latest.get(address)
        if before is not None:
            self._drop(before[1])
        self._latest[address] = seq, time_us
        if len(self._latest) > MOST_KEPT:  # too many to note: then everything stays
            self._latest, self._dropped = None, 0

    def _drop(self, time_us: int) -> None:
        self._first_us = min(self._first_us, time_us) if self._dropped else time_us
        self._last_us = max(self._last_us, time_us) if self._dropped else time_us
        self._dropped += 1

    def decide(self) -> Decision:
        bounds = (self._dropped, self._first_us, self._last_us)
        if not self._dropped:
            return Decision()
        match self._policy.kind:
            case "newest":
                return Decision(*bounds, first_seq=self._newest[0][0])
            case "oldest":
                return Decision(*bounds, last_seq=self._last_seq)
            case "latest_per_address":
                assert self._latest is not None
                return Decision(
                    *bounds, seqs=tuple(sorted(seq for seq, _ in self._latest.values()))
                )
        return Decision(*bounds, since_us=self._since_us)


class Absences:
    def __init__(self) -> None:
        self._of: dict[bytes, list[Absence]] = {}
        self.unsaved: dict[str, bytes | None] = {}
        """Notes for the next transaction."""
        self._in_flight: dict[str, bytes | None] = {}
        """Notes of transactions that are being committed."""

    def restore(self, notes: Mapping[str, bytes]) -> None:
        """What the store has. What was noted since is lost with the transaction that should have held it."""
        self._of, self.unsaved, self._in_flight = {}, {}, {}
        for name, body in notes.items():
            if name.startswith(NOTE):
                self._put(decode_absence(name, body), saves=False)

    def of(self, formal: bytes) -> Sequence[Absence]:
        return self._of.get(formal, ())

    def __iter__(self) -> Iterator[Absence]:
        return iter([one for absences in self._of.values() for one in absences])

    def is_open(self, formal: bytes) -> bool:
        """In this server's own order."""
        return any(one.upto is None and one.origin == OWN_ORIGIN for one in self.of(formal))

    def open(
        self, formal: bytes, after: int, policy: DropPolicy, zeta: float | None, now_us: int
    ) -> None:
        """Its reader has gone."""
        if not self.is_open(formal) and len(self.of(formal)) < MOST_ABSENCES:
            self._put(Absence(formal, OWN_ORIGIN, after, policy, now_us, zeta))

    def close(self, formal: bytes, upto: int, now_us: int) -> None:
        """Its reader is back. Of other origins, whose rows a drain has brought, there are no later ones."""
        for one in list(self.of(formal)):
            if one.upto is None and not one.move:
                last = upto if one.origin == OWN_ORIGIN else LAST_SEQ
                closed = replace(one, upto=last, ended_us=max(now_us, one.began_us))
                self._put(closed)

    def undecided(self, formal: bytes) -> list[Absence]:
        return [one for one in self.of(formal) if one.is_undecided]

    def decide(self, absence: Absence, decision: Decision) -> None:
        """Not if the store was opened anew meanwhile, and it is another one now."""
        if absence in self.of(absence.formal):
            heard = not decision.dropped
            self._put(replace(absence, decision=decision, is_heard=heard))

    def is_saved(self, formal: bytes) -> bool:
        """Is everything decided, and durable?"""
        return not any(
            one.is_undecided or one.note in self.unsaved or one.note in self._in_flight
            for one in self.of(formal)
            if one.upto is not None and not one.move
        )

    def may_read(self, formal: bytes, origin: str) -> bool:
        """Rows of another origin are delivered when it is known what is dropped of them."""
        return not any(one.is_awaited and one.origin == origin for one in self.of(formal))

    def is_durable(self, absence: Absence) -> bool:
        return absence.note not in self.unsaved and absence.note not in self._in_flight

    def unheard(self, formal: bytes) -> list[Absence]:
        decided = (one for one in self.of(formal) if one.decision is not None and not one.move)
        return [one for one in decided if not one.is_heard]

    def heard(self, formal: bytes, origin: str, after: int) -> None:
        for one in self.of(formal):
            if one.key == (origin, after) and one.decision is not None and not one.is_heard:
                self._put(replace(one, is_heard=True))
                return

    def kept(self, formal: bytes, batch: Batch, rows: array[int]) -> array[int]:
        """Those of these stored matches that are delivered."""
        spans = [one for one in self.of(formal) if one.origin == batch.origin]
        if not spans or not rows:
            return rows
        seqs, columns = batch.seqs, batch.columns
        first, last = seqs[rows[0]], seqs[rows[-1]]
        spans = [one for one in spans if one.after < last and first <= (one.upto or 0)]

        def is_kept(row: int) -> bool:
            for one in spans:
                if one.holds(seqs[row]):
                    return one.keeps(seqs[row], columns.id_at(row), columns.times_us[row])
            return True

        return array("q", filter(is_kept, rows)) if spans else rows

    def passed(self, formal: bytes, origin: str, seq: int) -> bool:
        """Everything up to this seq is acknowledged: absences before it have no use any more. True: there were some. Then
        the position must be durable with their end: without them it would be delivered what they dropped."""
        own = [one for one in self.of(formal) if one.origin == origin and one.is_heard]
        over = [one for one in own if one.upto is not None and one.upto <= seq and not one.move]
        for one in over:
            self._remove(one)
        return bool(over)

    def learn(self, absences: Iterable[Absence]) -> None:
        """What a drain has brought, again and again; at last without the move. What is decided here stays so."""
        for came in absences:
            held = next((one for one in self.of(came.formal) if one.key == came.key), None)
            is_news = held is None or bool(held.move)
            if is_news or (held is not None and held.decision is None and not came.move):
                self._put(came)

    def ended(self, move: str) -> set[bytes]:
        """The drained server has said its last word: of what it has not said again everything was acknowledged there. Returns
        the formals concerned."""
        over = [one for one in self if one.move == move]
        for one in over:
            self._remove(one)
        return {one.formal for one in over}

    def forget(self, formal: bytes) -> None:
        for one in self._of.pop(formal, ()):
            self.unsaved[one.note] = None

    def pop_unsaved(self) -> dict[str, bytes | None]:
        unsaved, self.unsaved = self.unsaved, {}
        self._in_flight |= unsaved
        return unsaved

    def committed(self, notes: Mapping[str, bytes | None]) -> set[bytes]:
        """These are durable. Returns the formals they are about."""
        concerned = set()
        for name, body in notes.items():
            if name.startswith(NOTE):
                concerned.add(bytes.fromhex(name.split("/", 2)[1]))
                if self._in_flight.get(name) is body:
                    del self._in_flight[name]
        return concerned

    def _put(self, absence: Absence, *, saves: bool = True) -> None:
        held = [one for one in self.of(absence.formal) if one.key != absence.key]
        self._of[absence.formal] = sorted([*held, absence], key=lambda one: one.key)
        if saves:
            self.unsaved[absence.note] = encode_absence(absence)

    def _remove(self, absence: Absence) -> None:
        self._of[absence.formal].remove(absence)
        if not self._of[absence.formal]:
            del self._of[absence.formal]
        self.unsaved[absence.note] = None


def encode_absence(absence: Absence) -> bytes:
    policy = absence.policy
    form = asdict(absence) | {"policy": [policy.kind, policy.number, policy.share]}
    del form["formal"], form["origin"], form["after"]
    return json.dumps(form).encode()


def decode_absence(name: str, body: bytes) -> Absence:
    _, formal, after, origin = name.split("/", 3)
    form = json.loads(body)
    policy, decision = DropPolicy(*form.pop("policy")), form.pop("decision")
    if decision is not None:
        seqs = decision.pop("seqs")
        decision = Decision(**decision, seqs=None if seqs is None else tuple(seqs))
    return Absence(
        bytes.fromhex(formal), origin, int(after), policy=policy, decision=decision, **form
    )
