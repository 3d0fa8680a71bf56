"""`utuple bench gossip`: the DHT at size (section 3.3): steady traffic, how fast news travels, messages for a look-up."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random

from assignment_manager.peer import peer_of
from benchmarks.benchmark import Options, Say
from benchmarks.figures import Figures, Target
from benchmarks.gossip.ring import GOSSIP_S, Home, Ring
from utuple.cluster.changes import helped
from utuple.cluster.line import FIRST_EPOCH, Line, Member
from utuple.model.key import HASH_SPACE
from utuple.model.section import equal_sections


@dataclass(frozen=True, slots=True)
class Size:
    managers: int = 50
    servers: int = 100
    few_lines: int = 100
    many_lines: int = 10_000
    steady_rounds: int = 40
    changes: int = 10
    lookups: int = 2_000


QUICK = Size(5, 10, 20, 60, 8, 2, 50)
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
        few, _, _ = self._steady(size.few_lines)
        say(f"{size.few_lines} lines: {few:.0f} bytes per second and manager")
        many, settled_s, ring = self._steady(size.many_lines)
        say(f"{size.many_lines} lines: {many:.0f} bytes per second and manager")
        known_s, changed_bytes = self._changes(ring)
        say(f"a changed line is known everywhere after {known_s:.1f} s")
        dice, managers = Random(3), list(ring.everyone.values())
        asked = [
            ring.messages_for(dice.randrange(HASH_SPACE), dice.choice(managers))
            for _ in range(size.lookups)
        ]
        return {
            "managers": size.managers,
            "servers": size.servers,
            "lines": size.many_lines,
            "steady_bytes_per_s": many,
            "steady_bytes_per_s_few_lines": few,
            "flatness": many / few,
            "announced_bytes_per_s": self._announced(ring),
            "settled_s": settled_s,
            "known_everywhere_s": known_s,
            "bytes_for_a_change": changed_bytes,
            "lookup_messages_mean": sum(asked) / len(asked),
            "lookup_messages_most": max(asked),
        }

    def _steady(self, lines: int) -> tuple[float, float, Ring]:
        """Bytes a second and manager while nothing happens, what servers announce included; and how long an empty ring takes
        until then."""
        size, ring = self._size, Ring(self._size.managers, Random(1))
        ring.homes = _homes(size.servers, lines)
        ring.round()
        for home in ring.homes:
            ring.announce(home)
        settled_s = ring.settle()
        before = ring.sent_bytes
        for _ in range(size.steady_rounds):
            ring.round()
        seconds = size.steady_rounds * GOSSIP_S
        return (ring.sent_bytes - before) / seconds / size.managers, settled_s, ring

    def _announced(self, ring: Ring) -> float:
        """What one server's presence costs all managers, in bytes a second."""
        before = ring.announced_bytes
        for _ in range(self._size.steady_rounds):
            ring.round()
        seconds = self._size.steady_rounds * GOSSIP_S
        return (ring.announced_bytes - before) / seconds / len(ring.homes)

    def _changes(self, ring: Ring) -> tuple[float, float]:
        """The longest of several changes, and what each adds to what all managers send until they have settled again."""
        dice, longest, sent = Random(2), 0, 0.0
        idle = self._round_bytes(ring)
        for _ in range(self._size.changes):
            home = dice.choice(ring.homes)
            at = dice.randrange(len(home.lines))
            line = home.lines[at] = helped(home.lines[at], home.info.name, "helper")
            before, began_s = ring.sent_bytes, ring.now_s
            ring.announce(home)
            rounds = 0
            while not _is_known(ring, line):
                ring.round()
                rounds += 1
                assert rounds < _ROUNDS_MAX, "the change does not spread"
            longest = max(longest, rounds)
            ring.settle()
            sent += ring.sent_bytes - before - (ring.now_s - began_s) / GOSSIP_S * idle
        return longest * GOSSIP_S, sent / self._size.changes

    def _round_bytes(self, ring: Ring) -> float:
        before = ring.sent_bytes
        for _ in range(self._size.steady_rounds):
            ring.round()
        return (ring.sent_bytes - before) / self._size.steady_rounds


def _homes(servers: int, lines: int) -> list[Home]:
    """Each with as many lines as the others, spread over the hash space."""
    homes = [Home(f"server-{number}", ()) for number in range(1, servers + 1)]
    for number, section in enumerate(equal_sections(lines)):
        home = homes[number % servers]
        home.lines.append(Line(section, FIRST_EPOCH, (Member(home.info.name),)))
    return homes


def _is_known(ring: Ring, line: Line) -> bool:
    wanted = peer_of(line)
    start = line.section.start
    return all(m.directory.peers.find(start) == wanted for m in ring.everyone.values())
