"""The lines this client knows, and where the servers are.

A line is looked up once and then kept: refusals and streams bring newer ones. With every assignment
manager gone, what is known goes on working. Concurrent lookups leave as one.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress

from utuple.client.config import Config
from utuple.client.transport import Transport
from utuple.cluster.line import NO_TABLE, Line, ServerInfo
from utuple.cluster.shares import LEFT, SCA_ROLES, Shares, shares_of
from utuple.cluster.table import Table
from utuple.errors import Closed, OutcomeUnknown, Unavailable, UnknownHost, UTupleError
from utuple.runtime.logs import Log
from utuple.runtime.tasks import Tasks
from utuple.runtime.trouble import Trouble
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_from_wire, server_from_wire

_log = Log("utuple.client.routing.lines")

LOOKUP_KEYS = 10_000
"""Keys in one lookup."""

LOOKUP_S = 3.0
"""How long one assignment manager is waited for before the next is asked."""


_Told = tuple[dict[object, Callable[[], None]], object]
"""Listeners, and which of them is to be told, if it still listens."""


class Lines:
    def __init__(self, transport: Transport, managers: Sequence[str], config: Config) -> None:
        self._transport = transport
        self._managers = list(managers)
        self._config = config
        self._table = Table()
        self._servers: dict[str, ServerInfo] = {}
        self.scas = Shares(())
        """Among whom devices are shared out."""
        self._sca_listeners: dict[object, Callable[[], None]] = {}
        self._begun_anew: Callable[[str, int], None] = _nobody
        self._telling = 0
        self._all_told: Callable[[], None] = _nothing
        self._wanted: set[int] = set()
        self._asking: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None
        self._refreshed: dict[int, float] = {}
        self._beside = Tasks()
        self._listeners: dict[int, dict[object, Callable[[], None]]] = {}
        self._looking: asyncio.Task[None] | None = None
        self._was_answered = False
        self._unknown_since_s: float | None = None
        """Since when no manager's name could be resolved."""
        self._silence = Trouble(_log, "lookup failed", "lookups are answered again")
        self._awaited: set[asyncio.Future[None]] = set()
        self._closed = False

    # --- what is known -------------------------------------------------------------------------

    def known(self, key: int) -> Line | None:
        return self._table.line_of(key)

    def address_of(self, name: str) -> str:
        server = self._servers.get(name)
        if server is None:
            raise Unavailable(f"where {name} listens is not known")
        return server.address

    # --- what is heard -------------------------------------------------------------------------

    def hear(self, lines: Iterable[pb.Line], servers: Iterable[pb.ServerInfo]) -> None:
        """Lines and addresses an answer carried; watches and devices are told when something is new."""
        told = self._hear_servers(map(server_from_wire, servers))
        heard = map(line_from_wire, lines)
        sections = [line.section for line in heard if self._table.hear(line)]
        if sections:
            told += [
                (listeners, token)
                for key, listeners in self._listeners.items()
                if any(key in section for section in sections)
                for token in listeners
            ]
        at_once = self._config.told_at_once
        if len(told) > at_once:
            self._telling += 1
            self._beside.start(self._tell_on(told[at_once:]), "telling of new lines")
        _tell(told[:at_once])

    async def _tell_on(self, told: Sequence[_Told]) -> None:
        """The others, some at a time."""
        try:
            for at in range(0, len(told), self._config.told_at_once):
                await asyncio.sleep(0)
                _tell(told[at : at + self._config.told_at_once])
            await asyncio.sleep(0)  # what the last of them does about it begins in the next turn
        finally:
            self._telling -= 1
        self._all_told()

    @property
    def is_telling(self) -> bool:
        """Some watches or devices have not been told yet of what was heard."""
        return self._telling > 0

    def when_all_told(self, tell: Callable[[], None]) -> None:
        self._all_told = tell

    def _hear_servers(self, servers: Iterable[ServerInfo]) -> list[_Told]:
        """Whom to tell, if devices are shared out in another way now."""
        is_other = False
        for server in servers:
            known = self._servers.get(server.name)
            if known is None or server.since_us >= known.since_us:
                is_other |= server.role in SCA_ROLES and known != server
                self._servers[server.name] = server
                self._transport.expect(server.address, server.name)
                if known is not None and _lives_anew(known, server):
                    self._begun_anew(server.name, server.since_us)
        if is_other:
            before, self.scas = self.scas, shares_of(self._servers.values())
            if self.scas != before:
                return [(self._sca_listeners, token) for token in self._sca_listeners]
        return []

    def when_begun_anew(self, tell: Callable[[str, int], None]) -> None:
        """Call `tell` with the name of a server that has begun another life, and since when it lives."""
        self._begun_anew = tell

    def listen_to_scas(self, tell: Callable[[], None]) -> Callable[[], None]:
        """Call `tell` whenever devices are shared out anew; the result ends that."""
        token = object()
        self._sca_listeners[token] = tell

        def end() -> None:
            self._sca_listeners.pop(token, None)

        return end

    def listen(self, key: int, tell: Callable[[], None]) -> Callable[[], None]:
        """Call `tell` whenever the key's line changes; the result ends that. The line is looked up anew
        every now and then."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_again())
        return self._call(key, tell)

    def _call(self, key: int, tell: Callable[[], None]) -> Callable[[], None]:
        token = object()
        self._listeners.setdefault(key, {})[token] = tell

        def end() -> None:
            listeners = self._listeners.get(key, {})
            listeners.pop(token, None)
            if not listeners:
                self._listeners.pop(key, None)

        return end

    def has_newer(self, key: int, line: Line | None) -> bool:
        """Is a newer line of this key known than this one?"""
        known = self._table.line_of(key)
        return known is not None and (line is None or known.epoch > line.epoch)

    @contextmanager
    def newer_than(self, keys: Mapping[int, Line | None]) -> Iterator[asyncio.Future[None]]:
        """Done when one of these keys has a newer line than this one, or all is over."""
        heard: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._awaited.add(heard)

        def tell() -> None:
            if any(self.has_newer(key, line) for key, line in keys.items()):
                _set(heard)

        ends = [self._call(key, tell) for key in keys]
        try:
            tell()
            yield heard
        finally:
            self._awaited.discard(heard)
            for end in ends:
                end()

    async def pause(self, wait_s: float, keys: Mapping[int, Line | None]) -> None:
        """Wait so long, or until one of these keys has a newer line than this one."""
        if wait_s > 0 and not self._closed:
            with self.newer_than(keys) as newer:
                try:
                    async with asyncio.timeout(wait_s):
                        await newer
                except TimeoutError:
                    return

    # --- what is asked -------------------------------------------------------------------------

    async def line(self, key: int, deadline_s: float) -> Line:
        """The line of a key: known, or looked up once. Its caller waits until `deadline_s` by the loop's clock, whatever
        the assignment managers do: several silent ones are asked in turn, and that adds up."""
        line = self._table.line_of(key)
        if line is None:
            await self._lookup(key, deadline_s)
            line = self._table.line_of(key)
        if line is None:
            raise Unavailable(
                "the assignment managers do not know who serves this subject and type yet (a server that is down, or "
                f"{NO_TABLE})"
            )
        return line

    def refresh(self, key: int) -> None:
        """Ask again, in the background: a server is silent or does not serve what we thought. If no
        manager answers, what is known stays."""
        now_s = asyncio.get_running_loop().time()
        waited_s = now_s - self._refreshed.get(key, float("-inf"))
        if self._closed or waited_s < self._config.refresh_every_s:
            return
        if len(self._refreshed) >= LOOKUP_KEYS:
            self._refreshed.clear()
        self._refreshed[key] = now_s
        self._beside.start(self._look_up_beside(key), "lookup")

    async def look_up(self, key: int, deadline_s: float = math.inf) -> None:
        """Ask for the line of a key, whether it is known or not; if no manager answers, it stays."""
        try:
            await self._lookup(key, deadline_s)
        except (Closed, UnknownHost):
            raise
        except UTupleError as error:
            self._silence.again(reason=error)

    async def _look_up_beside(self, key: int) -> None:
        with suppress(Closed, UnknownHost):  # whoever needs the line hears of it
            await self.look_up(key)

    async def first_contact(self) -> None:
        """Is there a cluster at all? Also brings the sCA servers."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + min(self._config.first_contact_s, self._config.timeout_s)
        while True:
            try:
                async with _until(deadline_s):
                    return await self._ask(())
            except UnknownHost:
                raise
            except Unavailable:
                if loop.time() + self._config.first_wait_s >= deadline_s:
                    raise
            await asyncio.sleep(self._config.first_wait_s)

    async def _look_again(self) -> None:
        while self._listeners:
            await asyncio.sleep(self._config.look_again_every_s)
            found = await asyncio.gather(
                *map(self._lookup, self._listeners), return_exceptions=True
            )
            errors = [error for error in found if isinstance(error, BaseException)]
            if errors:
                self._silence.again(reason=errors[0])

    async def _lookup(self, key: int, deadline_s: float = math.inf) -> None:
        """Keys that are wanted while a lookup is on its way go together in the next."""
        if self._closed:
            raise Closed("this space is closed")
        self._wanted.add(key)
        if self._next is None:
            self._next = asyncio.create_task(self._ask_wanted(self._asking))
            self._next.add_done_callback(_retrieve)
        asking = self._next
        try:
            async with _until(deadline_s):
                await asyncio.shield(asking)
        except asyncio.CancelledError:
            if asking.cancelled():  # by closing, and not whoever waits here
                raise Closed("this space is closed") from None
            raise

    async def _ask_wanted(self, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        self._asking, self._next = self._next, None
        keys, self._wanted = tuple(self._wanted), set()
        for at in range(0, len(keys), LOOKUP_KEYS):
            await self._ask(keys[at : at + LOOKUP_KEYS])

    async def _ask(self, keys: Sequence[int]) -> None:
        """Any manager will do; one that does not answer is asked last the next time."""
        failures: dict[str, UTupleError] = {}
        for address in list(self._managers):
            try:
                answer = await self._transport.lookup(
                    address, pb.LookupRequest(keys=keys), min(LOOKUP_S, self._config.timeout_s)
                )
            except (Unavailable, OutcomeUnknown) as error:
                failures[address] = error
                self._managers.remove(address)
                self._managers.append(address)
            else:
                self._was_answered = True
                if self._silence.since_s is not None:
                    self._silence.over()
                self.hear(answer.lines, answer.servers)
                return
        reasons = "; ".join(f"{address}: {error}" for address, error in failures.items())
        if self._are_mistyped(failures.values()):
            raise UnknownHost(f"no assignment manager is known by the names given ({reasons})")
        raise Unavailable(
            f"no assignment manager answers ({reasons}); "
            "is the cluster up? `utuple up` starts one on this machine"
        )

    def _are_mistyped(self, failures: Iterable[UTupleError]) -> bool:
        """No name is known, for a while, and there was never an answer: else a resolver is what fails."""
        if self._was_answered or not all(isinstance(error, UnknownHost) for error in failures):
            self._unknown_since_s = None
            return False
        now_s = asyncio.get_running_loop().time()
        if self._unknown_since_s is None:
            self._unknown_since_s = now_s
        return now_s >= self._unknown_since_s + self._config.resolve_s

    async def close(self) -> None:
        self._closed = True
        for heard in self._awaited:
            _set(heard)
        asking = (self._asking, self._next, self._looking)
        tasks = [*self._beside, *(task for task in asking if task is not None)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def _until(deadline_s: float) -> AsyncIterator[None]:
    """Managers that are silent are not waited for longer than this."""
    try:
        async with asyncio.timeout_at(None if deadline_s == math.inf else deadline_s):
            yield
    except TimeoutError:
        raise Unavailable("no assignment manager has answered in time") from None


def _retrieve(asking: asyncio.Task[None]) -> None:
    """A lookup fails for those who wait for it, each of which handles its error. If all of them have given up meanwhile
    (their deadlines were shorter than the lookup's), nobody needs the lines it was to bring, and its failure is no news."""
    if not asking.cancelled():
        asking.exception()


def _lives_anew(known: ServerInfo, told: ServerInfo) -> bool:
    """An sCA server that leaves has a new entry too, but stays until its devices have gone: its streams are not cut, or
    what they have not confirmed yet never would be."""
    return known.since_us < told.since_us and told.role != LEFT


def _nobody(name: str, since_us: int) -> None:
    """Listens."""


def _set(heard: asyncio.Future[None]) -> None:
    """Once; whoever waited for it may have given up."""
    if not heard.done():
        heard.set_result(None)


def _nothing() -> None:
    """Waits until all are told."""


def _tell(told: Sequence[_Told]) -> None:
    """Those that still listen."""
    for listeners, token in told:
        tell = listeners.get(token)
        if tell is not None:
            tell()
