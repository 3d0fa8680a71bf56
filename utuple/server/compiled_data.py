"""Payloads that are plainly right, compiled by numba: see `admission`. Imported with the other compiled kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from utuple.model.limits import MAX_DATA_BYTES
from utuple.server.compiled import compiled

Text = NDArray[np.uint8]

MOST_MEMBERS = 16
SURE_DIGITS = 15
"""So many of a decimal fraction are what JSON writes for the float they mean."""
SURE_ZEROS = 3
"""After the point: with more of them some write an exponent."""
SURE_INTEGER = 18
"""Digits of an integer that has 64 bits."""

_END, _QUOTE, _DOLLAR, _COMMA, _MINUS, _POINT, _ZERO, _COLON, _BACKSLASH = b'\n"$,-.0:\\'
_OPEN, _CLOSE = b"{}"
_WORDS = np.frombuffer(b"true false null ", dtype=np.uint8)


@compiled
def _after_text(text: Text, at: int) -> int:
    """Behind the quote that ends it, or -1: something in it must be looked at."""
    while text[at] != _QUOTE:
        letter = text[at]
        if letter < 32 or letter > 126 or letter in (_BACKSLASH, _DOLLAR):
            return -1
        at += 1
    return at + 1


@compiled
def _digits(text: Text, at: int) -> int:
    first = at
    while 48 <= text[at] <= 57:
        at += 1
    return at - first


@compiled
def _after_number(text: Text, at: int) -> int:
    is_negative = text[at] == _MINUS
    if is_negative:
        at += 1
    whole: int = _digits(text, at)
    starts_with_zero = text[at] == _ZERO
    if whole == 0 or (starts_with_zero and whole > 1):
        return -1
    at += whole
    if text[at] != _POINT:
        return -1 if whole > SURE_INTEGER or (is_negative and starts_with_zero) else at
    at += 1
    fraction: int = _digits(text, at)
    if fraction == 0 or whole + fraction > SURE_DIGITS:
        return -1
    if text[at + fraction - 1] == _ZERO and fraction > 1:
        return -1
    if starts_with_zero and fraction > SURE_ZEROS:
        zeros = 0
        while text[at + zeros] == _ZERO:
            zeros += 1
        if zeros > SURE_ZEROS:
            return -1
    return at + fraction


@compiled
def _after_word(text: Text, at: int) -> int:
    """true, false or null."""
    first = 0
    while first < len(_WORDS):
        size = 0
        while _WORDS[first + size] != 32 and _WORDS[first + size] == text[at + size]:
            size += 1
        if _WORDS[first + size] == 32:
            return at + size
        while _WORDS[first] != 32:
            first += 1
        first += 1
    return -1


@compiled
def _is_repeated(text: Text, names: NDArray[np.int64], members: int) -> bool:
    """Is the last name one of those before?"""
    first, end = names[members]
    for member in range(members):
        other = names[member, 0]
        if names[member, 1] - other == end - first:
            at = 0
            while at < end - first and text[other + at] == text[first + at]:
                at += 1
            if at == end - first:
                return True
    return False


@compiled
def plain_mappings(text: Text, most: int) -> int:
    """How many there are, each ended by an end of line and at most so long: mappings of names to numbers, texts and words,
    in their one encoding. -1: one of them may be otherwise. No letter but the end of line itself is taken for more than
    one at a time, and it ends everything: so nothing is read beyond the last."""
    names = np.empty((MOST_MEMBERS, 2), dtype=np.int64)
    at = count = 0
    while at < len(text):
        first = at
        if text[at] != _OPEN:
            return -1
        at += 1
        members = 0
        while text[at] != _CLOSE or members:
            if text[at] != _QUOTE or members == MOST_MEMBERS:
                return -1
            names[members, 0] = at + 1
            at = _after_text(text, at + 1)
            if at < 0 or at - 1 == names[members, 0] or text[at] != _COLON:
                return -1
            names[members, 1] = at - 1
            if _is_repeated(text, names, members):
                return -1
            members += 1
            at += 1
            letter = text[at]
            if letter == _QUOTE:
                at = _after_text(text, at + 1)
            elif letter == _MINUS or 48 <= letter <= 57:
                at = _after_number(text, at)
            else:
                at = _after_word(text, at)
            if at < 0:
                return -1
            if text[at] == _CLOSE:
                break
            if text[at] != _COMMA:
                return -1
            at += 1
        at += 1
        if text[at] != _END or at - first > most:
            return -1
        at += 1
        count += 1
    return count


def are_plain(payloads: Sequence[bytes]) -> bool:
    """One that has an end of line in it is more than one, or none."""
    text = np.frombuffer(b"\n".join((*payloads, b"")), dtype=np.uint8)
    return bool(plain_mappings(text, MAX_DATA_BYTES) == len(payloads))


def warm_up() -> None:
    are_plain([b"{}"])
