"""The checker's rules, written down as plainly as can be: every label against everything that was ever sent.
The real one skips what cannot matter, and must come to the same verdict."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.chaos.checker import Finding, History, Outcome, Verdict, _Label, _ReadBack, _Sent
from utuple.cluster.line import Line
from utuple.cluster.table import Table
from utuple.model.match import matches
from utuple.model.utuple import Kind

S = 1_000_000


def plain_check(
    history: History,
    settled_us: int,
    *,
    calm_us: int,
    settle_s: float,
    drift_s: float,
    late_s: float,
) -> Verdict:
    limits = (round(settle_s * S), round(drift_s * S), round(late_s * S))
    judge = _Plain(history, settled_us, calm_us, *limits)
    verdict = Verdict(
        registered=sum(sent.outcome is Outcome.OK for sent in history.sent.values()),
        delivered=sum(len(label.ids) for label in history.labels.values()),
    )
    judge.deliveries(verdict)
    judge.reads(verdict)
    verdict.split_epochs = _split_epochs(history)
    verdict.epochs_back = _epochs_back(history)
    return verdict


@dataclass(frozen=True)
class _Plain:
    history: History
    settled_us: int
    calm_us: int
    settle_us: int
    drift_us: int
    late_us: int

    def deliveries(self, verdict: Verdict) -> None:
        for name, label in self.history.labels.items():
            for sent in self.history.sent.values():
                self._expect(name, label, sent, verdict)
            for life in label.lives:
                for id_, times in life.items():
                    if times > 1:
                        verdict.repeated.append(Finding(name, id_, f"came {times} times"))
            for id_ in sorted(label.ids):
                wrong = self._wrong(label, id_)
                if wrong:
                    verdict.phantom.append(Finding(name, id_, wrong))
        for name, id_ in self.history.strays:
            verdict.phantom.append(Finding(name, id_, "came to a label that was never opened"))

    def _expect(self, name: str, label: _Label, sent: _Sent, verdict: Verdict) -> None:
        if sent.utuple.family != label.formal.family or not self._is_due(sent, name, label):
            return
        verdict.expected += 1
        if sent.utuple.id not in label.ids:
            told = f"sent {_time(sent.began_us)}, answered {_time(sent.ended_us)}"
            said = f"never came: {told}; opened {_time(label.opened_us)}"
            verdict.missed.append(Finding(name, sent.utuple.id, said))

    def _is_due(self, sent: _Sent, name: str, label: _Label) -> bool:
        if sent.outcome is not Outcome.OK:
            return False
        if name in sent.handed and label.closed_us is None and len(label.lives) == 1:
            return True
        if sent.utuple.lifetime_s == 0:
            return False
        closed_us = self.settled_us if label.closed_us is None else label.closed_us
        since_us = max(sent.ended_us, label.opened_us, self.calm_us)
        alive_until_us = self._alive_until(sent)
        if sent.utuple.kind is Kind.EA and len(label.lives) == 1:
            alive_until_us += self.late_us if sent.began_us >= label.opened_us else 0
        until_us = min(alive_until_us, closed_us)
        return until_us - since_us >= self.settle_us and matches(sent.utuple, label.formal)

    def _alive_until(self, sent: _Sent) -> int:
        return sent.began_us + sent.lifetime_us - self.drift_us

    def _dead_from(self, sent: _Sent) -> int:
        if sent.outcome is not Outcome.OK:
            return self.settled_us
        return sent.ended_us + sent.lifetime_us + self.drift_us

    def _wrong(self, label: _Label, id_: bytes) -> str:
        sent = self.history.sent.get(id_)
        if sent is None:
            return "was never sent by anybody"
        if not matches(sent.utuple, label.formal):
            return "does not match"
        if sent.outcome is Outcome.NOT:
            return "was answered as surely not registered"
        if sent.lifetime_us and self._dead_from(sent) < label.asked_us:
            return f"had expired before this was asked for at {_time(label.asked_us)}"
        return ""

    def reads(self, verdict: Verdict) -> None:
        for read in self.history.reads:
            where = "read of " + "/".join(read.family)
            for id_ in sorted(set(read.ids)):
                if read.ids.count(id_) > 1:
                    verdict.repeated.append(Finding(where, id_, "came twice"))
            for id_ in sorted(set(read.ids)):
                wrong = self._wrong_in_read(read, id_)
                if wrong:
                    verdict.phantom.append(Finding(where, id_, wrong))
            for id_, sent in self.history.sent.items():
                if id_ not in read.ids and self._must_be_read(read, sent):
                    said = f"is not there: answered {_time(sent.ended_us)}"
                    verdict.lost.append(Finding(where, id_, said))

    def _must_be_read(self, read: _ReadBack, sent: _Sent) -> bool:
        due = sent.utuple.kind is Kind.EA and sent.utuple.family == read.family
        due = due and sent.outcome is Outcome.OK and read.complete
        return due and sent.ended_us <= read.at_us < self._alive_until(sent)

    def _wrong_in_read(self, read: _ReadBack, id_: bytes) -> str:
        sent = self.history.sent.get(id_)
        if sent is None or sent.utuple.family != read.family:
            return "was never sent by anybody"
        if sent.outcome is Outcome.NOT:
            return "was answered as surely not registered"
        if sent.utuple.lifetime_s == 0:
            return "has lifetime 0 and was kept"
        return "had expired" if self._dead_from(sent) < read.at_us else ""


def _split_epochs(history: History) -> list[Finding]:
    held: dict[tuple[int, int, int, Line], tuple[str, Line]] = {}
    for _, server, line in history.lines:
        place = (line.epoch, line.section.start, line.section.end, line)
        held.setdefault(place, (server, line))
    # In the order of epochs and sections, those of one section as they were first seen.
    rows = [row for _, row in sorted(held.items(), key=lambda one: one[0][:3])]
    found = []
    for at, (server, one) in enumerate(rows):
        for holder, other in rows[at + 1 :]:
            same = one.epoch == other.epoch and one.section.overlaps(other.section)
            if same and one.members != other.members:
                found.append(
                    Finding("epochs", b"", f"{server} has {one}, but {holder} has {other}")
                )
    return found


def _epochs_back(history: History) -> list[Finding]:
    tables: dict[str, Table] = {}
    found = []
    for at_us, server, line in history.lines:
        table = tables.setdefault(server, Table())
        newer = [held for held in table.overlapping(line.section) if held.epoch > line.epoch]
        if newer:
            said = f"has {line} at {_time(at_us)}, after {newer[0]}"
            found.append(Finding(server, b"", said))
        table.hear(line)
    return found


def _time(at_us: int) -> str:
    return f"{at_us / S:.3f}"
