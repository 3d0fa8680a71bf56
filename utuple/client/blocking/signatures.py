"""What a blocking verb says of itself: the name, arguments and documentation of the asynchronous verb that it waits for.

Editors, notebooks and `help()` show these, so they must not tell anybody to await something.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import TypeVar, get_type_hints

F = TypeVar("F", bound=Callable[..., object])

_AWAITED = re.compile(r"\bawait\s+|\basync\s+(?=with\b|for\b)")


def without_await(text: str) -> str:
    """Examples as a program without an event loop writes them."""
    return _AWAITED.sub("", text)


def twin_of(method: Callable[..., object], returns: type | None = None) -> Callable[[F], F]:
    """The decorated function is this method's blocking twin; it gives `returns`, or what the method gives when it was
    awaited."""

    def described(own: F) -> F:
        signature, hints = inspect.signature(method), get_type_hints(method)
        if returns is not None:
            signature = signature.replace(return_annotation=returns.__name__)
            hints["return"] = returns
        own.__name__, own.__qualname__ = method.__name__, method.__qualname__
        own.__doc__ = without_await(method.__doc__ or "")
        own.__annotations__ = hints
        vars(own)["__signature__"] = signature
        return own

    return described
