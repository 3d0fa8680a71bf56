"""Chromium without a driver program: the DevTools protocol over its own pipe, messages ended by a zero byte."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ANSWER_S = 60.0
"""A loaded machine may take long to open five megabytes."""
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe"),
)


def found() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Page:
    """One tab, and everything it said or asked for since it was opened."""

    def __init__(self, requests: int, answers: int) -> None:
        self._requests, self._answers = requests, answers
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []

    def attach(self) -> None:
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        told = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = told["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._requests, json.dumps(message).encode() + b"\0")
        while True:
            told = self._next(method)
            if told.get("id") == number:
                assert "error" not in told, f"{method}: {told['error']}"
                return told["result"]  # type: ignore[no-any-return]
            self.events.append(told)

    def _next(self, method: str) -> dict[str, Any]:
        until = time.monotonic() + ANSWER_S
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], until - time.monotonic())
            assert ready, f"Chromium did not answer {method} within {ANSWER_S} s"
            data = os.read(self._answers, 1 << 20)
            assert data, f"Chromium ended during {method}"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)  # type: ignore[no-any-return]

    def size(self, width: int, height: int) -> None:
        phone = width < 600
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )

    def scheme(self, name: str) -> None:
        """Light or dark."""
        scheme = {"name": "prefers-color-scheme", "value": name}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])

    def load(self, url: str) -> None:
        """Until its load event; what it says from now on is in `events`."""
        self.events.clear()
        self.ask("Page.navigate", url=url)
        while not self.said("Page.loadEventFired"):
            self.events.append(self._next("Page.navigate"))

    def open(self, path: Path) -> None:
        """A report: done when it says that it has drawn all of its plots."""
        self.load(path.resolve().as_uri())
        self.value(
            """new Promise((done) => {
              const look = () => "drawn" in document.documentElement.dataset
                ? done() : requestAnimationFrame(look);
              look(); })"""
        )

    def value(self, expression: str) -> Any:
        told = self.ask(
            *("Runtime.evaluate",),
            expression=expression,
            awaitPromise=True,
            returnByValue=True,
        )
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def point_at(self, x: float, y: float) -> None:
        self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def picture(self, whole: bool = False) -> bytes:
        told = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(told["data"])

    def said(self, *methods: str) -> list[dict[str, Any]]:
        return [event["params"] for event in self.events if event.get("method") in methods]


@contextmanager
def opened(program: str, profile: Path) -> Iterator[Page]:
    """A browser of its own, ended at the end."""
    ours_out, theirs_out = os.pipe()
    theirs_in, ours_in = os.pipe()
    # Chromium reads from 3 and writes to 4: above those first, so that neither is overwritten.
    read, write = (fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (theirs_in, theirs_out))
    nowhere = os.open(os.devnull, os.O_RDWR)
    actions = [
        *((os.POSIX_SPAWN_DUP2, read, 3), (os.POSIX_SPAWN_DUP2, write, 4)),
        *((os.POSIX_SPAWN_DUP2, nowhere, end) for end in (0, 1, 2)),
    ]
    arguments = [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
    pid = os.posix_spawn(program, arguments, os.environ, file_actions=actions, setpgroup=0)
    for end in (read, write, theirs_in, theirs_out, nowhere):
        os.close(end)
    try:
        page = Page(ours_in, ours_out)
        page.attach()
        yield page
    finally:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(ours_in)
        os.close(ours_out)
