"""For mutants: one named part of our code is replaced while a test runs.

A mutant names what it turns off by a string. It must fail loudly when that name is gone, and when the replacement no longer
fits the calls that are made: a replacement that raises TypeError is noticed by every test, and proves nothing about the rule
it was to turn off.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def replaced(owner: Any, name: str, instead: Any) -> Iterator[None]:
    """`owner` is a module or a class that defines `name` itself."""
    complaint = misfit(owner, name, instead)
    assert not complaint, complaint
    kept = owner.__dict__[name]
    setattr(owner, name, instead)
    try:
        yield
    finally:
        setattr(owner, name, kept)


def misfit(owner: Any, name: str, instead: Any) -> str:
    """Why this cannot stand in for what is there; empty if it can."""
    if name not in owner.__dict__:
        return f"{owner.__name__} has no {name} of its own any more: nothing would be turned off"
    there, new = _function(owner.__dict__[name]), _function(instead)
    if not callable(there):
        return ""
    if inspect.iscoroutinefunction(there) != inspect.iscoroutinefunction(new):
        return (
            f"{owner.__name__}.{name} is called otherwise: one of the two is async, the other not"
        )
    theirs = inspect.signature(there).parameters.values()
    for given in (theirs, [one for one in theirs if one.default is one.empty]):
        by_position = [one for one in given if one.kind is not one.KEYWORD_ONLY]
        by_name = {one.name: one for one in given if one.kind is one.KEYWORD_ONLY}
        try:
            inspect.signature(new).bind(*by_position, **by_name)
        except TypeError as error:
            return f"{owner.__name__}.{name}{inspect.signature(there)} is called otherwise: {error}"
    return ""


def _function(value: Any) -> Any:
    """What is called in the end, of a property or a static method too."""
    return getattr(value, "fget", None) or getattr(value, "__func__", value)
