"""`utuple bench lookup`: what one assignment manager answers, and how seldom it is asked.

keys        looked up by one client process in batches, at one manager that serves nothing else; `ratio_sql` is its rate over that of
            the same keys in a table of PostgreSQL, in calls of the same size
steady      events of many families, registered after a first round: lookups each
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.benchmark import Options, Say
from benchmarks.child import Child
from benchmarks.figures import Figures, Target
from benchmarks.ground import Plan, open_ground


@dataclass(frozen=True, slots=True)
class Size:
    servers: int = 4
    """So many lines."""
    calls: int = 200
    call_keys: int = 10_000
    """What the SDK asks at most in one call."""
    small_keys: int = 100
    families: int = 500
    events: int = 5_000


RATIO_SQL = 2.5
"""Half of what was seen when it was set: it is there to notice what breaks."""
QUICK = Size(2, 10, 1_000, 10, 20, 200)


class Lookup:
    def __init__(self, options: Options) -> None:
        self._size = QUICK if options.quick else Size()
        self.targets = (
            Target("ratio_sql", at_least=RATIO_SQL),
            Target("lookups_per_registration", at_most=0, always=True),
        )
        self.notes = {
            "ours": "managers keep nothing on disk: the servers' durable lines are the truth",
            "sql": "the same lines in a temporary table of PostgreSQL with an index, one prepared statement a call",
        }

    async def run(self, place: Path, say: Say) -> Figures:
        size = self._size
        async with (
            open_ground(place, Plan([0.0] * size.servers), say) as ground,
            Child(
                "benchmarks.lookup.asking",
                {
                    "managers": ground.managers,
                    "database": ground.database_of(ground.servers[0]),
                },
                place / "asking.log",
            ) as asking,
        ):
            await asking.ask("look_up", calls=2, call_keys=size.call_keys, seed=0)
            large = await asking.ask("look_up", calls=size.calls, call_keys=size.call_keys, seed=1)
            say(
                f"{size.call_keys} keys a call: {large['per_s']:.0f} keys/s, SQL {large['sql_per_s']:.0f}"
            )
            small = await asking.ask(
                "look_up", calls=size.calls * 10, call_keys=size.small_keys, seed=2
            )
            say(
                f"{size.small_keys} keys a call: {small['per_s']:.0f} keys/s, SQL {small['sql_per_s']:.0f}"
            )
            first = await asking.ask("register", count=size.events, families=size.families)
            steady = await asking.ask("register", count=size.events, families=size.families)
        return {
            "ratio_sql": large["per_s"] / large["sql_per_s"],
            "ratio_sql_in_small_calls": small["per_s"] / small["sql_per_s"],
            "keys_per_s": large["per_s"],
            "keys_per_s_in_small_calls": small["per_s"],
            "sql_keys_per_s": large["sql_per_s"],
            "sql_keys_per_s_in_small_calls": small["sql_per_s"],
            "lookups_first": first["lookups"],
            "lookups_per_registration": steady["lookups"] / size.events,
        }
