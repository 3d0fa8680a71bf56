"""What a history says about the laws (docs/laws.md): missed, repeated, phantom, lost, epochs. Pure.

`History` is told what programs did and saw, in one true time; `check` gives the verdict. `utuple chaos` tells
it of real processes, `tests/virtual/` of virtual ones, and both are judged by these very rules.

    label    one EF or CF of one application. A program that crashed and opens it again by its reader's name
             goes on under the same label, in a new life: what came in an earlier life may come again, and
             what came in any life came.
    id       whatever names an event or a command: its UUID, or bytes of the test's own that it carries.
    calm     the time after the last fault. A pair must be delivered if both are alive together for `settle_s`
             of it. An event that came to a label that was open counts as alive for `late_s` more: what it met it
             must reach, also if a fault lasted longer than it lived.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from benchmarks.chaos.epochs import epochs_back, split_epochs
from utuple.cluster.line import Line
from utuple.model.match import matches
from utuple.model.utuple import Family, Kind, UTuple

_MICROSECONDS = 1_000_000


class Outcome(Enum):
    OK = "registered"
    UNKNOWN = "may or may not be registered"
    NOT = "surely not registered"


@dataclass(frozen=True, slots=True)
class Finding:
    """One violation: who or where, which uTuple (if any), and what was seen."""

    where: str
    id: bytes
    said: str

    def __str__(self) -> str:
        return f"{self.where}: {f'{self.id.hex()} ' if self.id else ''}{self.said}"


@dataclass(slots=True)
class Verdict:
    missed: list[Finding] = field(default_factory=list)
    """Both answered OK, alive together, matching, and never delivered."""
    repeated: list[Finding] = field(default_factory=list)
    """Twice in one life of one label, or twice in one read."""
    phantom: list[Finding] = field(default_factory=list)
    """Delivered or read, though it does not match, was surely not registered, or never existed."""
    lost: list[Finding] = field(default_factory=list)
    """Answered OK, alive, and not found by the last read."""
    split_epochs: list[Finding] = field(default_factory=list)
    """One epoch of a key with two contents."""
    epochs_back: list[Finding] = field(default_factory=list)
    """A server's own epoch of a key went back."""
    registered: int = 0
    """Events and commands answered OK."""
    expected: int = 0
    """Pairs that must be delivered."""
    delivered: int = 0
    """Different pairs that were, due or not."""

    @property
    def findings(self) -> dict[str, list[Finding]]:
        kinds = ("missed", "repeated", "phantom", "lost", "split_epochs", "epochs_back")
        return {kind: found for kind in kinds if (found := getattr(self, kind))}

    @property
    def is_clean(self) -> bool:
        return not self.findings


@dataclass(frozen=True, slots=True)
class _Sent:
    """An EA or CA and what its sender was told."""

    utuple: UTuple
    began_us: int
    ended_us: int
    outcome: Outcome
    handed: Sequence[str]

    @property
    def lifetime_us(self) -> int:
        return round(self.utuple.lifetime_s * _MICROSECONDS)


@dataclass(slots=True)
class _Label:
    """An EF or CF of one application, over all lives of its program."""

    formal: UTuple
    asked_us: int
    opened_us: int
    closed_us: int | None = None
    lives: list[Counter[bytes]] = field(default_factory=lambda: [Counter()])
    """Per life: how often each id was delivered."""

    def is_open_at(self, at_us: int) -> bool:
        """And its program has not died since."""
        return self.opened_us <= at_us and len(self.lives) == 1

    @property
    def ids(self) -> set[bytes]:
        return {id_ for life in self.lives for id_ in life}


@dataclass(frozen=True, slots=True)
class _ReadBack:
    family: Family
    ids: Sequence[bytes]
    at_us: int
    complete: bool


_Numbered = dict[int, _Sent]  # in the order of sending


class History:
    def __init__(self) -> None:
        self.sent: dict[bytes, _Sent] = {}
        self.labels: dict[str, _Label] = {}
        self.reads: list[_ReadBack] = []
        self.drops: dict[str, dict[Hashable, int]] = {}
        """By label, dropped while its reader was away, as it was told, maybe before it was open: how many, by absence."""
        self.lines: list[tuple[int, str, Line]] = []
        self.strays: list[tuple[str, bytes]] = []

    # --- events --------------------------------------------------------------------------------------

    def emitted(self, event: UTuple, began_us: int, ended_us: int, outcome: Outcome) -> None:
        """Once for each event, when its last attempt has ended; `ended_us` is when the answer was in
        the application's hands. A program that died on the way: UNKNOWN."""
        assert event.kind is Kind.EA
        self._send(_Sent(event, began_us, ended_us, outcome, ()))

    def watch_opened(self, label: str, formal: UTuple, asked_us: int, opened_us: int) -> int:
        """Answered OK. The same label again is a new life of the same reader, by this number."""
        assert formal.kind is Kind.EF
        return self._open(label, formal, asked_us, opened_us)

    def watch_closed(self, label: str, closed_us: int) -> None:
        """The application wants no more of it, or its program died and will not come back. A named reader
        that does come back opens its label again: nothing in between may be missing then."""
        self._close(label, closed_us)

    def delivered(self, label: str, id_: bytes, at_us: int, life: int = -1) -> None:
        self._arrive(label, id_, life)

    def declared(self, label: str, absence: Hashable, count: int) -> None:
        """The reader was told of so many that were dropped. Told again, it counts once."""
        self.drops.setdefault(label, {})[absence] = count

    def read_back(
        self, family: Family, ids: Iterable[bytes], at_us: int, *, complete: bool = True
    ) -> None:
        """All that a read of the whole family, begun at `at_us`, gave. Not `complete`: while a member was
        or may have been suspended, so that not finding something says nothing."""
        self.reads.append(_ReadBack(family, tuple(ids), at_us, complete))

    # --- commands ------------------------------------------------------------------------------------

    def served(self, label: str, device: UTuple, asked_us: int, opened_us: int) -> None:
        assert device.kind is Kind.CF
        self._open(label, device, asked_us, opened_us)

    def served_no_more(self, label: str, closed_us: int) -> None:
        self._close(label, closed_us)

    def commanded(
        self,
        command: UTuple,
        began_us: int,
        ended_us: int,
        outcome: Outcome,
        handed: Iterable[str] = (),
    ) -> None:
        """`handed` are the labels of the devices that have it, as the receipt says."""
        assert command.kind is Kind.CA
        self._send(_Sent(command, began_us, ended_us, outcome, tuple(handed)))

    def command_delivered(self, label: str, id_: bytes, at_us: int) -> None:
        self._arrive(label, id_)

    # --- lines ---------------------------------------------------------------------------------------

    def line_seen(self, server: str, line: Line, at_us: int) -> None:
        """A line this server holds durably. In the order of `at_us` for each server."""
        self.lines.append((at_us, server, line))

    # --- both ----------------------------------------------------------------------------------------

    def _send(self, sent: _Sent) -> None:
        assert sent.utuple.id not in self.sent, "each event and command is told once"
        self.sent[sent.utuple.id] = sent

    def _open(self, label: str, formal: UTuple, asked_us: int, opened_us: int) -> int:
        known = self.labels.get(label)
        if known is None:
            self.labels[label] = _Label(formal, asked_us, opened_us)
            return 0
        assert known.formal.id == formal.id, f"{label} is another formal now"
        known.closed_us = None
        known.lives.append(Counter())
        return len(known.lives) - 1

    def _close(self, label: str, closed_us: int) -> None:
        if label in self.labels:
            self.labels[label].closed_us = closed_us

    def _arrive(self, label: str, id_: bytes, life: int = -1) -> None:
        if label in self.labels:
            self.labels[label].lives[life][id_] += 1
        else:
            self.strays.append((label, id_))


def check(
    history: History,
    settled_us: int,
    *,
    calm_us: int = 0,
    settle_s: float = 10.0,
    drift_s: float = 1.0,
    late_s: float = 0.0,
) -> Verdict:
    """`settled_us` is when the history ends; `calm_us` when the last fault ended. Clocks of the programs
    are never further apart than `drift_s`, jumps included."""
    settle_us, drift_us = round(settle_s * _MICROSECONDS), round(drift_s * _MICROSECONDS)
    late_us = round(late_s * _MICROSECONDS)
    judge = _Judge(history, settled_us, calm_us, settle_us, drift_us, late_us)
    verdict = Verdict(registered=sum(sent.outcome is Outcome.OK for sent in history.sent.values()))
    judge.deliveries(verdict)
    judge.reads(verdict)
    split, back = split_epochs(history.lines), epochs_back(history.lines)
    verdict.split_epochs = [Finding("epochs", b"", said) for said in split]
    verdict.epochs_back = [Finding(server, b"", said) for server, said in back]
    return verdict


@dataclass(frozen=True, slots=True)
class _Judge:
    history: History
    settled_us: int
    calm_us: int
    settle_us: int
    drift_us: int
    late_us: int

    # --- deliveries ----------------------------------------------------------------------------------

    def deliveries(self, verdict: Verdict) -> None:
        lasting, handed = self._candidates()
        for name, label in self.history.labels.items():
            came = label.ids
            verdict.delivered += len(came)
            open_us = self._open_until(label) - max(label.opened_us, self.calm_us)
            some = lasting.get(label.formal.family, {}) if open_us >= self.settle_us else {}
            if name in handed:
                some = dict(sorted((some | handed[name]).items()))
            met = self._missed(name, label, came, some.values(), verdict)
            for life in label.lives:
                for id_, times in life.items():
                    if times > 1:
                        verdict.repeated.append(Finding(name, id_, f"came {times} times"))
            for id_ in sorted(came):
                if wrong := self._wrong(label, id_, surely_matches=id_ in met):
                    verdict.phantom.append(Finding(name, id_, wrong))
        for name, id_ in self.history.strays:
            verdict.phantom.append(Finding(name, id_, "came to a label that was never opened"))

    def _candidates(self) -> tuple[dict[Family, _Numbered], dict[str, _Numbered]]:
        """By family what lives long enough in the calm to be due, by label what receipts say: an hour has
        too many pairs to look at each."""
        lasting: dict[Family, _Numbered] = {}
        handed: dict[str, _Numbered] = {}
        for number, sent in enumerate(self.history.sent.values()):
            until_us = self._surely_alive_until(sent) + self.late_us
            calm_for_us = until_us - max(sent.ended_us, self.calm_us)
            if sent.outcome is Outcome.OK and calm_for_us >= self.settle_us:
                lasting.setdefault(sent.utuple.family, {})[number] = sent
            for name in sent.handed:
                handed.setdefault(name, {})[number] = sent
        return lasting, handed

    def _missed(
        self, name: str, label: _Label, came: set[bytes], some: Iterable[_Sent], verdict: Verdict
    ) -> set[bytes]:
        """The ids of those that were found to match."""
        met, missed = set(), []
        for sent in some:
            id_ = sent.utuple.id
            if not self._is_promised(sent, name, label):
                if not self._is_due(sent, label):
                    continue
                met.add(id_)
            verdict.expected += 1
            if id_ not in came:
                told = f"sent {_time(sent.began_us)}, answered {_time(sent.ended_us)}"
                watch = f"opened {_time(label.opened_us)}"
                missed.append(Finding(name, id_, f"never came: {told}; {watch}"))
        if len(missed) > sum(self.history.drops.get(name, {}).values()):  # law 9
            verdict.missed += missed
        return met

    def _is_promised(self, sent: _Sent, name: str, label: _Label) -> bool:
        """The receipt says so, and its program has not died with it in hand."""
        said = name in sent.handed and sent.utuple.family == label.formal.family
        lives = label.closed_us is None and len(label.lives) == 1
        return said and lives and sent.outcome is Outcome.OK

    def _is_due(self, sent: _Sent, label: _Label) -> bool:
        if sent.outcome is not Outcome.OK or sent.utuple.lifetime_s == 0:
            return False
        since_us = max(sent.ended_us, label.opened_us, self.calm_us)
        was_met = sent.utuple.kind is Kind.EA and label.is_open_at(sent.began_us)
        until_us = self._surely_alive_until(sent) + (self.late_us if was_met else 0)
        together_us = min(until_us, self._open_until(label)) - since_us
        return together_us >= self.settle_us and matches(sent.utuple, label.formal)

    def _open_until(self, label: _Label) -> int:
        return self.settled_us if label.closed_us is None else label.closed_us

    def _surely_alive_until(self, sent: _Sent) -> int:
        return sent.began_us + sent.lifetime_us - self.drift_us

    def _wrong(self, label: _Label, id_: bytes, *, surely_matches: bool) -> str:
        sent = self.history.sent.get(id_)
        if sent is None:
            return "was never sent by anybody"
        if not (surely_matches or matches(sent.utuple, label.formal)):
            return "does not match"
        if sent.outcome is Outcome.NOT:
            return "was answered as surely not registered"
        if sent.lifetime_us and self._surely_dead_from(sent) < label.asked_us:
            return f"had expired before this was asked for at {_time(label.asked_us)}"
        return ""

    def _surely_dead_from(self, sent: _Sent) -> int:
        """Without an answer nobody knows when it was registered."""
        if sent.outcome is not Outcome.OK:
            return self.settled_us
        return sent.ended_us + sent.lifetime_us + self.drift_us

    # --- reads ---------------------------------------------------------------------------------------

    def reads(self, verdict: Verdict) -> None:
        events: dict[Family, list[_Sent]] = {}
        for sent in self.history.sent.values():
            if sent.utuple.kind is Kind.EA and sent.outcome is Outcome.OK:
                events.setdefault(sent.utuple.family, []).append(sent)
        for read in self.history.reads:
            found = Counter(read.ids)
            where = "read of " + "/".join(read.family)
            for id_ in sorted(found):
                if found[id_] > 1:
                    verdict.repeated.append(Finding(where, id_, "came twice"))
                if wrong := self._wrong_in_read(read, id_):
                    verdict.phantom.append(Finding(where, id_, wrong))
            for sent in events.get(read.family, ()) if read.complete else ():
                due = sent.ended_us <= read.at_us < self._surely_alive_until(sent)
                if due and sent.utuple.id not in found:
                    said = f"is not there: answered {_time(sent.ended_us)}"
                    verdict.lost.append(Finding(where, sent.utuple.id, said))

    def _wrong_in_read(self, read: _ReadBack, id_: bytes) -> str:
        sent = self.history.sent.get(id_)
        if sent is None or sent.utuple.family != read.family:
            return "was never sent by anybody"
        if sent.outcome is Outcome.NOT:
            return "was answered as surely not registered"
        if sent.utuple.lifetime_s == 0:
            return "has lifetime 0 and was kept"
        return "had expired" if self._surely_dead_from(sent) < read.at_us else ""


def _time(at_us: int) -> str:
    return f"{at_us / _MICROSECONDS:.3f}"
