"""What goes wrong again and again, several times a second perhaps, is said once, then every minute, and once more when it is over."""

from __future__ import annotations

from utuple.runtime.clock import monotonic_s
from utuple.runtime.logs import Log

_EVERY_S = 60.0


class Trouble:
    def __init__(self, log: Log, phrase: str, over: str) -> None:
        """Both are fixed phrases, as of any line of a log."""
        self._log = log
        self._phrase = phrase
        self._over = over
        self.since_s: float | None = None
        """None: all is well."""
        self._said_s = 0.0

    def again(self, **fields: object) -> None:
        now_s = monotonic_s()
        if self.since_s is None:
            self.since_s = now_s
        elif now_s < self._said_s + _EVERY_S:
            return
        self._said_s = now_s
        self._log.warning(self._phrase, **fields)

    def over(self, **fields: object) -> None:
        """All is well. A warning, too: who was told the one should hear the other."""
        if self.since_s is not None:
            for_s = round(monotonic_s() - self.since_s, 1)
            self.since_s = None
            self._log.warning(self._over, **fields, after_s=for_s)
