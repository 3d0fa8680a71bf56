"""Something wrong out of something right, by dice."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

MOST_BYTES = 4096
_NUMBERS = (0, 1, 0x7F, 0x80, 0xFF)
_WORDS = (
    *(b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00"),
    *(b"", b"\xc3\x28", b"\xed\xa0\x80", b"\xf0\x9f\x92\xa9", b"NaN", b"1e999", b"-0", b"\\u0000"),
)
Mutate = Callable[[random.Random, bytes, Sequence[bytes]], bytes]


def _flip(dice: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    if not data:
        return b"\x00"
    at = dice.randrange(len(data))
    return data[:at] + bytes((data[at] ^ 1 << dice.randrange(8),)) + data[at + 1 :]


def _set(dice: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    at = dice.randrange(len(data) + 1)
    value = dice.choice(_NUMBERS) if dice.random() < 0.5 else dice.randrange(256)
    return data[:at] + bytes((value,)) + data[at + 1 :]


def _insert(dice: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    at = dice.randrange(len(data) + 1)
    word = dice.choice(_WORDS) if dice.random() < 0.5 else dice.randbytes(dice.randrange(1, 9))
    return data[:at] + word + data[at:]


def _delete(dice: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    at = dice.randrange(len(data) + 1)
    return data[:at] + data[at + dice.randrange(1, 17) :]


def _repeat(dice: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    at = dice.randrange(len(data) + 1)
    piece = data[at : at + dice.randrange(1, 33)]
    return data[:at] + piece * dice.randrange(2, 6) + data[at:]


def _cut(dice: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    return data[: dice.randrange(len(data) + 1)]


def _splice(dice: random.Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
    other = dice.choice(corpus)
    return data[: dice.randrange(len(data) + 1)] + other[dice.randrange(len(other) + 1) :]


_MUTATIONS: tuple[Mutate, ...] = (
    _flip,
    _flip,
    _set,
    _set,
    _insert,
    _delete,
    _repeat,
    _cut,
    _splice,
)


def mutated(dice: random.Random, corpus: Sequence[bytes]) -> bytes:
    """One of the corpus, changed a few times."""
    data = dice.choice(corpus)
    for _ in range(1 + int(dice.expovariate(0.7))):
        data = dice.choice(_MUTATIONS)(dice, data, corpus)
    return data[:MOST_BYTES]
