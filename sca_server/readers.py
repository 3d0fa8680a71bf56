"""Which reader's stream holds which CF, and what was sent there and is not confirmed yet.

    hand over ──> sent ──confirm──> HANDED_OVER, remembered: a retry is not delivered again
                   └──deadline, or the stream ends──> NOT_CONFIRMED; a late confirm still counts for
                                                      the retry

A command and a CF make a *pair*; the pair is what is sent, confirmed and remembered. Pure: time is an
argument, and what the shell has to do (wake a stream, answer a call) is returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from operator import add

from sca_server.outbox import Outbox, OutboxLimits
from utuple.delivery.attachments import Attachments
from utuple.delivery.handed import Handed
from utuple.delivery.notice import News, Notice
from utuple.delivery.recent import RecentIds
from utuple.errors import Overloaded
from utuple.model.utuple import ID_BYTES

_FEW = 64
"""Answered calls not worth tidying up after."""


_OPEN, _HANDED_OVER, _NOT_CONNECTED, _NOT_CONFIRMED = (int(said) for said in Handed)


@dataclass(frozen=True, slots=True)
class ReaderLimits:
    streams: int
    formals: int
    """CFs attached to one stream."""
    unconfirmed: int
    """Pairs sent to one stream and not confirmed."""
    remembered: int
    """Confirmed pairs at least, and as many late ones; at most twice as many."""
    stale_s: float
    """After this a delivery that still waits for its stream is dropped."""
    outbox: OutboxLimits


class Round:
    """One call's hand-overs: an entry of `handed` for each device a command matched."""

    __slots__ = ("deadline_s", "handed", "open", "pairs")

    def __init__(self, deadline_s: float) -> None:
        self.deadline_s = deadline_s
        self.handed = bytearray()
        """A `Handed` each."""
        self.pairs: list[bytes] = []
        """Each by its place in `handed`, while one is open."""
        self.open = 0
        """How many are waited for."""


class Stream:
    """One Deliver call of one reader's session."""

    __slots__ = ("outbox", "unconfirmed")

    def __init__(self, limits: OutboxLimits) -> None:
        self.unconfirmed: set[bytes] = set()
        self.outbox = Outbox(limits)


_Waiting = tuple[Stream, Round, int, "_Waiting | None"]
"""A pair was sent to this stream, and this place of this round waits for it, as do those of earlier calls."""


class Readers:
    def __init__(self, limits: ReaderLimits) -> None:
        self._limits = limits
        self._streams: dict[Stream, None] = {}
        self.attached: Attachments[Stream] = Attachments()
        self._sent: dict[bytes, _Waiting] = {}
        self._confirmed = RecentIds(limits.remembered)
        self._late = RecentIds(limits.remembered)
        self._deadlines: list[tuple[float, int, Round]] = []
        self._rounds = 0
        self._finished = 0
        self.handed_over = 0

    @property
    def unconfirmed(self) -> int:
        return len(self._sent)

    # --- streams and what they hold -----------------------------------------------------------------

    @property
    def streams(self) -> list[Stream]:
        return list(self._streams)

    def open(self) -> Stream:
        if len(self._streams) >= self._limits.streams:
            raise Overloaded(
                f"this sCA server serves at most {self._limits.streams} readers' streams"
            )
        stream = Stream(self._limits.outbox)
        self._streams[stream] = None
        return stream

    def attach(
        self, stream: Stream, formal: bytes, generation: int = 0, attempt: int = 0
    ) -> Stream | None:
        """The stream that held it before and is told so, if another did."""
        is_new = self.attached.holders.get(formal) is not stream
        if is_new and self.attached.count(stream) >= self._limits.formals:
            raise Overloaded(f"a stream holds at most {self._limits.formals} CFs: open another")
        before = self.attached.attach(formal, stream, generation, attempt)
        stream.outbox.put(Notice(News.ATTACHED, formal, generation))
        if before is not None:
            before.outbox.put(Notice(News.REPLACED, formal, generation))
        return before

    def detach(self, formal: bytes, generation: int = 0) -> Stream | None:
        """The stream that held it, told so. What was sent there may still be confirmed."""
        stream = self.attached.detach(formal)
        if stream is not None:
            stream.outbox.put(Notice(News.DETACHED, formal, generation))
        return stream

    def close(self, stream: Stream) -> tuple[list[bytes], list[Round]]:
        """The CFs it held, and the calls whose last open hand-over this ends."""
        self._streams.pop(stream, None)
        formals = self.attached.close(stream)
        done: list[Round] = []
        for pair in stream.unconfirmed:
            _settle(self._sent.pop(pair), Handed.NOT_CONFIRMED, done)
        self._late.add(stream.unconfirmed)
        stream.unconfirmed = set()
        self._forget(len(done))
        return formals, done

    # --- hand-overs -------------------------------------------------------------------------------------

    def hand(
        self,
        round_: Round,
        commands: Sequence[bytes],
        formals: Sequence[bytes],
        payloads: Sequence[bytes],
        now_s: float,
    ) -> set[Stream]:
        """Each command to its device; the streams that have something to write now."""
        pairs: list[bytes] = list(map(add, commands, formals))
        confirmed, late = self._confirmed.among(pairs), self._late.among(pairs)
        stale_at_s = now_s + self._limits.stale_s
        holder, sent, handed = self.attached.holders, self._sent, round_.handed
        was_open = round_.open
        awake: set[Stream] = set()
        for pair, command, formal, payload in zip(pairs, commands, formals, payloads, strict=True):
            stream = holder.get(formal)
            if confirmed and pair in confirmed:
                handed.append(_HANDED_OVER)
            elif stream is None:
                handed.append(_NOT_CONNECTED)
            else:
                before = sent.get(pair)
                if before is None or before[0] is not stream:
                    if not self._has_room(stream, formal, command, payload, stale_at_s):
                        handed.append(_NOT_CONFIRMED)
                        continue
                    if before is not None:  # to a new holder; whoever waits now waits for that one
                        before[0].unconfirmed.discard(pair)
                    if late:
                        self._late.discard(pair)
                    stream.unconfirmed.add(pair)
                    awake.add(stream)
                sent[pair] = (stream, round_, len(handed), before)
                handed.append(_OPEN)
                round_.open += 1
        round_.pairs += pairs
        if round_.open and not was_open:
            self._rounds += 1
            heappush(self._deadlines, (round_.deadline_s, self._rounds, round_))
        return awake

    def _has_room(
        self, stream: Stream, formal: bytes, command: bytes, payload: bytes, stale_at_s: float
    ) -> bool:
        """Then it is on its way."""
        if len(stream.unconfirmed) >= self._limits.unconfirmed:
            return False
        return stream.outbox.offer(formal, command, payload, stale_at_s)

    def confirm(
        self, stream: Stream, formals: Sequence[bytes], commands: Sequence[bytes]
    ) -> list[Round]:
        """The calls these complete. Only what was sent, to who says so, counts; the rest is ignored."""
        sent = self._sent
        done: list[Round] = []
        confirmed: list[bytes] = []
        pairs: list[bytes] = list(map(add, commands, formals))
        for pair in pairs:
            waiting = sent.get(pair)
            if waiting is not None and waiting[0] is stream:
                del sent[pair]
                _settle(waiting, _HANDED_OVER, done)
                confirmed.append(pair)
            elif pair in self._late and self.attached.holders.get(pair[ID_BYTES:]) is stream:
                self._late.discard(pair)
                confirmed.append(pair)
        stream.unconfirmed.difference_update(confirmed)
        self._confirmed.add(confirmed)
        self.handed_over += len(confirmed)
        self._forget(len(done))
        return done

    def overdue(self, now_s: float) -> list[Round]:
        """Calls whose deadline has come: what is open in them is not confirmed."""
        due: list[Round] = []
        while self._deadlines and self._deadlines[0][0] <= now_s:
            round_ = heappop(self._deadlines)[2]
            if round_.open:
                self._give_up(round_)
                due.append(round_)
            else:
                self._finished -= 1
        return due

    def _give_up(self, round_: Round) -> None:
        late: list[bytes] = []
        for place, pair in enumerate(round_.pairs):
            if round_.handed[place] != _OPEN:
                continue
            round_.handed[place] = _NOT_CONFIRMED
            waiting = self._sent.get(pair)
            if waiting is None:  # the same command twice in one call
                continue
            others = _without(waiting, round_)
            if others is not None:
                self._sent[pair] = others
            else:
                del self._sent[pair]
                waiting[0].unconfirmed.discard(pair)
                late.append(pair)
        self._late.add(late)
        round_.open, round_.pairs = 0, []

    def _forget(self, finished: int) -> None:
        """Rounds that were answered leave the heap in one go, when they are most of it."""
        self._finished += finished
        if self._finished > _FEW and self._finished * 2 > len(self._deadlines):
            self._deadlines = [entry for entry in self._deadlines if entry[2].open]
            heapify(self._deadlines)
            self._finished = 0


def _settle(waiting: _Waiting | None, handed: int, done: list[Round]) -> None:
    """All who wait for a pair know; calls that wait for nothing else are done."""
    while waiting is not None:
        _, round_, place, waiting = waiting
        round_.handed[place] = handed
        round_.open -= 1
        if not round_.open:
            round_.pairs = []  # the heap keeps the round
            done.append(round_)


def _without(waiting: _Waiting, round_: Round) -> _Waiting | None:
    """Who else waits, for what was sent to the same stream."""
    others: _Waiting | None = None
    found: list[_Waiting] = []
    one: _Waiting | None = waiting
    while one is not None:
        found.append(one)
        one = one[3]
    for _, other, place, _ in reversed(found):
        if other is not round_:
            others = (waiting[0], other, place, others)
    return others
