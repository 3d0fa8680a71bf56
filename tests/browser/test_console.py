"""The console in a real browser, before a real cluster: nothing is cut off, nothing is asked of anybody else, nobody is left
out, and what happens to the cluster is seen."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.chromium import Page, found, opened
from tests.system.cluster import Cluster, running_cluster
from tests.system.http_door import HttpDoor, door_before
from tests.waiting import until as until_s

CHROMIUM = found()
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: `make browser` installs it"),
    pytest.mark.slow,
    pytest.mark.xdist_group("browser"),
]
AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text("utf-8")
PAGES = ("space", "servers", "map", "readers", "families", "plan")
NASTY = "<img src=x onerror=alert(1)>"

LIMIT_S = 60.0


def until(ask: Callable[[], Any], what: str) -> None:
    until_s(ask, what, LIMIT_S)


CUT_OFF = """[...document.querySelectorAll("main *")].filter((e) => {
  const box = e.getBoundingClientRect();
  if (!box.width || e.closest(".scroll, pre, .u-wrap, .unseen, .moves, datalist")) return false;
  return box.right > document.documentElement.clientWidth + 1 || box.left < -1;
}).map((e) => e.outerHTML.slice(0, 120))"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster("--servers", "3", "--managers", "1") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def door(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpDoor]:
    folder = tmp_path_factory.mktemp("door")
    with door_before(cluster, folder, "--data", str(cluster.folder)) as door:
        rows = [
            {
                "subject": "truck",
                "type": "load",
                "address": f"{NASTY}-{n}",
                "position": [35 + n / 100, 139 + n / 100],
                "data": {"kg": n, "note": NASTY},
            }
            for n in range(50)
        ]
        body = "".join(json.dumps(row) + "\n" for row in rows).encode()
        assert door.post("/v1/events", body, Content_Type="application/x-ndjson").status == 202
        yield door


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    assert CHROMIUM is not None
    with opened(CHROMIUM, tmp_path_factory.mktemp("profile")) as page:
        yield page


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


def complaints(page: Page) -> list[Any]:
    wrong = [e for e in page.said("Log.entryAdded") if e["entry"]["level"] in ("error", "warning")]
    said = [e for e in page.said("Runtime.consoleAPICalled") if e["type"] in ("error", "warning")]
    return [*page.said("Runtime.exceptionThrown"), *wrong, *said]


def foreign(page: Page, door: HttpDoor) -> list[str]:
    urls = [event["request"]["url"] for event in page.said("Network.requestWillBeSent")]
    return [url for url in urls if not url.startswith((door.url, "data:", "blob:", "about:"))]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole_at_every_width_and_for_everybody(
    page: Page, door: HttpDoor, name: str
) -> None:
    for width, scheme in ((1280, "light"), (360, "dark")):
        show(page, door, name, width, scheme)
        assert page.value("document.documentElement.scrollWidth") <= width
        assert page.value(CUT_OFF) == []
        page.ask("Runtime.evaluate", expression=AXE)
        found = page.value(
            "axe.run().then((done) => done.violations.map((v) => [v.id, v.nodes.map((n) => n.html.slice(0, 200))]))"
        )
        assert found == []
        assert complaints(page) == []
        assert foreign(page, door) == []


def test_the_first_paint_is_within_a_second(page: Page, door: HttpDoor) -> None:
    """The quickest of several: what else the machine does can only delay it."""
    painted = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    for _ in range(20):
        show(page, door, "space")
        if page.value(painted) < 1000:
            return
    raise AssertionError("never within a second")


def test_a_help_is_ordered_followed_and_the_ring_changes(page: Page, door: HttpDoor) -> None:
    show(page, door, "servers")
    click(page, "Help server-1")
    until(lambda: "helps server-1" in text(page, "dialog"), "the dry run says what would be done")
    assert door.get("/v1/moves").json()["moves"] == []
    click(page, "Order it")
    until(lambda: "Ordered:" in text(page, "#toasts"), "it is ordered")
    show(page, door, "space")
    until(lambda: "server-1 1" in text(page) and "helps server-1" in text(page), "the page follows")
    two = "[...document.querySelectorAll('tbody tr')].some((row) => row.querySelectorAll('.tag').length === 2)"
    until(lambda: page.value(two), "the table has changed")
    page.value("document.querySelector('.moves summary').click()")
    until(lambda: "the operator asked for it" in text(page), "the reason is told")


def test_events_with_script_in_their_names_are_shown_as_text(page: Page, door: HttpDoor) -> None:
    show(page, door, "map")
    page.value(
        "document.querySelector('#m-subject').value = 'truck'; document.querySelector('#m-type').value = 'load'"
    )
    click(page, "Watch")
    until(lambda: "50 stored" in text(page), "stored ones are shown")
    assert NASTY in text(page)
    assert page.value("document.querySelectorAll('main img').length") == 0
    live = {"subject": "truck", "type": "load", "address": "now", "position": [35, 139], "data": {}}
    door.post("/v1/events", live)
    until(lambda: "1 live" in text(page), "a live one is shown")
    assert complaints(page) == []


def test_a_wrong_condition_is_explained_on_the_page(page: Page, door: HttpDoor) -> None:
    show(page, door, "map")
    page.value("document.querySelector('#m-where').value = 'kg!!5'")
    click(page, "Watch")
    until(lambda: "where" in text(page, ".map") and "refused" in text(page, ".map"), "told")


def test_a_command_to_an_area_says_who_got_it_one_by_one(page: Page, door: HttpDoor) -> None:
    show(page, door, "map")
    place = "/v1/devices/aircon/power/{}/commands"
    with (
        door.events(place.format("room-1"), {"position": "35.68,139.76"}) as near,
        door.events(place.format("far"), {"position": "0,0"}),
    ):
        taking = threading.Thread(target=lambda: near.take(1))
        taking.start()
        page.value(
            "document.querySelector('#m-area').value = '35.68,139.76,2km';"
            "document.querySelector('#c-subject').value = 'aircon'; document.querySelector('#c-type').value = 'power'"
        )
        click(page, "Send to the area")
        until(lambda: "handed" in text(page) or "no device" in text(page), "an answer")
        assert "has it" in text(page), text(page, "[aria-label=Command]")
        assert "room-1" in text(page)
        assert "far" not in text(page)
        taking.join(30)


def test_a_reader_is_shown_and_forgotten(page: Page, door: HttpDoor) -> None:
    with door.events(
        "/v1/events/live", {"subject": "truck", "type": "load", "reader": NASTY}
    ) as got:
        got.take(1)
    show(page, door, "readers")
    until(lambda: NASTY in text(page) and "away" in text(page), "it is shown as away")
    page.value("window.confirm = () => true")
    click(page, f"Forget {NASTY}")
    until(lambda: NASTY not in text(page), "it is forgotten")


def test_a_server_that_is_killed_is_told_of_and_its_return_too(
    page: Page, door: HttpDoor, cluster: Cluster
) -> None:
    show(page, door, "space")
    until(lambda: text(page, "#health") == "all well", "all is well")
    import os
    import signal

    os.kill(cluster.pid("server-3"), signal.SIGSTOP)
    try:
        until(lambda: "server-3" in text(page, "#health"), "the page says so")
        assert "does not serve" in text(page)
    finally:
        os.kill(cluster.pid("server-3"), signal.SIGCONT)
    until(lambda: text(page, "#health") == "all well", "and recovers")


def test_a_door_that_goes_is_told_of_and_found_again(
    page: Page, cluster: Cluster, tmp_path: Path
) -> None:
    door = HttpDoor(cluster, tmp_path / "http.log")
    try:
        show(page, door, "space")
        door.kill()
        until(lambda: "does not answer" in text(page, "#health"), "the page says so")
        door = HttpDoor(cluster, tmp_path / "http.log", port=door.port)
        until(lambda: text(page, "#health") == "all well", "and goes on")
    finally:
        door.kill()


def test_without_a_cluster_the_page_says_how_to_start_one(page: Page, tmp_path: Path) -> None:
    with running_cluster("--servers", "1", "--managers", "1", "--no-monitor") as own:
        with door_before(own, tmp_path, "--data", str(own.folder)) as door:
            show(page, door, "space")
            own.run("down")
            until(lambda: "No cluster answers" in text(page), "it is told")
            assert "utuple up --data" in text(page)


def test_every_page_is_reached_by_keyboard(page: Page, door: HttpDoor) -> None:
    show(page, door, "space")
    page.value("document.querySelector('#nav a[href=\"#families\"]').focus()")
    for kind in ("keyDown", "keyUp"):
        page.ask(
            "Input.dispatchKeyEvent", type=kind, key="Enter", windowsVirtualKeyCode=13, text="\r"
        )
    until(lambda: "truck" in text(page), "families are shown")
    show(page, door, "space")
    page.value("document.querySelector('canvas').focus()")
    before = text(page, "[aria-label=Section]")
    page.ask("Input.dispatchKeyEvent", type="keyDown", key="ArrowRight", windowsVirtualKeyCode=39)
    page.ask("Input.dispatchKeyEvent", type="keyDown", key="ArrowRight", windowsVirtualKeyCode=39)
    until(lambda: text(page, "[aria-label=Section]") != before, "another section is chosen")
