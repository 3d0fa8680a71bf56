"""What senders were told, compared with what devices were given. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

CALM_S = 5.0
HANDED_OVER = "handed over"
DENIED = ("not connected", "no device", "not registered")


@dataclass(frozen=True, slots=True)
class Change:
    what: str
    at_s: float


@dataclass(frozen=True, slots=True)
class Told:
    """One command and its answer."""

    number: int
    began_s: float
    ended_s: float
    word: str


@dataclass(slots=True)
class _Denials:
    """Of one word after one change: how many, and when they were sent."""

    count: int = 0
    first_s: float = float("inf")
    last_s: float = 0.0
    longest_s: float = 0.0
    reasons: Counter[str] = field(default_factory=Counter)


def compare(
    told: Iterable[Told], given: Mapping[int, int], changes: Sequence[Change]
) -> dict[str, float]:
    said: Counter[str] = Counter()
    false = wrong = late = 0
    took_s: list[float] = []
    for one in told:
        word = kind_of(one.word)
        said[word] += 1
        took_s.append(one.ended_s - one.began_s)
        is_given = one.number in given
        false += (word == HANDED_OVER and not is_given) or (word in DENIED and is_given)
        wrong += word in DENIED
        late += is_late(one, changes)
    took_s.sort()
    return {
        "commands": len(took_s),
        "handed_over": said[HANDED_OVER],
        "not_confirmed": said["not confirmed"] + said["unknown"],
        "false_receipts": false,
        "given_twice": sum(times > 1 for times in given.values()),
        "wrong_late": late,
        "wrong": wrong,
        "p50_ms": took_s[len(took_s) // 2] * 1e3,
        "p99_ms": took_s[len(took_s) * 99 // 100] * 1e3,
        "longest_s": took_s[-1],
    }


def kind_of(word: str) -> str:
    """Without its reason."""
    return word.partition(": ")[0]


def is_late(one: Told, changes: Iterable[Change]) -> bool:
    """Denied, though sent so long after the last change that its device had the time to come, and answered before the next."""
    is_calm = not any(one.began_s - CALM_S < change.at_s < one.ended_s for change in changes)
    return is_calm and kind_of(one.word) in DENIED


def in_words(told: Iterable[Told], changes: Sequence[Change]) -> Iterator[str]:
    """Every kind of answer that is not "handed over", by the last change before it was sent: how often, and when."""
    found: dict[tuple[int, str, bool], _Denials] = {}
    for one in told:
        word = kind_of(one.word)
        if word == HANDED_OVER:
            continue
        last = sum(change.at_s <= one.began_s for change in changes) - 1
        since_s = one.began_s - changes[last].at_s if last >= 0 else one.began_s
        group = found.setdefault((last, word, is_late(one, changes)), _Denials())
        group.count += 1
        group.first_s, group.last_s = min(group.first_s, since_s), max(group.last_s, since_s)
        group.longest_s = max(group.longest_s, one.ended_s - one.began_s)
        group.reasons[one.word.partition(": ")[2]] += 1
    for (last, word, late), group in sorted(found.items()):
        after = changes[last].what if last >= 0 else "the beginning"
        reason = group.reasons.most_common(1)[0][0]
        yield (
            f"{group.count} × {word}{' (late)' if late else ''}, sent {group.first_s:.1f} to {group.last_s:.1f} s after "
            f"{after}, answered after {group.longest_s:.1f} s at most{reason and f': {reason}'}"
        )
