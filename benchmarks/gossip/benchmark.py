"""`utuple bench gossip`: the DHT at size (section 3.3): steady traffic, how fast news travels, messages for a look-up."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random

from assignment_manager.peer import peer_of
from benchmarks.benchmark import Options, Say
from benchmarks.figures import Figures, Target
from benchmarks.gossip.ring import GOSSIP_S, Ring
from utuple.cluster.changes import helped
from utuple.cluster.line import Line, first_table
from utuple.model.key import HASH_SPACE


@dataclass(frozen=True, slots=True)
class Size:
    managers: int = 50
    few_lines: int = 100
    many_lines: int = 10_000
    settle_rounds: int = 60
    steady_rounds: int = 20
    changes: int = 20
    lookups: int = 2_000


QUICK = Size(5, 20, 60, 30, 4, 2, 50)
_ROUNDS_MAX = 100


class Gossip:
    def __init__(self, options: Options) -> None:
        self._size = QUICK if options.quick else Size()
        self.targets = (
            Target("flatness", at_most=1.2),
            Target("lookup_messages_most", at_most=1, always=True),
        )
        self.notes = {
            "ours": "managers keep nothing on disk; all of them run in one thread, on a clock of their own"
        }

    async def run(self, place: Path, say: Say) -> Figures:
        size = self._size
        few, _ = self._steady(size.few_lines)
        say(f"{size.few_lines} lines: {few:.0f} bytes per second and manager")
        many, ring = self._steady(size.many_lines)
        say(f"{size.many_lines} lines: {many:.0f} bytes per second and manager")
        known_s, changed_bytes = self._changes(ring, size.many_lines)
        say(f"a changed line is known everywhere after {known_s:.1f} s")
        dice, managers = Random(3), list(ring.everyone.values())
        asked = [
            ring.messages_for(dice.randrange(HASH_SPACE), dice.choice(managers))
            for _ in range(size.lookups)
        ]
        return {
            "managers": size.managers,
            "lines": size.many_lines,
            "steady_bytes_per_s": many,
            "steady_bytes_per_s_few_lines": few,
            "flatness": many / few,
            "known_everywhere_s": known_s,
            "bytes_for_a_change": changed_bytes,
            "lookup_messages_mean": sum(asked) / len(asked),
            "lookup_messages_most": max(asked),
        }

    def _steady(self, lines: int) -> tuple[float, Ring]:
        """Bytes that a manager sends in a second in which nothing happens."""
        size, ring = self._size, Ring(self._size.managers, Random(1))
        ring.announce(_table(lines), next(iter(ring.everyone.values())))
        for _ in range(size.settle_rounds):
            ring.round()
        before = ring.sent_bytes
        for _ in range(size.steady_rounds):
            ring.round()
        seconds = size.steady_rounds * GOSSIP_S
        return (ring.sent_bytes - before) / seconds / size.managers, ring

    def _changes(self, ring: Ring, lines: int) -> tuple[float, float]:
        """The longest of several changes, and what each adds to what all managers send until it is known."""
        dice, table, longest, sent = Random(2), _table(lines), 0, 0
        for _ in range(self._size.changes):
            old = table.pop(dice.randrange(len(table)))
            new = helped(old, old.home, "helper")
            idle = self._round_bytes(ring)
            before = ring.sent_bytes
            ring.announce([new], dice.choice(list(ring.everyone.values())))
            rounds = 0
            while not _is_known(ring, new):
                ring.round()
                rounds += 1
                assert rounds < _ROUNDS_MAX, "the change does not spread"
            longest = max(longest, rounds)
            sent += ring.sent_bytes - before - rounds * idle
        return longest * GOSSIP_S, sent / self._size.changes

    def _round_bytes(self, ring: Ring) -> int:
        for _ in range(self._size.settle_rounds // 4):
            ring.round()
        before = ring.sent_bytes
        ring.round()
        return ring.sent_bytes - before


def _table(lines: int) -> list[Line]:
    return first_table([f"server-{number}" for number in range(lines)])


def _is_known(ring: Ring, line: Line) -> bool:
    wanted = peer_of(line)
    start = line.section.start
    return all(m.directory.peers.find(start) == wanted for m in ring.everyone.values())
