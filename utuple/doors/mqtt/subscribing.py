"""Subscriptions of one client as EFs and CFs, and what they bring.

A subscription is one EF for each family that its filter reaches. A session that is kept reads under names of its own, so that
what came while its client was away is found; any other subscription lives as long as the connection.

MQTT's subscription begins when it is made, an EF begins with what is stored. `since` keeps most of that away, and an event
that was stored before the subscription is left out by the time in its id.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import utuple
from utuple.cli.verbs.parsing import parse_area, parse_time, parse_where
from utuple.doors.mqtt import sharing
from utuple.doors.mqtt.codec import names
from utuple.doors.mqtt.codec.packets import Filter
from utuple.doors.mqtt.codec.reasons import Reason
from utuple.doors.mqtt.families import Families
from utuple.doors.mqtt.mapped.identity import made_ms, marks_of
from utuple.doors.mqtt.mapped.mapping import Addresses, Command, Family, Mapping
from utuple.doors.mqtt.mapped.payload import form_of, is_expired, payload_of, properties_of
from utuple.doors.mqtt.protocol.outgoing import Message
from utuple.runtime.clock import now_us
from utuple.runtime.logs import Log
from utuple.runtime.tasks import Tasks, all_ended

if TYPE_CHECKING:
    from utuple.doors.mqtt.client import Client
    from utuple.doors.mqtt.rooms import Room

_log = Log("utuple.doors.mqtt.subscribing")
_TAKEN = 256
_TRY_AGAIN_S = 0.5
_LEAST_LIFETIME_S = 1.0
ASKED = ("area", "where", "since")
"""User properties of a SUBSCRIBE that ask for more than its filter does."""

Source = utuple.Watch | utuple.Device
Pairs = tuple[tuple[str, str], ...]


class _TooManyFamilies(Exception):
    """A filter reaches more of them than a door opens for one."""


@dataclass
class Opened:
    """A subscription: what was asked, and what it is read by."""

    filter: Filter
    identifier: int
    user: Pairs
    began_ms: int
    is_open: bool = False  # also without a source: it may watch none of its families yet
    sources: dict[object, Source] = field(default_factory=dict)
    group_began_ms: int = 0
    """Of a subscription that is shared: when its first member came."""
    claimed: set[Family] = field(default_factory=set)
    """Of several families, those that are open or being opened: a new one is heard of in two ways."""

    @property
    def group(self) -> str:
        """Of those that share it; empty: it is not shared."""
        found = names.shared(self.filter.pattern)
        return found[0] if found is not None else ""

    @property
    def pattern(self) -> str:
        """What names it asks for."""
        found = names.shared(self.filter.pattern)
        return found[1] if found is not None else self.filter.pattern

    @property
    def group_name(self) -> str:
        return sharing.group_name(self.group, self.pattern, self.asked)

    @property
    def from_ms(self) -> int:
        """It begins with what was published from then on."""
        return self.group_began_ms or self.began_ms

    @property
    def asked(self) -> Pairs:
        return tuple(pair for pair in self.user if pair[0] in ASKED)


def conditions_of(user: Pairs, now: datetime) -> dict[str, Any]:
    """`area`, `where` and `since` of the SDK. Raises `InvalidInput`."""
    found: dict[str, Any] = {}
    for name, value in user:
        if name == "area":
            found["area"] = parse_area(value)
        elif name == "since":
            found["since"] = parse_time("since", value, now)
    if where := [value for name, value in user if name == "where"]:
        found["where"] = parse_where(where)
    return found


class Subscribing:
    def __init__(
        self,
        client: Client,
        room: Room,
        own: utuple.Space,
        mapping: Mapping,
        families: Families,
        most: int,
        connect: Callable[[], utuple.Space],
    ) -> None:
        """`own` is the doors' space, where groups are remembered."""
        self._client = client
        self._room = room
        self._space = room.space
        self._own = own
        self._connect = connect
        self._sharing: utuple.Space | None = None
        """Open while this client shares subscriptions."""
        self._mapping = mapping
        self._families = families
        self._most_families = most
        self._tasks = Tasks()
        self.opened: dict[str, Opened] = {}
        families.listen(self._new_family)

    async def open(self, opened: Opened) -> Reason:
        """Subscribed when it returns, if the reason is none of failure: whatever is published after that comes."""
        pattern = opened.filter.pattern
        held = self.opened.get(pattern)
        if held is not None and held.asked == opened.asked and held.is_open:
            held.filter, held.identifier = opened.filter, opened.identifier
            return Reason(opened.filter.qos)
        if held is not None:
            await self.cancel(pattern)
        try:
            reason = await self._open_sources(opened)
        except (utuple.NotRegistered, utuple.OutcomeUnknown, utuple.Closed) as error:
            _log.info("subscription refused", client=self._client.id, filter=pattern, reason=error)
            reason = Reason.UNSPECIFIED_ERROR
        if reason.is_failure:
            await self.cancel(pattern)
        return reason

    async def _open_sources(self, opened: Opened) -> Reason:
        """Raises what may succeed later: then whatever it has opened stays open."""
        wanted = self._mapping.wanted(opened.pattern)
        if wanted is None or (opened.group and wanted.device is not None):
            return Reason.TOPIC_FILTER_INVALID
        self.opened[opened.filter.pattern] = opened
        opened.is_open = True
        try:
            if opened.group:
                self._sharing = self._sharing or self._connect()
                await self._join(opened)
            if wanted.device is not None:
                await self._serve(opened, wanted.device)
            refused = [
                error
                for family, addresses in wanted.families
                if (error := await self._watch_if_allowed(opened, family, addresses)) is not None
            ]
            if wanted.several:
                await self._watch_several(opened)
            if refused and not opened.sources and not wanted.several:
                raise refused[0]
        except _TooManyFamilies:
            return Reason.QUOTA_EXCEEDED
        except utuple.Refused as error:
            client, pattern = self._client.id, opened.filter.pattern
            _log.info("subscription refused", client=client, filter=pattern, reason=error)
            is_allowed = not isinstance(error, utuple.NotAllowed)
            return Reason.IMPLEMENTATION_SPECIFIC_ERROR if is_allowed else Reason.NOT_AUTHORIZED
        return Reason(opened.filter.qos)

    async def cancel(self, pattern: str) -> bool:
        opened = self.opened.pop(pattern, None)
        if opened is None:
            return False
        sources = opened.sources.values()  # the others of a group go on
        await asyncio.gather(*(one.close() if opened.group else one.cancel() for one in sources))
        return True

    async def _join(self, opened: Opened) -> None:
        mapping, name = self._mapping, self._room.owned(opened.group_name)
        opened.group_began_ms = await sharing.began_ms(self._own, mapping, name, opened.began_ms)
        self._tasks.start(self._stay(opened), "sharing")

    async def _stay(self, opened: Opened) -> None:
        """As long as it is a member, its group lasts."""
        while self.opened.get(opened.filter.pattern) is opened:
            await asyncio.sleep(sharing.RENEWED_S)
            try:
                began = opened.group_began_ms
                name = self._room.owned(opened.group_name)
                await sharing.note(self._own, self._mapping, name, began)
            except utuple.UTupleError as error:
                _log.warning("a group could not be renewed", group=opened.group, reason=error)

    async def pause(self) -> None:
        """The client is away: readers with names keep its place."""
        await self._tasks.close()
        sources = [source for opened in self.opened.values() for source in opened.sources.values()]
        for opened in self.opened.values():
            opened.is_open, opened.sources, opened.claimed = False, {}, set()
        await asyncio.gather(*(source.close() for source in sources))
        if self._sharing is not None:
            sharing_space, self._sharing = self._sharing, None
            await sharing_space.close()

    async def leave(self) -> None:
        """Another door has the session, or will find it again in the space."""
        self._families.unlisten(self._new_family)
        await self.pause()

    async def resume(self, remembered: Iterable[Opened] = ()) -> None:
        """Raises if one cannot be opened now. All of them are the session's nevertheless, and none is open then: it may be
        tried again, here or at another door."""
        for opened in remembered:
            self.opened.setdefault(opened.filter.pattern, opened)
        waiting = [opened for opened in self.opened.values() if not opened.is_open]
        try:
            await all_ended(*map(self._reopen, waiting))
        except utuple.UTupleError:
            await self.pause()
            raise

    async def _reopen(self, opened: Opened) -> None:
        if (await self._open_sources(opened)).is_failure:
            await self.cancel(opened.filter.pattern)

    async def end(self) -> None:
        self._families.unlisten(self._new_family)
        is_away = any(not o.is_open and not o.group for o in self.opened.values())
        try:
            if self._client.has_names and is_away:
                await self.resume()  # a reader is forgotten by who has it open
            await asyncio.gather(*(self.cancel(pattern) for pattern in list(self.opened)))
        finally:
            await self.pause()

    # --- sources --------------------------------------------------------------------------------

    async def _watch(self, opened: Opened, family: Family, addresses: Addresses) -> None:
        now = datetime.now(UTC)
        asked = conditions_of(opened.asked, now)
        late = timedelta(seconds=self._mapping.subscriptions_late_s)
        asked.setdefault("since", datetime.fromtimestamp(opened.from_ms / 1000, UTC) - late)
        space = self._sharing if opened.group and self._sharing is not None else self._space
        watch = space.watch(
            subject=family.subject,
            type=family.type,
            address=_address(addresses),
            **asked,
            **self._reader(opened, str(family)),
        )
        await self._begin(opened, family, watch)

    async def _serve(self, opened: Opened, device: Command) -> None:
        serving = self._space.serve(
            subject=device.family.subject,
            type=device.family.type,
            address=device.address,
            **self._reader(opened, "device"),
        )
        await self._begin(opened, device, serving)

    async def _begin(self, opened: Opened, key: object, source: Source) -> None:
        await source.open()
        opened.sources[key] = source
        self._tasks.start(self._pump(opened, source), "subscription")

    def _reader(self, opened: Opened, what: str) -> dict[str, Any]:
        if opened.group:
            return {
                "reader": f"mqtt share {opened.group_name} {what}",
                "lifetime_s": sharing.LIFETIME_S,
                "share": True,
                "attempts": sharing.ATTEMPTS,
            }
        if not self._client.has_names:
            return {}
        text = "\0".join((self._client.id, opened.filter.pattern, what))
        digest = hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
        lifetime_s = max(self._client.expiry_s, _LEAST_LIFETIME_S)
        return {"reader": f"mqtt {self._client.id} {digest}", "lifetime_s": lifetime_s}

    async def _watch_if_allowed(
        self, opened: Opened, family: Family, addresses: Addresses
    ) -> utuple.NotAllowed | None:
        """Of the families that a filter covers, a client gets those that it may watch; why it does not get this one."""
        try:
            await self._watch(opened, family, addresses)
        except utuple.NotAllowed as error:
            _log.info("family not allowed", client=self._client.id, family=family, reason=error)
            return error
        return None

    # --- several families -----------------------------------------------------------------------

    async def _watch_several(self, opened: Opened) -> None:
        known = await self._families.known()
        for family in sorted(known):
            await self._watch_fitting(opened, family)

    def _new_family(self, family: Family) -> None:
        for opened in self.opened.values():
            wanted = self._mapping.wanted(opened.pattern)
            if wanted is not None and wanted.several and opened.is_open:
                self._tasks.start(self._watch_later(opened, family), "a new family")

    async def _watch_later(self, opened: Opened, family: Family) -> None:
        """The client was told that it is subscribed to whatever its filter matches, so this must succeed: it is tried until it
        does, and what was published meanwhile is found in the store. Beyond the limit the client must hear of it."""
        while self.opened.get(opened.filter.pattern) is opened:
            try:
                await self._watch_fitting(opened, family)
                return
            except (utuple.NotRegistered, utuple.OutcomeUnknown) as error:
                _log.warning("family is not open yet", family=family, reason=error)
            except _TooManyFamilies:
                self._client.broken(Reason.QUOTA_EXCEEDED)
                return
            await asyncio.sleep(_TRY_AGAIN_S)

    async def _watch_fitting(self, opened: Opened, family: Family) -> None:
        addresses = self._mapping.fits(opened.pattern, family)
        if addresses is None or family in opened.claimed:
            return
        if len(opened.claimed) >= self._most_families:
            raise _TooManyFamilies
        opened.claimed.add(family)
        try:
            await self._watch_if_allowed(opened, family, addresses)
        except BaseException:
            opened.claimed.discard(family)
            raise

    # --- what comes -----------------------------------------------------------------------------

    async def _pump(self, opened: Opened, source: Source) -> None:
        pattern = opened.filter.pattern
        is_device = isinstance(source, utuple.Device)
        from_ms = 0 if "since" in dict(opened.asked) or is_device else opened.from_ms
        try:
            while True:
                for event in await source.take(_TAKEN):
                    is_old = event.stored and made_ms(event.id) < from_ms
                    message = (
                        None if is_old else self._message(event, pattern if is_device else None)
                    )
                    if message is None or not _fits(opened.pattern, message.topic):
                        await event.ack()
                        continue
                    await self._client.room()
                    self._client.deliver(message, pattern)
        except utuple.ReaderReplaced:
            self._client.replaced()
        except utuple.Closed:
            """Cancelled, or the session pauses."""
        except utuple.NotAllowed as error:
            _log.info("subscription ended", client=self._client.id, filter=pattern, reason=error)
            self._client.broken(Reason.NOT_AUTHORIZED)
        except Exception:
            self._client.broken(Reason.UNSPECIFIED_ERROR)
            raise

    def _message(self, event: utuple.Delivery, topic: str | None) -> Message | None:
        data, now_s = event.data, now_us() / 1e6
        if is_expired(data, now_s):
            return None
        marks = None if topic is not None else marks_of(event.id)
        form = form_of(data, self._mapping) if marks is None else marks.form
        return Message(
            event.id,
            topic or self._mapping.topic_of(event.subject, event.type, event.address),
            payload_of(data, form, self._mapping),
            2 if marks is None else marks.qos,
            False if marks is None else marks.retain,
            False,
            event,
            properties_of(data, now_s),
        )


def _fits(pattern: str, topic: str) -> bool:
    """Addresses of the SDK may hold what no name of MQTT does."""
    return names.matches(pattern, topic) and not names.has_wildcard(topic)


def _address(addresses: Addresses) -> Any:
    if addresses.some:
        return addresses.some[0] if len(addresses.some) == 1 else utuple.one_of(*addresses.some)
    return utuple.prefix(addresses.prefix) if addresses.prefix else None
