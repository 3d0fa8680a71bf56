"""The network between virtual processes: calls are delayed, lost, doubled and overtaken; links are cut one
way or both; connections break. What a caller is told is what gRPC would tell it (utuple/client/transport.py):

    Unavailable      no connection: nothing was sent
    OutcomeUnknown   sent, and no answer came
    others           as the other side said
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from google.protobuf.message import Message

from tests.virtual.world.loop import LIFE, Life
from tests.virtual.world.world import World
from utuple.errors import (
    Closed,
    Conflict,
    InvalidInput,
    NotAllowed,
    NotRegistered,
    OutcomeUnknown,
    Overloaded,
    Unavailable,
    UTupleError,
)

if TYPE_CHECKING:
    from tests.virtual.programs.trust import Trust

CONNECT_S = 3.0
KEEPALIVE_S = 15.0
MAX_MESSAGE_BYTES = 1 << 20
"""What a program takes at most: a sixtieth of what it is, so that a few large EFs show a message without a limit."""


@dataclass
class Weather:
    """What may happen to one message."""

    lost: float = 0.0
    doubled: float = 0.0
    slow: float = 0.0
    slow_s: float = 2.0
    usual_s: float = 0.004


@dataclass(eq=False)
class Place:
    """A process that listens."""

    life: Life
    service: Any
    """Its calls are methods by their names in lower case."""


@dataclass(eq=False)
class Call:
    """One call on its way."""

    caller: Life
    target: Life
    method: str
    timeout_s: float
    answer: asyncio.Future[Message]
    request: Message
    handling: asyncio.Task[None] | None = None
    arrived: bool = False

    def fail(self, error: UTupleError) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class Breakable:
    """Something that spans a connection: a stream. The network tells it when the connection breaks."""

    caller: Life
    target: Life

    def break_off(self, why: str) -> None:
        raise NotImplementedError


Watcher = Callable[[str, Call], None]
"""Told of every call "before" it arrives, "after" it was handled, and when it "ended"."""


@dataclass
class Network:
    world: World
    weather: Weather = field(default_factory=Weather)

    def __post_init__(self) -> None:
        self.dice = self.world.dice("network")
        self._places: dict[str, Place] = {}
        self._calls: dict[Call, None] = {}
        self._streams: dict[Breakable, None] = {}
        self._connected: dict[tuple[Life, Life], None] = {}
        self._blocked: dict[tuple[str, str], int] = {}
        self._stalled: deque[tuple[str, str, Callable[[], None]]] = deque()
        self.watchers: list[Watcher] = []
        self.full = (0.05, 0.0)
        """How often a message fills the way to a reader, and for how long beside a delay."""
        self.trust: Trust | None = None
        """Of a secured cluster."""
        self.noticed_s = 0.0
        """By then both ends of every stream that broke so far know it."""

    # --- places --------------------------------------------------------------------------------------

    def listen(self, address: str, service: Any) -> None:
        life = LIFE.get()
        assert life is not None
        self._places[address] = Place(life, service)

    def place(self, address: str) -> Place | None:
        place = self._places.get(address)
        return place if place is not None and place.life.is_alive else None

    def died(self, life: Life) -> None:
        """Its connections break: most at once, some are only missed, by one keepalive (`break_off`)."""
        for call in [call for call in self._calls if life in (call.caller, call.target)]:
            if call.target is life and self.dice.random() < 0.8:
                self.world.loop.later(self.delay_s(), call.fail, OutcomeUnknown("connection reset"))
            elif call.caller is life and call.handling is not None and self.dice.random() < 0.5:
                self.world.loop.later(self.delay_s(), call.handling.cancel)
            if call.caller is life:
                del self._calls[call]
        for stream in [s for s in self._streams if life in (s.caller, s.target)]:
            self.world.loop.later(self.delay_s(), stream.break_off, "the other side died")
        for pair in [pair for pair in self._connected if life in pair]:
            del self._connected[pair]

    # --- links ---------------------------------------------------------------------------------------

    def block(self, froms: Iterable[str], tos: Iterable[str], *, both: bool) -> None:
        """Nothing passes from these to those (and back). Streams notice after a while."""
        pairs = [(one, other) for one in froms for other in tos if one != other]
        pairs += [(other, one) for one, other in pairs] if both else []
        for pair in pairs:
            self._blocked[pair] = self._blocked.get(pair, 0) + 1
        for stream in list(self._streams):
            if self.is_blocked(stream.caller, stream.target):
                self.world.loop.later(self._patience_s(), self._break_if_blocked, stream)
        for one, other in [pair for pair in self._connected if self.is_blocked(*pair)]:
            self.world.loop.later(self._patience_s(), self._disconnect_if_blocked, one, other)

    def heal(self) -> None:
        self._blocked.clear()
        self._flush()

    def unblock(self, froms: Iterable[str], tos: Iterable[str], *, both: bool) -> None:
        pairs = [(one, other) for one in froms for other in tos if one != other]
        pairs += [(other, one) for one, other in pairs] if both else []
        for pair in pairs:
            left = self._blocked.get(pair, 0) - 1
            if left > 0:
                self._blocked[pair] = left
            else:
                self._blocked.pop(pair, None)
        self._flush()

    def _flush(self) -> None:
        stalled, self._stalled = self._stalled, deque()
        for one, other, happen in stalled:
            self.world.loop.later(self.delay_s(), self.pass_by, one, other, happen)

    def is_blocked(self, one: Life, other: Life) -> bool:
        """Either way: a connection needs both."""
        pair = (one.name, other.name)
        return pair in self._blocked or pair[::-1] in self._blocked

    def pass_by(self, sender: str, receiver: str, happen: Callable[[], None]) -> None:
        """Now, or when the link is there again."""
        if (sender, receiver) in self._blocked:
            self._stalled.append((sender, receiver, happen))
        else:
            happen()

    def reset(self, one: str, other: str) -> None:
        """The connection between these two breaks; the link is fine."""
        both = {one, other}
        for call in list(self._calls):
            if {call.caller.name, call.target.name} == both:
                self._lose(call)
        for stream in list(self._streams):
            if {stream.caller.name, stream.target.name} == both:
                stream.break_off("the connection was reset")

    def _patience_s(self) -> float:
        return KEEPALIVE_S * (0.3 + 0.7 * self.dice.random())

    def _disconnect_if_blocked(self, caller: Life, target: Life) -> None:
        if self.is_blocked(caller, target):
            self._connected.pop((caller, target), None)
            for call in list(self._calls):
                if call.caller is caller and call.target is target:
                    call.fail(OutcomeUnknown(f"{call.method}: no answer to keepalive"))

    def _break_if_blocked(self, stream: Breakable) -> None:
        if stream in self._streams and self.is_blocked(stream.caller, stream.target):
            stream.break_off("no answer to keepalive")

    # --- messages ------------------------------------------------------------------------------------

    def delay_s(self) -> float:
        dice = self.dice.random()
        if self.weather.slow and dice < self.weather.slow:
            return self.weather.slow_s * self.dice.random()
        return self.weather.usual_s * dice * dice + 0.0001

    def hold(self, stream: Breakable) -> None:
        self._streams[stream] = None

    def release(self, stream: Breakable) -> None:
        self._streams.pop(stream, None)

    async def connect(self, address: str, timeout_s: float) -> tuple[Life, Place]:
        """Who calls and who listens there, connected; or Unavailable, as a channel would find out."""
        caller = LIFE.get()
        assert caller is not None
        limit_s = min(CONNECT_S, timeout_s)
        place = self.place(address)
        if place is None:
            await asyncio.sleep(self.delay_s())
            raise Unavailable(f"nothing listens at {address}")
        if (caller, place.life) not in self._connected:
            if self.is_blocked(caller, place.life) or not place.life.is_running:
                await asyncio.sleep(limit_s)
                raise Unavailable(f"{address} does not take the connection")
            self._connected[caller, place.life] = None
        return caller, place

    def weigh(self, message: Message, what: str) -> None:
        """No message may be larger than programs take: whoever sends it would send it again for ever."""
        size = message.ByteSize()
        if size > MAX_MESSAGE_BYTES:
            self.world.bug(
                f"{what}: a message of {size} bytes; at most {MAX_MESSAGE_BYTES} are taken"
            )

    async def call(self, address: str, method: str, request: Message, timeout_s: float) -> Any:
        self.weigh(request, method)
        caller, place = await self.connect(address, timeout_s)
        loop = self.world.loop
        call = Call(caller, place.life, method, timeout_s, loop.create_future(), request)
        self._calls[call] = None
        if self.dice.random() < self.weather.lost:
            loop.later(self.delay_s(), self._lose, call)
        else:
            self._post(call, place, request)
            if self.dice.random() < self.weather.doubled:
                self.world.count("doubled")
                self._post(call, place, request)
        late = loop.later(timeout_s, call.fail, OutcomeUnknown(f"{method}: no answer in time"))
        try:
            return await call.answer
        finally:
            late.cancel()
            self._calls.pop(call, None)
            if call.handling is not None and not call.handling.done() and self.dice.random() < 0.5:
                loop.later(self.delay_s(), call.handling.cancel)  # the other side hears of it

    def _lose(self, call: Call) -> None:
        """A broken connection is noticed at once or by the time-out."""
        self.world.count("lost")
        if self.dice.random() < 0.7:
            call.fail(OutcomeUnknown(f"{call.method}: connection reset"))

    def _post(self, call: Call, place: Place, request: Message) -> None:
        def arrive() -> None:
            if place.life.is_alive:
                for watcher in self.watchers:
                    watcher("before", call)
            if place.life.is_alive:  # a watcher may have ended it
                call.arrived = True
                call.handling = self.world.loop.start(
                    place.life, self._handle(call, place, request)
                )

        self.world.loop.later(
            self.delay_s(), self.pass_by, call.caller.name, place.life.name, arrive
        )

    async def _answered(self, call: Call, place: Place, request: Message) -> Any:
        told: tuple[Any, ...] = (call.timeout_s,) if call.method == "register" else ()
        handler, trust = getattr(place.service, call.method), self.trust
        if trust is None:
            return await handler(request, *told)
        caller = trust.caller(place, call.method, call.caller)
        if call.method != "register":
            return await handler(request, *caller)
        server = place.life.name
        before = trust.in_force(server)
        answer = await handler(request, *told, *caller)
        numbers = range(before, trust.durable(server) + 1)
        trust.registered(server, caller[0], request, answer, numbers)
        return answer

    async def _handle(self, call: Call, place: Place, request: Message) -> None:
        result: Message | UTupleError
        try:
            result = await self._answered(call, place, request)
        except UTupleError as error:
            result = as_told(error)
        except Exception as error:  # noqa: BLE001  a bug of the program: found
            self.world.bug(f"{place.life} {call.method}", error)
            result = OutcomeUnknown(f"{call.method}: {error}")
        if isinstance(result, Message):
            self.weigh(result, f"answer of {call.method}")
        loop = self.world.loop
        for watcher in self.watchers:
            watcher("after", call)
        if not place.life.is_alive:
            return
        if self.dice.random() < self.weather.lost:
            loop.later(self.delay_s(), self._lose, call)
            return
        loop.later(
            self.delay_s(),
            self.pass_by,
            place.life.name,
            call.caller.name,
            lambda: _settle(call, result),
        )


def _settle(call: Call, result: Message | UTupleError) -> None:
    if isinstance(result, UTupleError):
        call.fail(result)
    elif not call.answer.done():
        call.answer.set_result(result)


_TOLD_AS_THEY_ARE = (
    InvalidInput,
    Conflict,
    NotAllowed,
    Overloaded,
    Unavailable,
    NotRegistered,
    Closed,
)


def as_told(error: UTupleError) -> UTupleError:
    """As it arrives at the caller (utuple/wire/status.py)."""
    return error if type(error) in _TOLD_AS_THEY_ARE else OutcomeUnknown(str(error))
