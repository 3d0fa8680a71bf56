"""Programs without an event loop, as users write them: each is run in a process of its own by `test_blocking.py`,
which says how long it may take. `python -m tests.system.blocking_programs NAME HOST:PORT SUBJECT`."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import utuple
from utuple import blocking

THREADS = 8
EVENTS = 5_000


class Program:
    """What they all need."""

    def __init__(self, at: str, subject: str) -> None:
        self.at = at
        self.family: dict[str, Any] = {"subject": subject, "type": "load"}

    def connect(self) -> Any:
        return blocking.connect(self.at, timeout_s=20)

    def event(self, n: int) -> dict[str, Any]:
        return {**self.family, "address": f"a-{n % 7}", "data": {"n": n}}

    def numbers(self, space: Any) -> list[int]:
        return sorted(event.data["n"] for event in space.read(**self.family))

    # --- an iterable runs on its caller's thread ---------------------------------------------------

    def pipes_a_read_into_emit_many(self) -> None:
        with self.connect() as space:
            space.emit_many(self.event(n) for n in range(EVENTS))
            doubled = ({**self.event(2 * e.data["n"]), "type": "twice"} for e in self.read(space))
            assert space.emit_many(doubled) == EVENTS
            found = sorted(e.data["n"] for e in space.read(**{**self.family, "type": "twice"}))
            assert found == [2 * n for n in range(EVENTS)]

    def read(self, space: Any) -> Iterator[Any]:
        for event in space.read(**self.family):
            assert threading.current_thread() is threading.main_thread()
            yield event

    # --- any thread --------------------------------------------------------------------------------

    def closes_while_threads_emit(self) -> None:
        space = self.connect().__enter__()
        registered: list[int] = []
        ends: list[type[BaseException]] = []
        unknown: list[int] = []
        begun = threading.Barrier(THREADS + 1)

        def emit(thread: int) -> None:
            n = thread
            try:
                while True:
                    space.emit(**self.event(n))
                    registered.append(n)
                    if n == thread:
                        begun.wait()
                    n += THREADS
            except utuple.OutcomeUnknown as error:
                unknown.append(n)
                ends.append(type(error))
            except utuple.Closed as error:
                ends.append(type(error))

        threads = _started(emit)
        begun.wait()
        closers = _started(lambda _: space.close())
        _joined([*threads, *closers])
        space.close()
        assert len(ends) == THREADS, ends
        with self.connect() as other:
            found = set(self.numbers(other))
        assert set(registered) <= found <= {*registered, *unknown}

    def closes_while_threads_iterate_and_read(self) -> None:
        space = self.connect().__enter__()
        space.emit_many(self.event(n) for n in range(EVENTS))
        watch = space.watch(**self.family).__enter__()
        ends: list[type[BaseException]] = []
        under_way = threading.Barrier(THREADS + 1)

        def iterate(thread: int) -> None:
            try:
                for at, _ in enumerate(watch if thread % 2 else _for_ever(space, self.family)):
                    if at == 10:
                        under_way.wait()
            except utuple.Closed as error:
                ends.append(type(error))

        threads = _started(iterate)
        under_way.wait()
        space.close()
        _joined(threads)
        assert ends == [utuple.Closed] * (THREADS // 2), ends  # loops over the watch just end

    def iterates_one_watch_in_four_threads(self) -> None:
        got: list[int] = []
        with self.connect() as space, space.watch(**self.family) as events:

            def iterate(_: int) -> None:
                try:
                    for event in events:
                        got.append(event.data["n"])
                        if len(got) == EVENTS:
                            events.close()
                except utuple.Closed:
                    return

            space.emit_many(self.event(n) for n in range(EVENTS))
            _joined(_started(iterate, 4))
        assert Counter(got) == Counter(range(EVENTS)), len(got)

    def reads_in_four_threads(self) -> None:
        got: list[int] = []
        with self.connect() as space:
            space.emit_many(self.event(n) for n in range(EVENTS))
            events = space.read(**self.family)
            _joined(_started(lambda _: got.extend(e.data["n"] for e in events), 4))
        assert Counter(got) == Counter(range(EVENTS)), len(got)

    # --- Ctrl-C ------------------------------------------------------------------------------------

    def is_interrupted_while_it_watches(self) -> None:
        """What another thread waits for, or had fetched, is not lost by it."""
        got: list[int] = []
        with self.connect() as space, space.watch(**self.family) as events:

            def others() -> None:
                try:
                    got.extend(event.data["n"] for event in events)
                except utuple.Closed:
                    return

            other = threading.Thread(target=others)
            other.start()
            for n in range(5):
                threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
                try:
                    while True:
                        got.append(next(events).data["n"])
                except KeyboardInterrupt:
                    space.emit(**self.event(n))
            while len(got) < 5:
                time.sleep(0.01)
            events.close()
            _joined([other])
        assert sorted(got) == list(range(5)), got

    # --- leaving -----------------------------------------------------------------------------------

    def ends_with_an_unexhausted_read(self) -> None:
        space = self.connect().__enter__()
        space.emit_many(self.event(n) for n in range(EVENTS))
        events = space.read(**self.family)
        next(events)
        left.extend((space, events))

    def ends_with_everything_open(self) -> None:
        space = self.connect().__enter__()
        watch = space.watch(**self.family, reader="r").__enter__()
        left.extend((space, watch, iter(space.read(**self.family))))
        space.emit(**self.event(1))
        next(watch).ack()
        threading.Thread(target=lambda: next(watch), daemon=True).start()
        threading.Thread(target=lambda: sys.exit(3)).start()

    def ends_by_an_error_with_everything_open(self) -> None:
        try:
            self.ends_with_everything_open()
        finally:
            sys.exit("as intended")

    # --- fork --------------------------------------------------------------------------------------

    def forks(self) -> None:
        with self.connect() as space, space.watch(**self.family) as events:
            space.emit(**self.event(0))
            assert next(events).data == {"n": 0}
            space.emit_many(self.event(n) for n in (1, 2))
            held = next(events)
            for leave in (sys.exit, os._exit, _raise):
                child = os.fork()
                if not child:
                    self._refused_in_child(space, events, held)
                    events.close()
                    leave(0)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            context = multiprocessing.get_context("fork")
            for _ in range(2):
                process = context.Process(target=self._refused_in_child, args=(space, events, held))
                process.start()
                space.emit_many(self.event(n) for n in range(3, 300))
                process.join()
                assert process.exitcode == 0
            got = [held.data["n"], *(next(events).data["n"] for _ in range(1 + 2 * 297))]
            assert Counter(got) == Counter([1, 2, *range(3, 300), *range(3, 300)])
            assert len(self.numbers(space)) == 3 + 2 * 297

    def _refused_in_child(self, space: Any, events: Any, held: Any) -> None:
        uses: list[Callable[[], object]] = [
            lambda: space.emit(**self.event(-1)),
            lambda: space.emit_many([self.event(-1)]),
            lambda: next(iter(space.read(**self.family))),
            lambda: next(events),
            lambda: space.watch(**self.family).__enter__(),
            lambda: space.command(**self.family, address="a", data={}),
            held.ack,
        ]
        for use in uses:
            try:
                use()
            except utuple.WrongContext as error:
                assert "fork" in str(error), error
            else:
                os._exit(1)
        with self.connect() as own:
            own.emit(**{**self.event(-1), "type": "child"})


left: list[Any] = []
"""What a careless program still holds when it ends."""


def _for_ever(space: Any, family: dict[str, Any]) -> Iterator[Any]:
    while True:
        yield from space.read(**family)


def _raise(_: int) -> None:
    raise SystemExit(0)


def _started(work: Callable[[int], object], count: int = THREADS) -> list[threading.Thread]:
    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    return threads


def _joined(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive(), "a thread hangs"


if __name__ == "__main__":
    name, at, subject = sys.argv[1:]
    getattr(Program(at, subject), name)()
