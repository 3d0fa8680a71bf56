"""What tests of the console do: open a page, read it, click, and hear what it complained of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.browser.chromium import Page
from tests.system.http_door import HttpDoor
from tests.waiting import until as until_s

AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text("utf-8")
NASTY = "<img src=x onerror=alert(1)>"
LIMIT_S = 60.0


def until(ask: Callable[[], Any], what: str, limit_s: float = LIMIT_S) -> None:
    until_s(ask, what, limit_s)


CUT_OFF = """[...document.querySelectorAll("main *")].filter((e) => {
  const box = e.getBoundingClientRect();
  if (!box.width || e.closest("pre, .u-wrap, .unseen, .moves, datalist")) return false;
  return box.right > document.documentElement.clientWidth + 1 || box.left < -1;
}).map((e) => e.outerHTML.slice(0, 120))"""


def show(page: Page, door: HttpDoor, name: str, width: int = 1280, scheme: str = "light") -> None:
    page.size(width, 900)
    page.scheme(scheme)
    page.ask("Page.navigate", url="about:blank")
    page.events.clear()
    page.ask("Page.navigate", url=f"{door.url}/#{name}")
    until(
        lambda: page.value(
            f"document.documentElement?.dataset.shown === {name!r} && document.documentElement.dataset.drawn === ``"
        ),
        f"{name} is shown",
    )


def text(page: Page, where: str = "main") -> str:
    said: str = page.value(f"document.querySelector({where!r}).innerText")
    return said


def click(page: Page, label: str) -> None:
    page.value(
        f"""[...document.querySelectorAll("button, a, summary")].find((e) =>
          (e.getAttribute("aria-label") || e.innerText).trim() === {label!r}).click()"""
    )


def press(page: Page, *keys: str) -> None:
    """Whatever has the focus hears them."""
    codes = {
        "Enter": 13,
        "Escape": 27,
        "ArrowLeft": 37,
        "ArrowUp": 38,
        "ArrowRight": 39,
        "ArrowDown": 40,
    }
    for key in keys:
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        code = codes.get(key, ord(key[0]))
        for kind in ("keyDown", "keyUp"):
            said = {"text": text} if text and kind == "keyDown" else {}
            page.ask(
                "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **said
            )


def complaints(page: Page) -> list[Any]:
    wrong = [e for e in page.said("Log.entryAdded") if e["entry"]["level"] in ("error", "warning")]
    said = [e for e in page.said("Runtime.consoleAPICalled") if e["type"] in ("error", "warning")]
    return [*page.said("Runtime.exceptionThrown"), *wrong, *said]


def foreign(page: Page, door: HttpDoor) -> list[str]:
    urls = [event["request"]["url"] for event in page.said("Network.requestWillBeSent")]
    return [url for url in urls if not url.startswith((door.url, "data:", "blob:", "about:"))]


def entry(page: Page, step: int) -> int:
    """Of the browser's history, so many steps from here."""
    told = page.ask("Page.getNavigationHistory")
    found: int = told["entries"][told["currentIndex"] + step]["id"]
    return found


def violations(page: Page) -> Any:
    """What axe finds."""
    page.ask("Runtime.evaluate", expression=AXE)
    return page.value(
        "axe.run().then((done) => done.violations.map((v) => [v.id, v.nodes.map((n) => n.html.slice(0, 200) + n.failureSummary)]))"
    )
