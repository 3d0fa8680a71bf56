"""Registering, attaching, detaching and commanding, together and without a network."""

from __future__ import annotations

from array import array
from dataclasses import replace

import pytest

from sca_server.commands import Commands
from sca_server.config import Config
from sca_server.core import Core
from sca_server.outbox import Parcel
from sca_server.readers import Stream
from sca_server.sharing.tenure import Tenure
from utuple.delivery.handed import Handed
from utuple.delivery.notice import News, Notice
from utuple.errors import Conflict, InvalidInput, Overloaded
from utuple.model.columns import Columns
from utuple.model.identity import uuid7
from utuple.model.utuple import Family

CONFIG = Config("sca-1", "127.0.0.1:0", ("127.0.0.1:7400",))
POWER = Family("aircon", "power")
MINUTE_US = 60_000_000
ID = b"\x01" * 16


def devices(*numbers: int, lifetime_us: int = MINUTE_US, payload: bytes = b"{}") -> Columns:
    rows = len(numbers)
    return Columns(
        (POWER,),
        array("I", [0] * rows),
        b"".join(bytes([number]) * 16 for number in numbers),
        array("q", [0] * rows),
        array("d", [float("nan")] * rows),
        array("d", [float("nan")] * rows),
        array("q", [lifetime_us] * rows),
        [f"room-{number}" for number in numbers],
        [payload] * rows,
        ["reader"] * rows,
    )


def core(config: Config = CONFIG) -> Core:
    return Core(config.limits)


def registered(*numbers: int, lifetime_us: int = MINUTE_US, config: Config = CONFIG) -> Core:
    made = core(config)
    assert made.register(devices(*numbers, lifetime_us=lifetime_us), range(len(numbers)), 0) == []
    return made


def tell(made: Core, number: int, address: str, payload: bytes, now_us: int = 0) -> list[int]:
    commands = Commands((POWER,), array("I", [0]), uuid7(1, number), [address], [payload])
    round_, rows, found, _ = made.hand_over(commands, now_us=now_us, now_s=0.0, deadline_s=10.0)
    assert len(rows) == len(found) == len(round_.handed)
    return list(round_.handed)


def notes(stream: Stream) -> list[Notice]:
    found: list[Notice] = []
    while (taken := stream.outbox.pop(0)) is not None:
        if isinstance(taken, Notice):
            found.append(taken)
    return found


def test_a_command_meets_the_cfs_of_its_address_whose_template_accepts_it() -> None:
    made = registered(1, 2)
    picky = replace(devices(3, payload=b'{"on":["type","bool"]}'), addresses=["room-1"])
    assert made.register(picky, [0], 0) == []
    assert tell(made, 1, "room-1", b'{"on":true}') == [Handed.NOT_CONNECTED] * 2
    assert tell(made, 2, "room-1", b'{"on":1}') == [Handed.NOT_CONNECTED]
    assert tell(made, 3, "room-3", b'{"on":true}') == []


BROKEN = {
    "address": {"addresses": ["room-1", ""]},
    "reader": {"readers": ["reader", ""]},
    "time": {"times_us": array("q", [0, 1 << 60])},
    "position.latitude": {"lats": array("d", [0.0, 91.0]), "lons": array("d", [0.0, 0.0])},
    "position.longitude": {"lats": array("d", [0.0, 0.0]), "lons": array("d", [0.0, float("nan")])},
    "lifetime_s": {"lifetimes_us": array("q", [1, -1])},
    "where": {"payloads": [b"{}", b"[]"]},
}


@pytest.mark.parametrize(("field", "change"), BROKEN.items())
def test_a_bad_row_is_refused_by_its_index_and_the_rest_is_kept(
    field: str, change: dict[str, object]
) -> None:
    made = core()
    columns = replace(devices(1, 2), **change)  # type: ignore[arg-type]
    wrong = made.register(columns, range(2), 0)
    assert [(row, getattr(error, "field", None)) for row, error in wrong] == [(1, field)]
    assert made.index.get(ID, 0) is not None and len(made.index) == 1


def test_a_cf_of_an_unknown_reader_is_refused() -> None:
    made = core()
    [(row, error)] = made.register(replace(devices(1), readers=()), [0], 0)
    assert (row, getattr(error, "field", None)) == (0, "reader")


def test_a_cf_of_lifetime_0_is_registered_and_not_kept() -> None:
    made = core()
    assert made.register(devices(1, lifetime_us=0), [0], 0) == []
    assert len(made.index) == 0


def test_the_same_id_with_other_content_is_a_conflict() -> None:
    made = registered(1)
    [(row, error)] = made.register(devices(1, payload=b'{"a":["any"]}'), [0], 0)
    assert row == 0 and isinstance(error, Conflict)
    assert made.register(devices(1), [0], 0) == []


def test_an_attached_cf_does_not_expire_and_lives_for_its_lifetime_when_let_go() -> None:
    made = registered(1)
    stream = made.readers.open()
    made.attach(stream, ID, "", None, 0)
    later_us = 100 * MINUTE_US
    assert made.index.expire(later_us, 10) == 0
    assert tell(made, 1, "room-1", b"{}", later_us) == [Handed.OPEN]
    made.detach(stream, ID, cancel=False, now_us=later_us)
    assert tell(made, 2, "room-1", b"{}", later_us + MINUTE_US - 1) == [Handed.NOT_CONNECTED]
    assert tell(made, 3, "room-1", b"{}", later_us + MINUTE_US) == []


def test_the_end_of_a_stream_lets_its_cfs_go() -> None:
    made = registered(1, 2)
    stream = made.readers.open()
    for number in (1, 2):
        made.attach(stream, bytes([number]) * 16, "", None, 0)
    made.close(stream, MINUTE_US)
    assert made.index.get(ID, 2 * MINUTE_US - 1) is not None
    assert made.index.get(ID, 2 * MINUTE_US) is None


def test_a_program_that_has_gone_brings_no_more_devices() -> None:
    made = Core(CONFIG.limits, Tenure("sca-1", CONFIG.tenure, 0.0))
    made.tenure.agree(by_all=True, now_s=0.0)
    stream = made.open()
    made.tenure.bring(stream, more=True)
    assert not made.tenure.had_time(CONFIG.settle_s)
    made.close(stream, 0)
    assert made.tenure.had_time(CONFIG.settle_s)


def test_an_attach_may_bring_the_cf_itself_even_one_that_lives_as_long_as_the_stream() -> None:
    made = core()
    stream = made.readers.open()
    made.attach(stream, ID, "reader", devices(1, lifetime_us=0), 0)
    assert notes(stream) == [Notice(News.ATTACHED, ID)]
    assert tell(made, 1, "room-1", b"{}", MINUTE_US) == [Handed.OPEN]
    made.close(stream, MINUTE_US)
    assert tell(made, 2, "room-1", b"{}", MINUTE_US) == []


def test_an_attach_of_an_unknown_or_expired_cf_says_so() -> None:
    made = registered(1)
    stream = made.readers.open()
    made.attach(stream, b"\x09" * 16, "", None, 0)
    made.attach(stream, ID, "", None, MINUTE_US)
    assert notes(stream) == [Notice(News.UNKNOWN, b"\x09" * 16), Notice(News.UNKNOWN, ID)]
    assert tell(made, 1, "room-1", b"{}") == [Handed.NOT_CONNECTED]


def test_an_attach_that_breaks_a_rule_is_refused_and_keeps_nothing() -> None:
    made = core()
    stream = made.readers.open()
    attempts: list[tuple[bytes, str, Columns]] = [
        (b"short", "", devices(1)),
        (b"\x02" * 16, "", devices(1)),
        (ID, "", devices(1, 2)),
        (ID, "", devices()),
        (ID, "another", devices(1)),
        (ID, "", devices(1, payload=b"[]")),
    ]
    for id_, reader, registration in attempts:
        with pytest.raises(InvalidInput):
            made.attach(stream, id_, reader, registration, 0)
    assert len(made.index) == 0 and notes(stream) == []


def test_an_attach_with_other_content_is_a_conflict_and_one_too_many_is_refused() -> None:
    made = registered(1, config=replace(CONFIG, max_devices=1))
    stream = made.readers.open()
    with pytest.raises(Conflict):
        made.attach(stream, ID, "", devices(1, payload=b'{"a":["any"]}'), 0)
    with pytest.raises(Overloaded):
        made.attach(stream, b"\x02" * 16, "", devices(2), 0)
    assert notes(stream) == []


def test_a_detach_with_cancel_forgets_the_cf() -> None:
    made = registered(1)
    stream = made.readers.open()
    made.attach(stream, ID, "", None, 0)
    made.detach(stream, ID, cancel=True, now_us=0)
    made.detach(stream, ID, cancel=True, now_us=0)
    assert notes(stream) == [
        Notice(News.ATTACHED, ID),
        Notice(News.DETACHED, ID),
        Notice(News.DETACHED, ID),
    ]
    assert tell(made, 1, "room-1", b"{}") == []


def test_a_program_that_was_replaced_cannot_take_the_cf_from_its_successor() -> None:
    made = registered(1)
    first, second = made.readers.open(), made.readers.open()
    made.attach(first, ID, "", None, 0)
    assert made.attach(second, ID, "", None, 0) is first
    made.detach(first, ID, cancel=True, now_us=0)
    assert notes(first) == [
        Notice(News.ATTACHED, ID),
        Notice(News.REPLACED, ID),
        Notice(News.DETACHED, ID),
    ]
    made.close(first, 0)
    assert tell(made, 1, "room-1", b"{}", 100 * MINUTE_US) == [Handed.OPEN]
    assert second.outbox.pop(0) == Notice(News.ATTACHED, ID)
    taken = second.outbox.pop(0)
    assert isinstance(taken, Parcel)


def test_a_cf_served_again_on_the_same_stream_is_not_taken_from_it_by_the_first() -> None:
    made = registered(1)
    stream = made.readers.open()
    made.attach(stream, ID, "", None, 0, generation=1)
    made.attach(stream, ID, "", None, 0, generation=2)
    made.detach(stream, ID, cancel=True, now_us=0, generation=1)
    assert made.readers.attached.holders.get(ID) is stream
    assert notes(stream) == [
        Notice(News.ATTACHED, ID, 1),
        Notice(News.ATTACHED, ID, 2),
        Notice(News.DETACHED, ID, 1),
    ]
    assert tell(made, 1, "room-1", b"{}") == [Handed.OPEN]


def test_an_attach_of_an_earlier_generation_is_told_who_holds_the_cf() -> None:
    made = registered(1)
    one, other = made.readers.open(), made.readers.open()
    made.attach(one, ID, "", None, 0, generation=8)
    assert made.attach(other, ID, "", None, 0, generation=7) is None
    assert notes(other) == [Notice(News.REPLACED, ID, 8)]
    assert made.readers.attached.holders.get(ID) is one
    made.detach(one, ID, cancel=False, now_us=0, generation=8)
    made.attach(other, ID, "", None, 0, generation=7)
    assert made.readers.attached.holders.get(ID) is other


def test_a_cancel_from_elsewhere_detaches_the_stream_that_holds_the_cf() -> None:
    made = registered(1)
    stream = made.readers.open()
    made.attach(stream, ID, "", None, 0)
    assert made.cancel(ID) is stream
    assert notes(stream) == [Notice(News.ATTACHED, ID), Notice(News.DETACHED, ID)]
    assert tell(made, 1, "room-1", b"{}") == []
    with pytest.raises(InvalidInput):
        made.cancel(b"short")


def test_a_refill_brings_what_is_not_known_better_here() -> None:
    made = registered(1)
    made.cancel(b"\x02" * 16)
    changed = devices(1, 2, 3, payload=b'{"a":["any"]}')
    assert made.fill(changed, range(3), 0) == []
    assert tell(made, 1, "room-1", b"{}") == [Handed.NOT_CONNECTED], "the CF as it came here"
    assert [len(tell(made, 2, f"room-{n}", b'{"a":1}')) for n in (2, 3)] == [0, 1]
    [(row, _)] = made.fill(devices(4, payload=b"[]"), [0], 0)
    assert row == 0


def test_commands_are_refused_as_a_whole_when_too_many_wait_for_their_devices() -> None:
    made = registered(1, config=replace(CONFIG, max_unconfirmed=1))
    stream = made.readers.open()
    made.attach(stream, ID, "", None, 0)
    assert tell(made, 1, "room-1", b"{}") == [Handed.OPEN]
    with pytest.raises(Overloaded):
        tell(made, 2, "room-1", b"{}")
    made.readers.confirm(stream, [ID], [uuid7(1, 1)])
    assert tell(made, 2, "room-1", b"{}") == [Handed.OPEN]


@pytest.mark.parametrize(
    "change",
    [
        {"name": ""},
        {"managers": ()},
        {"listen": "7420"},
        {"managers": ("nowhere",)},
        {"advertise": "x"},
        {"max_devices": 0},
        {"max_confirm_s": -1.0},
    ],
)
def test_settings_that_cannot_work_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        replace(CONFIG, **change)  # type: ignore[arg-type]
