"""Upkeep: what a server does now and then, beside its writer. What is dead goes, what is stored is counted."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from utuple.model.columns import MICROSECONDS
from utuple.runtime.clock import monotonic_s, now_us
from utuple.runtime.logs import Log
from utuple.store.contract import StoreUnavailable

if TYPE_CHECKING:
    from utuple.server.writing.engine import Engine

_log = Log("utuple.server.writing.maintenance")


async def tick_forever(engine: Engine) -> None:
    while True:
        await asyncio.sleep(engine.config.tick_s)
        if engine.state == "serving":
            engine.delivering.tick(now_us())


async def collect_forever(engine: Engine) -> None:
    config, store = engine.config, engine.store
    due_s = monotonic_s() + config.collect_s
    census_s = 0.0
    while True:
        with suppress(StoreUnavailable):
            if engine.state == "serving":
                engine.stats = await store.stats()
            if engine.state == "serving" and monotonic_s() >= census_s:
                census_s = monotonic_s() + config.census_s
                await _take_census(engine)
            if engine.state == "serving" and monotonic_s() >= due_s:
                due_s = monotonic_s() + config.collect_s
                dropped = await store.collect(now_us() - round(config.late_s * MICROSECONDS))
                if dropped:
                    _log.info("partitions dropped", count=dropped)
        await asyncio.sleep(config.stats_s)


async def _take_census(engine: Engine) -> None:
    sections = [line.section for line in engine.own_lines]
    counted = await engine.store.census(sections, now_us())
    engine.census = dict(zip(sections, counted, strict=True))
