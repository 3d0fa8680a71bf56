"""python -m benchmarks.http.load SETTINGS: clients of an HTTP door, and of the SDK, in a process of their own. What is measured
is the door, so its clients speak HTTP by hand and cost as little as can be."""

from __future__ import annotations

import asyncio
import statistics
import sys
from collections.abc import Mapping
from typing import Any

import orjson

import utuple
from benchmarks.child import Answer, answer_questions, settings
from utuple.local.layout import HOST
from utuple.runtime.clock import monotonic_s
from utuple.runtime.program import run_program

_CHUNK_ROWS = 2_000
_LIFETIME_S = 600
_WARM_S = 0.5


def _events(count: int, subject: str) -> list[dict[str, Any]]:
    return [
        {
            "subject": subject,
            "type": "power",
            "address": f"house-{n % 997}",
            "data": {"w": n},
            "lifetime_s": _LIFETIME_S,
        }
        for n in range(count)
    ]


class Load:
    def __init__(self, port: int, managers: list[str]) -> None:
        self._port = port
        self._managers = managers
        self._pages: list[asyncio.StreamWriter] = []

    async def emit_many(self, question: Mapping[str, Any]) -> Answer:
        events = _events(question["count"], question["subject"])
        async with utuple.connect(*self._managers) as space:
            await space.emit_many(events[:_CHUNK_ROWS])
            began_s = monotonic_s()
            await space.emit_many(events)
            return {"per_s": len(events) / (monotonic_s() - began_s)}

    async def ndjson(self, question: Mapping[str, Any]) -> Answer:
        lines = [
            orjson.dumps(one) + b"\n" for one in _events(question["count"], question["subject"])
        ]
        pieces = [
            b"".join(lines[at : at + _CHUNK_ROWS]) for at in range(0, len(lines), _CHUNK_ROWS)
        ]
        size = sum(map(len, pieces))
        reader, writer = await asyncio.open_connection(HOST, self._port)
        began_s = monotonic_s()
        writer.write(_head("application/x-ndjson", size))
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        body = await _answer(reader)
        took_s = monotonic_s() - began_s
        writer.close()
        assert orjson.loads(body)["registered"] == len(lines), body
        return {"per_s": len(lines) / took_s}

    async def emit_single(self, question: Mapping[str, Any]) -> Answer:
        async with utuple.connect(*self._managers) as space:

            async def one(number: int) -> None:
                await space.emit(**_events(1, "single")[0])

            return await _many(one, question)

    async def post_single(self, question: Mapping[str, Any]) -> Answer:
        body = orjson.dumps(_events(1, "single")[0])
        request = _head("application/json", len(body)) + body
        streams = [
            await asyncio.open_connection(HOST, self._port) for _ in range(question["connections"])
        ]

        async def one(number: int) -> None:
            reader, writer = streams[number]
            writer.write(request)
            await _answer(reader)

        found = await _many(one, question)
        for _, writer in streams:
            writer.close()
        return found

    async def delays(self, question: Mapping[str, Any]) -> Answer:
        """From emit to a live watcher, in this process, by the SDK and by server-sent events, in the same seconds."""
        count, rate = question["count"], question["rate_per_s"]
        by_sdk: list[float] = []
        by_http: list[float] = []
        async with utuple.connect(*self._managers) as space:
            async with space.watch(subject="delay", type="power") as events:
                reader, writer = await asyncio.open_connection(HOST, self._port)
                path = "/v1/events/live?subject=delay&type=power"
                writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
                await reader.readuntil(b"retry: 1000\n\n")

                async def of_sdk() -> None:
                    while len(by_sdk) < count:
                        for event in await events.take(100):
                            by_sdk.append(monotonic_s() - event.data["at"])

                async def of_http() -> None:
                    while len(by_http) < count:
                        line = await reader.readline()
                        if line.startswith(b"data: "):
                            at = orjson.loads(line[6:])["data"]["at"]
                            by_http.append(monotonic_s() - at)

                reading = asyncio.gather(of_sdk(), of_http())
                began_s = monotonic_s()
                emits = []
                for number in range(count):
                    await asyncio.sleep(max(0.0, began_s + number / rate - monotonic_s()))
                    event: dict[str, Any] = {
                        "subject": "delay",
                        "type": "power",
                        "address": "a",
                        "lifetime_s": 60,
                    }
                    emits.append(
                        asyncio.create_task(space.emit(**event, data={"at": monotonic_s()}))
                    )
                await asyncio.gather(*emits)
                async with asyncio.timeout(60):
                    await reading
                writer.close()
        half = count // 2  # caches are warm
        return {
            "sdk_p50_s": statistics.median(by_sdk[half:]),
            "http_p50_s": statistics.median(by_http[half:]),
        }

    async def pages(self, question: Mapping[str, Any]) -> Answer:
        """So many consoles open; 0 closes them."""
        for writer in self._pages:
            writer.close()
        self._pages = []
        for _ in range(question["count"]):
            reader, writer = await asyncio.open_connection(HOST, self._port)
            writer.write(b"GET /v1/status/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            await reader.readuntil(b"event: servers")
            self._pages.append(writer)
            self._readers = [*getattr(self, "_readers", []), asyncio.create_task(_drain(reader))]
        return {"open": len(self._pages)}


async def _drain(reader: asyncio.StreamReader) -> None:
    while await reader.read(1 << 20):
        """A console that takes what comes."""


async def _many(one: Any, question: Mapping[str, Any]) -> Answer:
    done, ends_s = 0, monotonic_s() + _WARM_S + question["seconds"]
    begins_s = monotonic_s() + _WARM_S

    async def again(number: int) -> None:
        nonlocal done
        while monotonic_s() < ends_s:
            await one(number)
            done += monotonic_s() >= begins_s

    await asyncio.gather(*(again(number) for number in range(question["connections"])))
    return {"per_s": done / (monotonic_s() - begins_s)}


def _head(kind: str, size: int) -> bytes:
    return (
        f"POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {size}\r\n\r\n"
    ).encode()


async def _answer(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    assert b" 202 " in head[:20], head
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    return await reader.readexactly(length)


async def main(stop: asyncio.Event) -> None:
    load = Load(settings()["port"], settings()["managers"])
    verbs = ("emit_many", "ndjson", "emit_single", "post_single", "delays", "pages")
    await answer_questions({name: getattr(load, name) for name in verbs}, stop)


if __name__ == "__main__":
    sys.exit(run_program("http-load", main))
