"""The rules of readers, each with a switch that turns it off: one name has one reader, who is attached does not expire, an
opening that is cancelled undoes itself."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from tests.replacing import replaced
from tests.virtual.mutants.serving import Mutant
from utuple.client.receiving.deliveries import Deliveries
from utuple.client.receiving.device import Device
from utuple.client.receiving.formal import Formal
from utuple.client.sending.batcher import Batcher
from utuple.client.sending.simple_commands import ScaCalls
from utuple.delivery.attachments import Attachments
from utuple.model.section import Section
from utuple.model.utuple import UTuple
from utuple.server.delivering.cursor import Cursor
from utuple.server.delivering.cursors import Cursors
from utuple.server.delivering.dispatcher import Dispatcher
from utuple.server.delivering.reading.together import Together
from utuple.server.matching.index import TemplateIndex
from utuple.server.moving.shipping import Shipping
from utuple.server.writing.lifetimes import Lifetimes
from utuple.store.contract import Batch, Search
from utuple.wire import utuple_pb2 as pb


def two_openings_of_a_reader_are_one() -> AbstractContextManager[None]:
    """The first does not leave, and nobody can tell its words from the second's."""

    async def beside(self: Formal) -> None:
        self._sessions.open[self.utuple.id] = self
        self.generation = 1

    return replaced(Formal, "claim", beside)


def the_last_to_come_has_the_reader() -> AbstractContextManager[None]:
    """At each server for itself: whichever generation attaches last holds the formal there."""

    def never(self: Attachments[Any], formal: bytes, generation: int) -> int | None:
        return None

    return replaced(Attachments, "later_than", never)


def what_was_said_on_a_broken_stream_counts() -> AbstractContextManager[None]:
    """An attachment that is read after the one that followed it has the formal."""

    def never(self: Attachments[Any], formal: bytes, generation: int, attempt: int) -> bool:
        return False

    return replaced(Attachments, "is_outdated", never)


@contextmanager
def who_is_attached_expires() -> Iterator[None]:
    """By the clock, a lifetime after it was registered."""

    def let_expire(self: Lifetimes, formals: Iterable[bytes]) -> None:
        for _ in formals:
            pass

    def held_by_nobody(self: TemplateIndex, id_: bytes) -> bool:
        return True

    with replaced(Lifetimes, "hold", let_expire), replaced(TemplateIndex, "pin", held_by_nobody):
        yield


def who_was_over_has_met_what_is_under_way() -> AbstractContextManager[None]:
    """A reader attaches to a formal whose lifetime is over, and is live at once: EAs that are being committed passed
    the formal by."""
    pin = TemplateIndex.pin

    def met(self: TemplateIndex, id_: bytes) -> bool:
        pin(self, id_)
        return True

    return replaced(TemplateIndex, "pin", met)


def who_comes_twice_has_met_what_is_under_way() -> AbstractContextManager[None]:
    """The same, for a reader that attaches again before that is committed: its formal is held already."""
    attach = Cursors.attach

    def forgetting(
        self: Cursors, formal: bytes, stream: int, window: int, after: Mapping[str, int], *rest: Any
    ) -> None:
        self._passed_by.forget(formal)
        attach(self, formal, stream, window, after, *rest)

    return replaced(Cursors, "attach", forgetting)


def a_cancelled_opening_is_left_as_it_is() -> AbstractContextManager[None]:
    leave = Deliveries._leave

    async def nothing() -> None:
        return

    def stay(self: Deliveries, *, cancel: bool) -> asyncio.Task[None]:
        if self._opened or self._closed:
            return leave(self, cancel=cancel)
        return self._parts.sessions.finish(nothing(), "nothing")

    return replaced(Deliveries, "_leave", stay)


def a_goodbye_does_not_wait_for_registrations() -> AbstractContextManager[None]:
    """It may overtake those that its own opening sent, and be answered by a server that does not know the formal yet."""

    async def at_once(self: Batcher, formal: bytes, limit_s: float) -> None:
        return

    return replaced(Batcher, "settled", at_once)


def an_sca_server_keeps_a_cancelled_device() -> AbstractContextManager[None]:
    """Its opening was cancelled after it had become known there, and before it was attached."""

    async def keep(self: ScaCalls, device: UTuple, servers: Iterable[str]) -> None:
        return

    return replaced(ScaCalls, "forget", keep)


def a_device_is_forgotten_before_it_is_known() -> AbstractContextManager[None]:
    """The word that it is gone may overtake the one that it is there."""

    async def at_once(self: ScaCalls, device: UTuple, limit_s: float) -> None:
        return

    return replaced(ScaCalls, "settled", at_once)


def a_reader_does_not_hear_that_its_ef_is_gone() -> AbstractContextManager[None]:
    """Somebody else has cancelled it."""

    def in_silence(self: Dispatcher, formal: bytes) -> None:
        self._detach(formal)

    return replaced(Dispatcher, "_lost", in_silence)


def who_had_no_room_beside_others_is_passed_over() -> AbstractContextManager[None]:
    read = Cursors._read

    def passed_over(
        self: Cursors, cursor: Cursor, origin: str, batch: Batch, rows: array[int]
    ) -> tuple[array[int], bool]:
        is_beside = cursor.search is not None and cursor.search.together is not None
        found = read(self, cursor, origin, batch, rows)
        if is_beside and len(batch):
            cursor.covered[origin] = max(cursor.covered[origin], batch.seqs[-1])
        return found

    return replaced(Cursors, "_read", passed_over)


def one_search_for_many_begins_with_the_foremost() -> AbstractContextManager[None]:
    search = Together.search

    def foremost(self: Together, since_us: int) -> Search:
        self._after = self._upto - 1
        return search(self, since_us)

    return replaced(Together, "search", foremost)


def what_was_acknowledged_elsewhere_is_not_asked_for() -> AbstractContextManager[None]:
    async def nobody(self: Device) -> None:
        return

    return replaced(Device, "_ask_what_is_done", nobody)


def what_devices_acknowledged_stays_behind() -> AbstractContextManager[None]:
    """At a server that is drained."""

    async def nothing(
        self: Shipping, move: bytes, section: Section
    ) -> AsyncIterator[pb.TakeRequest]:
        for request in list[pb.TakeRequest]():
            yield request

    return replaced(Shipping, "_acknowledged", nothing)


READERS: dict[str, Mutant] = {
    "acknowledged commands are not asked for": what_was_acknowledged_elsewhere_is_not_asked_for,
    "acknowledged commands stay behind": what_devices_acknowledged_stays_behind,
    "who had no room beside others is passed over": who_had_no_room_beside_others_is_passed_over,
    "one search for many begins with the foremost": one_search_for_many_begins_with_the_foremost,
    "two openings of a reader are one": two_openings_of_a_reader_are_one,
    "the last to come has the reader": the_last_to_come_has_the_reader,
    "what was said on a broken stream counts": what_was_said_on_a_broken_stream_counts,
    "who is attached expires": who_is_attached_expires,
    "who was over has met what is under way": who_was_over_has_met_what_is_under_way,
    "who comes twice has met what is under way": who_comes_twice_has_met_what_is_under_way,
    "a cancelled opening is left as it is": a_cancelled_opening_is_left_as_it_is,
    "a goodbye does not wait for registrations": a_goodbye_does_not_wait_for_registrations,
    "an sCA server keeps a cancelled device": an_sca_server_keeps_a_cancelled_device,
    "a reader does not hear that its EF is gone": a_reader_does_not_hear_that_its_ef_is_gone,
    "a device is forgotten before it is known": a_device_is_forgotten_before_it_is_known,
}
