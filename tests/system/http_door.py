"""A real HTTP door before a real cluster, and a client of the standard library."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.system.cluster import Cluster
from tests.waiting import until

_LISTENING = re.compile(r"listening address=http://127\.0\.0\.1:(\d+)/")
_ANSWER_S = 60.0


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class HttpDoor:
    def __init__(self, cluster: Cluster, log: Path, *options: str, port: int = 0) -> None:
        self.log = log
        command = [sys.executable, "-P", "-m", "utuple.doors.http", "--at", cluster.at]
        already = len(_LISTENING.findall(log.read_text())) if log.exists() else 0
        with log.open("a") as output:
            self.process = subprocess.Popen(
                [*command, "--listen", f"127.0.0.1:{port}", *options],
                stderr=output,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        self.port = port
        until(lambda: self._is_listening(already), "the door listens")

    def _is_listening(self, already: int) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        found = _LISTENING.findall(self.log.read_text())[already:]
        if found:
            self.port = int(found[-1])
        return bool(found)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        **headers: str,
    ) -> Answer:
        """`body`: bytes as they are, else JSON."""
        said = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if body is not None:
            said.setdefault("Content-Type", "application/json")
        if query:
            path += "?" + urlencode(query, doseq=True)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_ANSWER_S)
        try:
            connection.request(method, path, body, said)
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def get(self, path: str, query: Mapping[str, Any] | None = None, **headers: str) -> Answer:
        return self.ask("GET", path, None, query, **headers)

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        return self.ask("POST", path, body, None, **headers)

    @contextmanager
    def events(self, path: str, query: Mapping[str, Any], **headers: str) -> Iterator[EventSource]:
        source = EventSource(self.port, path + "?" + urlencode(query, doseq=True), headers)
        try:
            yield source
        finally:
            source.close()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30)


@dataclass(frozen=True)
class Event:
    name: str
    id: str
    data: Any


class EventSource:
    """Server-sent events, as they come."""

    def __init__(self, port: int, path: str, headers: Mapping[str, str]) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_ANSWER_S)
        said = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request("GET", path, headers=said)
        self._answer = self._connection.getresponse()
        self.status = self._answer.status

    def problem(self) -> Any:
        return json.loads(self._answer.read())

    def take(self, count: int) -> list[Event]:
        found: list[Event] = []
        for event in self:
            found.append(event)
            if len(found) == count:
                break
        return found

    def __iter__(self) -> Iterator[Event]:
        name, id_, data = "", "", ""
        deadline_s = time.monotonic() + _ANSWER_S
        while line := self._answer.readline():
            assert time.monotonic() < deadline_s, "nothing but signs of life came"
            field, _, value = line.decode().rstrip("\n").partition(": ")
            if field == "event":
                name = value
            elif field == "id":
                id_ = value
            elif field == "data":
                data = value
            elif not field and data:
                yield Event(name, id_, json.loads(data))
                name, id_, data = "", "", ""

    def close(self) -> None:
        sock = self._connection.sock
        if sock is not None:
            with_reset = b"\x01\x00\x00\x00\x00\x00\x00\x00"
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, with_reset)
        self._answer.close()
        self._connection.close()


@contextmanager
def door_before(cluster: Cluster, folder: Path, *options: str) -> Iterator[HttpDoor]:
    """It ends as it should, and has nothing to complain of."""
    door = HttpDoor(cluster, folder / "http.log", *options)
    try:
        yield door
        assert door.stop() == 0
        log = door.log.read_text()
        assert " ERROR " not in log, log
        assert "Traceback" not in log, log
    finally:
        if door.process.poll() is None:
            door.kill()
