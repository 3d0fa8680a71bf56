"""Which reader's stream holds which CF, and what was sent there and is not confirmed yet.

    hand over ──> sent ──confirm──> HANDED_OVER, remembered: a retry is not delivered again
                   └──deadline, or the stream ends──> NOT_CONFIRMED; a late confirm still counts for
                                                      the retry

A command and a CF make a *pair*; the pair is what is sent, confirmed and remembered. Pure: time is an
argument, and what the shell has to do (wake a stream, answer a call) is returned.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from heapq import heapify, heappop, heappush

from sca_server.index import Device
from sca_server.outbox import Attached, Delivery, Detached, Outbox, OutboxLimits, Replaced
from utuple.errors import Overloaded

_FEW = 64
"""Answered calls not worth tidying up after."""


class Handed(IntEnum):
    """The protocol's numbers."""

    OPEN = 0
    HANDED_OVER = 1
    NOT_CONNECTED = 2
    NOT_CONFIRMED = 3


@dataclass(frozen=True, slots=True)
class ReaderLimits:
    streams: int
    formals: int
    """CFs attached to one stream."""
    unconfirmed: int
    """Pairs sent to one stream and not confirmed."""
    remembered: int
    """Confirmed pairs, and as many late ones."""
    stale_s: float
    """After this a delivery that still waits for its stream is dropped."""
    outbox: OutboxLimits


class Round:
    """One call's hand-overs: an entry of `handed` for each device a command matched."""

    __slots__ = ("deadline_s", "handed", "open")

    def __init__(self, deadline_s: float) -> None:
        self.deadline_s = deadline_s
        self.handed: list[Handed] = []
        self.open: dict[int, bytes] = {}
        """The pairs still waited for, by their place in `handed`."""


class Stream:
    """One Deliver call of one reader's session."""

    __slots__ = ("formals", "outbox", "unconfirmed")

    def __init__(self, limits: OutboxLimits) -> None:
        self.formals: set[bytes] = set()
        self.unconfirmed: set[bytes] = set()
        self.outbox = Outbox(limits)


class _Sent:
    __slots__ = ("stream", "waiters")

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.waiters: list[tuple[Round, int]] = []


class Readers:
    def __init__(self, limits: ReaderLimits) -> None:
        self._limits = limits
        self._streams: set[Stream] = set()
        self._holder: dict[bytes, Stream] = {}
        self._sent: dict[bytes, _Sent] = {}
        self._confirmed: dict[bytes, None] = {}
        self._late: dict[bytes, None] = {}
        self._deadlines: list[tuple[float, int, Round]] = []
        self._rounds = 0
        self._finished = 0
        self._seq = 0
        self.handed_over = 0

    @property
    def unconfirmed(self) -> int:
        return len(self._sent)

    # --- streams and what they hold -----------------------------------------------------------------

    def open(self) -> Stream:
        if len(self._streams) >= self._limits.streams:
            raise Overloaded(
                f"this sCA server serves at most {self._limits.streams} readers' streams"
            )
        stream = Stream(self._limits.outbox)
        self._streams.add(stream)
        return stream

    def holder(self, formal: bytes) -> Stream | None:
        return self._holder.get(formal)

    def attach(self, stream: Stream, formal: bytes) -> Stream | None:
        """The stream that held it before and is told so, if another did."""
        if len(stream.formals) >= self._limits.formals and formal not in stream.formals:
            raise Overloaded(f"a stream holds at most {self._limits.formals} CFs: open another")
        before = self._holder.get(formal)
        self._holder[formal] = stream
        stream.formals.add(formal)
        stream.outbox.tell(Attached(formal, unknown=False))
        if before is None or before is stream:
            return None
        before.formals.discard(formal)
        before.outbox.tell(Replaced(formal))
        return before

    def detach(self, formal: bytes) -> Stream | None:
        """The stream that held it, told so. What was sent there may still be confirmed."""
        stream = self._holder.pop(formal, None)
        if stream is not None:
            stream.formals.discard(formal)
            stream.outbox.tell(Detached(formal))
        return stream

    def close(self, stream: Stream) -> tuple[list[bytes], list[Round]]:
        """The CFs it held, and the calls whose last open hand-over this ends."""
        self._streams.discard(stream)
        for formal in stream.formals:
            del self._holder[formal]
        formals = list(stream.formals)
        stream.formals.clear()
        done: list[Round] = []
        for pair in list(stream.unconfirmed):
            done += self._settle(pair, Handed.NOT_CONFIRMED)
            self._remember(self._late, pair)
        return formals, done

    # --- hand-overs -------------------------------------------------------------------------------------

    def hand(
        self, round_: Round, command: bytes, device: Device, payload: bytes, now_s: float
    ) -> Stream | None:
        """One command to one device; the stream that has something to write now, if one has."""
        formal = device.id
        pair = command + formal
        if pair in self._confirmed:
            round_.handed.append(Handed.HANDED_OVER)
            return None
        stream = self._holder.get(formal)
        if stream is None:
            round_.handed.append(Handed.NOT_CONNECTED)
            return None
        sent = self._sent.get(pair)
        if sent is not None and sent.stream is stream:
            self._wait(round_, pair, sent)
            return None
        limits, seq = self._limits, self._seq + 1
        stale_at_s = now_s + limits.stale_s
        delivery = Delivery(
            formal, command, device.family, device.address, payload, seq, stale_at_s
        )
        if len(stream.unconfirmed) >= limits.unconfirmed or not stream.outbox.offer(delivery):
            round_.handed.append(Handed.NOT_CONFIRMED)
            return None
        self._seq = seq
        if sent is None:
            sent = self._sent[pair] = _Sent(stream)
        else:  # to a new holder it is sent again; whoever waits then waits for that one
            sent.stream.unconfirmed.discard(pair)
            sent.stream = stream
        stream.unconfirmed.add(pair)
        if self._late:
            self._late.pop(pair, None)
        self._wait(round_, pair, sent)
        return stream

    def _wait(self, round_: Round, pair: bytes, sent: _Sent) -> None:
        place = len(round_.handed)
        if not round_.open:
            self._rounds += 1
            heappush(self._deadlines, (round_.deadline_s, self._rounds, round_))
        round_.handed.append(Handed.OPEN)
        round_.open[place] = pair
        sent.waiters.append((round_, place))

    def confirm(self, stream: Stream, formal: bytes, command: bytes) -> list[Round]:
        """The calls this completes. Only what was sent, to who says so, counts; the rest is ignored."""
        pair = command + formal
        sent = self._sent.get(pair)
        if sent is not None and sent.stream is stream:
            self.handed_over += 1
            self._remember(self._confirmed, pair)
            return self._settle(pair, Handed.HANDED_OVER)
        if pair in self._late and self._holder.get(formal) is stream:
            self.handed_over += 1
            del self._late[pair]
            self._remember(self._confirmed, pair)
        return []

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
        for place, pair in round_.open.items():
            round_.handed[place] = Handed.NOT_CONFIRMED
            sent = self._sent.get(pair)
            if sent is None:  # the same command twice in one call
                continue
            sent.waiters = [(other, at) for other, at in sent.waiters if other is not round_]
            if not sent.waiters:
                del self._sent[pair]
                sent.stream.unconfirmed.discard(pair)
                self._remember(self._late, pair)
        round_.open = {}

    def _settle(self, pair: bytes, handed: Handed) -> list[Round]:
        sent = self._sent.pop(pair)
        sent.stream.unconfirmed.discard(pair)
        done: list[Round] = []
        for round_, place in sent.waiters:
            round_.handed[place] = handed
            del round_.open[place]
            if not round_.open:
                round_.open = {}  # an emptied dictionary keeps its size, and the heap keeps the round
                done.append(round_)
        self._forget(len(done))
        return done

    def _forget(self, finished: int) -> None:
        """Rounds that were answered leave the heap in one go, when they are most of it."""
        self._finished += finished
        if self._finished > _FEW and self._finished * 2 > len(self._deadlines):
            self._deadlines = [entry for entry in self._deadlines if entry[2].open]
            heapify(self._deadlines)
            self._finished = 0

    def _remember(self, pairs: dict[bytes, None], pair: bytes) -> None:
        pairs[pair] = None
        if len(pairs) > self._limits.remembered:
            del pairs[next(iter(pairs))]
