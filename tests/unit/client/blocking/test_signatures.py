"""What `help()`, editors and notebooks show of the blocking face."""

from __future__ import annotations

import inspect
import pydoc
import re
from collections.abc import Callable
from typing import Any, get_type_hints

import pytest

import utuple
from utuple.client.blocking.signatures import without_await

VERBS = ("emit", "emit_many", "watch", "read", "serve", "command", "command_many", "retry")
RETURNS: dict[str, Any] = {
    "emit": type(None),
    "emit_many": int,
    "watch": utuple.blocking.Watch,
    "read": utuple.blocking.Reading,
    "serve": utuple.blocking.Device,
    "command": utuple.Receipt,
    "command_many": utuple.Receipts,
    "retry": object,
}
ASYNCHRONOUS = re.compile(r"\bawait|\basync\b|\bAsync|Coroutine|Awaitable")


@pytest.mark.parametrize("verb", VERBS)
def test_a_blocking_verb_takes_the_same_and_awaits_nothing(verb: str) -> None:
    own, other = getattr(utuple.blocking.Space, verb), getattr(utuple.Space, verb)
    signature = inspect.signature(own)
    assert signature.parameters == inspect.signature(other).parameters
    assert not ASYNCHRONOUS.search(str(signature)) and not ASYNCHRONOUS.search(own.__doc__)
    assert not inspect.iscoroutinefunction(own)
    assert get_type_hints(own)["return"] is RETURNS[verb]
    assert own.__doc__.splitlines()[0] == other.__doc__.splitlines()[0]


@pytest.mark.parametrize(
    "what",
    [
        utuple.blocking,
        utuple.blocking.Space,
        utuple.blocking.Watch,
        utuple.blocking.Device,
        utuple.blocking.Reading,
        utuple.blocking.Delivery,
        utuple.blocking.connect,
    ],
)
def test_help_on_the_blocking_face_says_nothing_asynchronous(what: object) -> None:
    """How its objects are made (of asynchronous ones) is not for users."""
    said = pydoc.plain(pydoc.render_doc(what))
    found = [line for line in said.splitlines() if ASYNCHRONOUS.search(line)]
    own = ("own: 'Async", "-> 'Receipt'")  # of a receipt, `space.refresh`, `wait` and `end` do it
    assert [line for line in found if not any(one in line for one in own)] == []


def public(owner: Any) -> list[Callable[..., Any]]:
    return [
        getattr(owner, name)
        for name in vars(owner)
        if not name.startswith("_") and callable(getattr(owner, name))
    ]


@pytest.mark.parametrize("owner", [utuple, utuple.blocking])
def test_everything_public_explains_itself(owner: Any) -> None:
    for name in owner.__all__:
        one = getattr(owner, name)
        doc = inspect.getdoc(one) or ""
        assert doc and not doc.startswith(f"{name}("), f"{name} explains itself"
        for method in public(one) if inspect.isclass(one) else ():
            assert method.__doc__, f"{name}.{method.__name__} explains itself"


def test_examples_lose_their_awaits_and_nothing_else() -> None:
    text = (
        "async with a as b:\n    async for c in b:\n        await c.ack()  # awaited, asynchronous"
    )
    assert without_await(text) == (
        "with a as b:\n    for c in b:\n        c.ack()  # awaited, asynchronous"
    )
