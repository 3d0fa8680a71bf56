"""Which stream holds which formal, and who has a say in that. Pure.

One reader's name may be opened twice, by two programs or by one program before it has closed the first. Then two
attachments want the same formal at every server of its line, and their messages reach each server in any order. If
every server went by the order of arrival, one attachment could win here and the other there, and each program would
get half of the events. So each opening has a *generation*, higher than any that its program has heard of, and all
servers judge by it alone: the higher generation holds the formal, whenever it came.

A program whose stream broke attaches again on the next one, under the same generation. What it said on the old stream may
be read after what it says on the new one: then the old words must not move the formal back to a stream that is dead.
So each attachment of a program has a number, its *attempt*, and of one generation the higher attempt is the later.

From the first rule follows another. What an attachment says that does not hold the formal any more (that it takes more,
that it detaches, that the formal is to be cancelled) concerns nobody: it was said before its program knew that it had
been replaced. Otherwise the farewell of the old one would silence the new one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

S = TypeVar("S", bound=Hashable)


class Attachments(Generic[S]):
    def __init__(self) -> None:
        self.holders: dict[bytes, S] = {}
        """By formal; to be read only. An sCA server looks a million of them up in a second."""
        self._generations: dict[bytes, int] = {}
        self._attempts: dict[bytes, int] = {}
        self._formals: dict[S, dict[bytes, None]] = {}
        """In the order they were attached: the same in every run from one seed."""

    def __contains__(self, formal: object) -> bool:
        return formal in self.holders

    def __iter__(self) -> Iterator[bytes]:
        return iter(list(self.holders))

    def on(self, stream: S) -> list[bytes]:
        """The formals this stream holds."""
        return list(self._formals.get(stream, ()))

    def count(self, stream: S) -> int:
        return len(self._formals.get(stream, ()))

    def generation_of(self, formal: bytes) -> int:
        """Of a formal that is held."""
        return self._generations[formal]

    def later_than(self, formal: bytes, generation: int) -> int | None:
        """The generation of the holder, if it is a later one than this: then the formal stays where it is."""
        held = self._generations.get(formal)
        return held if held is not None and held > generation else None

    def is_outdated(self, formal: bytes, generation: int, attempt: int) -> bool:
        """Does a later attempt of the same opening hold it? Then nobody waits for an answer to this one."""
        held = self._generations.get(formal)
        return held == generation and self._attempts[formal] > attempt

    def attach(self, formal: bytes, stream: S, generation: int, attempt: int = 0) -> S | None:
        """This stream holds it from now on. Returns the stream that held it before, if another did, to be told."""
        before = self.holders.get(formal)
        if before is not None and before != stream:
            self._formals[before].pop(formal, None)
        self.holders[formal] = stream
        self._generations[formal] = generation
        self._attempts[formal] = attempt
        self._formals.setdefault(stream, {})[formal] = None
        return before if before != stream else None

    def is_by(self, formal: bytes, stream: S, generation: int) -> bool:
        """Does this very attachment hold it?"""
        held = self.holders.get(formal)
        return held is not None and held == stream and self._generations[formal] == generation

    def may_end(self, formal: bytes, stream: S, generation: int) -> bool:
        """Has this attachment a say in the formal's end? It has if it holds it, or if nobody does."""
        return formal not in self.holders or self.is_by(formal, stream, generation)

    def detach(self, formal: bytes) -> S | None:
        """Returns the stream that held it."""
        stream = self.holders.pop(formal, None)
        if stream is not None:
            del self._generations[formal], self._attempts[formal]
            self._formals[stream].pop(formal, None)
        return stream

    def close(self, stream: S) -> list[bytes]:
        """The stream has ended; returns what it held."""
        formals = self.on(stream)
        for formal in formals:
            del self.holders[formal], self._generations[formal], self._attempts[formal]
        self._formals.pop(stream, None)
        return formals
