"""Maintenance: what a server does now and then, beside its writer: it drops what has expired and counts what is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from utuple.cluster.line import Line
from utuple.model.columns import MICROSECONDS
from utuple.model.section import Section
from utuple.runtime.clock import monotonic_s, now_us
from utuple.runtime.logs import Log
from utuple.server.config import ServerConfig
from utuple.store.contract import Census, Store, StoreStats, StoreUnavailable

_log = Log("utuple.server.writing.maintenance")


class Maintained(Protocol):
    """The engine, as its maintenance sees it."""

    stats: StoreStats
    census: dict[Section, Census]

    @property
    def config(self) -> ServerConfig: ...

    @property
    def store(self) -> Store: ...

    @property
    def is_serving(self) -> bool: ...

    @property
    def own_lines(self) -> Sequence[Line]: ...

    def suspect_store(self) -> None: ...


async def tick_forever(every_s: float, tick: Callable[[], None]) -> None:
    while True:
        await asyncio.sleep(every_s)
        tick()


async def collect_forever(engine: Maintained) -> None:
    config, store = engine.config, engine.store
    due_s = monotonic_s() + config.collect_s
    census_s = 0.0
    while True:
        try:
            if engine.is_serving:
                engine.stats = await store.stats()
            if engine.is_serving and monotonic_s() >= census_s:
                census_s = monotonic_s() + config.census_s
                await _take_census(engine)
            if engine.is_serving and monotonic_s() >= due_s:
                due_s = monotonic_s() + config.collect_s
                dropped = await store.collect(now_us() - round(config.late_s * MICROSECONDS))
                if dropped:
                    _log.info("partitions dropped", count=dropped)
        except StoreUnavailable:
            engine.suspect_store()
        await asyncio.sleep(config.stats_s)


async def _take_census(engine: Maintained) -> None:
    sections = [line.section for line in engine.own_lines]
    counted = await engine.store.census(sections, now_us())
    engine.census = dict(zip(sections, counted, strict=True))
