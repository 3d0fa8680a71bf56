"""What can go wrong, sorted by what the caller can do now.

UTupleError
├── Refused              fix the input; nothing of it was registered
│   ├── InvalidInput     a value breaks a rule: .field, .value, .rule
│   ├── Conflict         this id is already registered with other content
│   ├── NotAllowed       the credentials do not allow it; says what they would, an operator may grant more
│   └── SomeRefused      of `emit_many`: those in .refused; .registered others are registered
├── SomeRegistered       of `emit_many`, `command_many`: the iterable failed; go on with number .reached
├── NotRegistered        nothing was registered; try again later
│   ├── Unavailable      no server that may take it answers
│   │   └── UnknownHost  none of the names given to `connect` is known: most likely a mistyped one
│   └── Overloaded       the server is full; wait .retry_after_s
├── OutcomeUnknown       may or may not be registered; space.retry(error) is safe
├── Closed               this space, watch or device is closed
│   └── ReaderReplaced   another program now reads under this reader's name
└── WrongContext         it belongs to another event loop or process; connect a space here
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

_SHOWN_CHARS = 80
_SHOWN_REASONS = 3


class UTupleError(Exception):
    """The root: catch this to catch everything this package raises on purpose."""


class Refused(UTupleError):
    """The space will never take this: change it. Nothing of it was registered."""


class InvalidInput(Refused, ValueError):
    """A value that breaks a rule; nothing of it was kept."""

    def __init__(self, field: str, value: object, rule: str) -> None:
        self.field = printable(field)
        self.value = value
        self.rule = rule
        super().__init__(f"{self.field}: {shown(value)} is refused: {rule}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (InvalidInput, (self.field, self.value, self.rule))


class Conflict(Refused):
    """The same id was registered before with other content."""


class NotAllowed(Refused):
    """Not with these credentials. The message says what they would allow; an operator may grant more."""


class SomeRefused(Refused):
    """Some events of an `emit_many` were refused; the others are registered, durably."""

    def __init__(self, refused: Mapping[int, Refused], registered: int) -> None:
        self.refused = dict(sorted(refused.items()))
        """By the event's number in the iterable, from 0: why it was refused. Each names its row."""
        self.registered = registered
        reasons = [str(error) for error in self.refused.values()]
        more = len(reasons) - _SHOWN_REASONS
        rest = "the others are registered" if registered else "none is registered"
        super().__init__(
            f"{len(reasons)} of {len(reasons) + registered} events were refused, {rest}: "
            + "; ".join(reasons[:_SHOWN_REASONS])
            + (f"; and {more} more" if more > 0 else "")
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (SomeRefused, (self.refused, self.registered))


class SomeRegistered(UTupleError):
    """The iterable given to `emit_many` or `command_many` failed; `__cause__` is its error. What it gave before that was
    registered, durably, except for what was refused: go on with number `reached`."""

    def __init__(
        self,
        reason: str,
        reached: int,
        registered: int,
        *,
        refused: Mapping[int, Refused] | None = None,
        receipts: object = None,
    ) -> None:
        self.reason = reason
        self.reached = reached
        """The number, from 0, of the first one of which nothing was registered."""
        self.registered = registered
        self.refused = dict(sorted((refused or {}).items()))
        """As in `SomeRefused`."""
        self.receipts = receipts
        """Of `command_many`: the receipts of those before `reached`."""
        super().__init__(
            f"the iterable failed at number {reached} ({reason}); of the {reached} before it {registered} "
            f"are registered" + (f" and {len(self.refused)} were refused" if self.refused else "")
        )

    def __reduce__(self) -> tuple[Any, ...]:
        given = (self.reason, self.reached, self.registered)
        return (partial(SomeRegistered, refused=self.refused, receipts=self.receipts), given)


class NotRegistered(UTupleError):
    """Nothing was registered; the same call may succeed later."""

    def __init__(self, message: str, *, retry_after_s: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Unavailable(NotRegistered):
    """No server that may take this answers."""


class UnknownHost(Unavailable):
    """The name of an assignment manager cannot be resolved, and none of the others answers or can be."""


class Overloaded(NotRegistered):
    """The server's queue is full; wait `retry_after_s` and call again."""


class OutcomeUnknown(UTupleError):
    """The answer was lost. What was sent may be registered; sending it again with the same ids,
    which is what `space.retry(error)` does, is safe."""

    def __init__(self, message: str, *, pending: object = None) -> None:
        super().__init__(message)
        self.pending = pending
        self.reached: int | None = None
        """Of `emit_many` and `command_many`: the number, from 0, of the first one that was not taken from the iterable.
        Those before it are registered, refused, or for `space.retry`."""


class Closed(UTupleError):
    """This space, watch or device was closed."""


class WrongContext(UTupleError, RuntimeError):
    """A space, or what it handed out, was used in another event loop or process than the one it belongs to."""


class ReaderReplaced(Closed):
    """Another program attached under the same reader name; this one gets nothing more."""


def printable(name: str) -> str:
    """A name as a terminal and a log can take it: a field's name may be any text a caller came with."""
    if name.isprintable():
        return name
    return "".join([sign if sign.isprintable() else ascii(sign)[1:-1] for sign in name])


def shown(value: object) -> str:
    """A value as an error message shows it: short, whatever its size; an instant as people write it."""
    try:
        text = value.isoformat() if isinstance(value, datetime) else repr(value)
    except RecursionError:
        return f"a {type(value).__name__} nested too deep to show"
    if len(text) <= _SHOWN_CHARS:
        return text
    return f"{text[:_SHOWN_CHARS]}… ({len(text)} characters)"
