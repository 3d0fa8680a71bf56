"""What users wrote down becomes the checker's history: read back, life by life."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest

from benchmarks.chaos import record
from benchmarks.chaos.checker import History, Verdict, check
from benchmarks.chaos.load.scene import Asked, Machine, Order, random_event, utuple_id, written
from benchmarks.chaos.retelling import Retelling
from utuple.model.condition import address_condition
from utuple.model.utuple import Family

TRUCK, AIRCON = Family("truck", "load"), Family("aircon", "power")
SECOND_US = 1_000_000
END_US = 100 * SECOND_US


class Book:
    """Lines with times of the test's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, program: str, life: int, at_s: float, what: str, **said: Any) -> None:
        line = {"what": what, "at_us": round(at_s * SECOND_US), **said}
        with record.file_of(self.folder, program, life).open("ab") as file:
            file.write(orjson.dumps(line) + b"\n")

    def emit(self, n: int, at_s: float, outcome: str = "OK", life: int = 1) -> None:
        event = random_event(Random(n), n, [TRUCK], round(at_s * SECOND_US))
        event["lifetime_s"] = 1000.0
        self.write("sensors-1", life, at_s, record.EMIT, **written(event))
        if outcome:
            said = {"ns": [n], "outcome": outcome}
            self.write("sensors-1", life, at_s + 0.1, record.EMITTED, **said)

    def watch(self, label: str, at_s: float, *, life: int = 1, named: bool = True) -> None:
        asked = {"named": named, "asked": Asked(TRUCK).said}
        self.write("reader-1", life, at_s, record.ASK, label=label, **asked)
        self.write("reader-1", life, at_s + 0.1, record.OPEN, label=label)

    def got(self, label: str, at_s: float, *ns: int, life: int = 1) -> None:
        self.write("reader-1", life, at_s, record.GOT, label=label, ns=list(ns))

    def history(self) -> History:
        return Retelling().tell_all(self.folder)

    def verdict(self) -> Verdict:
        return check(self.history(), END_US)


@pytest.fixture
def book(tmp_path: Path) -> Book:
    return Book(tmp_path)


def test_what_came_is_expected_and_what_did_not_come_is_missed(book: Book) -> None:
    book.watch("one", 1)
    book.emit(1, 2)
    book.emit(2, 3)
    book.got("one", 4, 1)
    verdict = book.verdict()
    assert (verdict.registered, verdict.expected, verdict.delivered) == (2, 2, 1)
    assert [missed.id for missed in verdict.missed] == [utuple_id(2)]


def test_a_reader_that_is_killed_and_resumed_is_one_label_with_two_lives(book: Book) -> None:
    book.emit(1, 1)
    book.watch("one", 2)
    book.got("one", 3, 1)
    book.watch("one", 10, life=2)
    book.got("one", 11, 1, life=2)
    assert book.verdict().is_clean
    book.got("one", 12, 1, life=2)
    assert len(book.verdict().repeated) == 1


def test_a_watch_without_a_name_ends_with_its_process(book: Book) -> None:
    book.watch("one", 1, named=False)
    book.watch("two", 10, named=False, life=2)
    book.emit(1, 20)
    verdict = book.verdict()
    assert [missed.where for missed in verdict.missed] == ["two"]


def test_an_emit_without_an_answer_is_unknown(book: Book) -> None:
    book.watch("one", 1)
    book.emit(1, 2, outcome="")
    book.emit(2, 3, life=2)
    book.got("one", 4, 2)
    assert book.verdict().is_clean
    book.got("one", 5, 1)
    assert book.verdict().is_clean


def test_a_delivery_of_what_was_surely_not_registered_is_a_phantom(book: Book) -> None:
    book.watch("one", 1)
    book.emit(1, 2, outcome="NOT")
    book.got("one", 4, 1)
    assert len(book.verdict().phantom) == 1


def test_what_was_answered_and_is_not_read_back_is_lost(book: Book) -> None:
    book.emit(1, 1)
    book.emit(2, 2)
    said = {"family": list(TRUCK), "began_us": 50 * SECOND_US, "ns": [1]}
    book.write("chaos-1", 1, 51, record.READ, **said)
    assert [lost.id for lost in book.verdict().lost] == [utuple_id(2)]


def test_the_last_line_of_a_killed_program_may_be_cut_off(book: Book) -> None:
    book.emit(1, 1)
    with record.file_of(book.folder, "sensors-1", 1).open("ab") as file:
        file.write(b'{"what":"emi')
    assert book.verdict().registered == 1


# --- commands ----------------------------------------------------------------------------------------


def served(book: Book, label: str, at_s: float, address: str = "d-1") -> None:
    machine = Machine(AIRCON, address, (35.0, 139.0))
    said = {"named": False, "machine": machine.said}
    book.write("devices-1", 1, at_s, record.SERVE, label=label, **said)
    book.write("devices-1", 1, at_s + 0.1, record.SERVING, label=label)


def commanded(book: Book, n: int, at_s: float, *handed: str, lifetime_s: float = 0.0) -> None:
    order = Order(AIRCON, n, address_condition("d-1"), lifetime_s=lifetime_s)
    book.write("devices-1", 1, at_s, record.COMMAND, **order.said)
    said = {"n": n, "outcome": "OK", "handed": list(handed)}
    book.write("devices-1", 1, at_s + 0.5, record.COMMANDED, **said)


def test_a_receipt_that_names_a_device_binds_the_one_that_was_there(book: Book) -> None:
    served(book, "first", 1)
    book.write("devices-1", 1, 5, record.SERVED, label="first")
    served(book, "second", 6)
    commanded(book, 1, 10, "d-1")
    verdict = book.verdict()
    assert [missed.where for missed in verdict.missed] == ["second"]


def test_a_receipt_that_may_mean_two_binds_neither(book: Book) -> None:
    served(book, "first", 1)
    commanded(book, 1, 4.8, "d-1")
    book.write("devices-1", 1, 5, record.SERVED, label="first")
    served(book, "second", 5.1)
    assert book.verdict().is_clean


def test_a_command_that_lives_reaches_the_device_that_comes_later(book: Book) -> None:
    commanded(book, 1, 1, lifetime_s=60.0)
    served(book, "late", 10)
    assert len(book.verdict().missed) == 1
    book.write("devices-1", 1, 11, record.TOOK, label="late", ns=[1])
    assert book.verdict().is_clean
