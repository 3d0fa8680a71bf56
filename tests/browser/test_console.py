"""The console in a real browser, before a real cluster: nothing is cut off, nothing is asked of anybody else, nobody is left
out, and what happens to the cluster is seen."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.browser.chromium import Page, found, opened
from tests.browser.console import (
    CUT_OFF,
    NASTY,
    click,
    complaints,
    entry,
    foreign,
    press,
    show,
    text,
    until,
    violations,
)
from tests.system.cluster import Cluster, running_cluster
from tests.system.http_door import HttpDoor, door_before

CHROMIUM = found()
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: `make browser` installs it"),
    pytest.mark.slow,
]
PAGES = ("space", "servers", "map", "readers", "families", "plan")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster("--servers", "3", "--managers", "1") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def door(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpDoor]:
    folder = tmp_path_factory.mktemp("door")
    data = ("--data", str(cluster.folder))
    with door_before(cluster, folder, *data, "--readers-look-s", "1") as door:
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
        rows.append({"subject": NASTY, "type": NASTY, "address": NASTY, "data": {NASTY: NASTY}})
        body = "".join(json.dumps(row) + "\n" for row in rows).encode()
        assert door.post("/v1/events", body, Content_Type="application/x-ndjson").status == 202
        yield door


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    assert CHROMIUM is not None
    with opened(CHROMIUM, tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole_at_every_width_and_for_everybody(
    page: Page, door: HttpDoor, name: str
) -> None:
    for width, scheme in ((1280, "light"), (360, "dark")):
        show(page, door, name, width, scheme)
        assert page.value("document.documentElement.scrollWidth") <= width
        assert page.value(CUT_OFF) == []
        assert page.value("document.querySelectorAll('main img').length") == 0, "names are text"
        assert violations(page) == []
        assert complaints(page) == []
        assert foreign(page, door) == []


def test_the_first_paint_takes_less_than_a_second_of_work(page: Page, door: HttpDoor) -> None:
    """In processor time of the page's thread: what else the machine does delays it, but is not the page's."""
    page.ask("Performance.enable", timeDomain="threadTicks")
    try:
        show(page, door, "space")
        painted = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
        until(lambda: page.value(painted), "it is painted")
        told = page.ask("Performance.getMetrics")["metrics"]
    finally:
        page.ask("Performance.disable")
    found = {one["name"]: one["value"] for one in told}
    assert 0.001 < found["TaskDuration"] < 1.0, found


def test_a_page_that_nobody_sees_lets_go_of_its_streams(page: Page, door: HttpDoor) -> None:
    """A browser has six connections to a door, and keeps pages that were left for a way back: the seventh would wait."""
    for _ in range(7):
        show(page, door, "map")
        click(page, "Watch")
        until(lambda: "50 stored" in text(page), "stored ones are shown")
    page.ask("Page.navigate", url="about:blank")
    until(lambda: b"http_streams 0.0" in door.get("/metrics").body, "both are let go", 10.0)
    page.ask("Page.navigateToHistoryEntry", entryId=entry(page, -1))
    until(lambda: text(page, "#health") == "all well", "the way back leads to a page that goes on")


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


def test_a_server_is_added_and_drained_each_tried_first(
    page: Page, door: HttpDoor, cluster: Cluster
) -> None:
    show(page, door, "servers")
    names = "[...document.querySelectorAll('article.server')].map((e) => e.getAttribute('aria-label')).join()"
    click(page, "Add a server")
    until(lambda: "server-4 at" in text(page, "dialog"), "the dry run says what would be done")
    click(page, "Leave it")
    until(lambda: page.value("document.querySelector('dialog') === null"), "it is left")
    assert list(cluster.servers()) == ["server-1", "server-2", "server-3"]

    click(page, "Add a server")
    until(lambda: "server-4 at" in text(page, "dialog"), "tried again")
    click(page, "Add it")
    until(lambda: page.value(names) == "server-1,server-2,server-3,server-4", "it is there")
    until(lambda: "serving" in text(page, "[aria-label=server-4]"), "and serves")

    order(page, "Drain server-4", "leaves its", "Drain it")
    until(lambda: page.value(names) == "server-1,server-2,server-3", "it is out")
    assert complaints(page) == []


def test_a_drain_is_undone_while_nothing_was_brought_away(
    page: Page, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Nobody has room by this policy, so it does not go on: once something was brought away only a new server undoes it."""
    nobody = ("--policy", "helper_memory_max=1e-9")
    with (
        running_cluster("--servers", "2", "--managers", "1", *nobody) as cluster,
        door_before(
            cluster, tmp_path_factory.mktemp("stuck"), "--data", str(cluster.folder)
        ) as door,
    ):
        show(page, door, "servers")
        order(page, "Drain server-2", "leaves its", "Drain it")
        until(lambda: "leaving" in text(page, "[aria-label=server-2]"), "the page says so")
        order(page, "Keep server-2", "server-2 stays", "Keep it")
        until(lambda: "serving" in text(page, "[aria-label=server-2]"), "it stays")
        assert [one["leaving"] for one in cluster.run("status", "--json").json()["servers"]] == [
            False,
            False,
        ]
        again = door.post("/v1/servers/server-2/drain", b'{"cancel": true, "dry_run": true}')
        assert (again.status, "is not leaving" in again.body.decode()) == (409, True)
        assert complaints(page) == []


def order(page: Page, label: str, would: str, button: str) -> None:
    """The dialog says what would be done, then it is ordered."""
    click(page, label)
    until(lambda: would in text(page, "dialog"), "the dry run says what would be done")
    page.value(
        "document.querySelector('#toasts').replaceChildren()"
    )  # those of earlier orders go by themselves
    click(page, button)
    until(lambda: "Ordered:" in text(page, "#toasts"), f"{label}: it is ordered")


def test_a_scenario_that_is_wrong_is_explained_on_the_page(page: Page, door: HttpDoor) -> None:
    show(page, door, "plan")
    page.value("document.querySelector('#scenario').value = '[plan]\\nwordls = 3'")
    click(page, "Run the sweep")
    until(lambda: "failed" in text(page, "[aria-label=Runs]"), "it is tried, and fails")
    assert "wordls" in text(page, "[aria-label=Runs]")


@pytest.mark.long
def test_a_sweep_is_made_followed_and_its_report_read(page: Page, door: HttpDoor) -> None:
    show(page, door, "plan")
    click(page, "Begin with the template")
    scenario = "document.querySelector('#scenario').value"
    until(lambda: "worlds = 200" in page.value(scenario), "the template is there")
    page.value(f"{scenario} = {scenario}.replace('worlds = 200', 'worlds = 4')")
    click(page, "Run the sweep")
    until(lambda: "of 4 worlds" in text(page, "[aria-label=Runs]"), "it says how far it is")
    done = "[...document.querySelectorAll('.run')].some((e) => e.innerText.includes('done'))"
    until(lambda: page.value(done), "it is done", 300.0)
    assert "buy" in text(page, "[aria-label=Runs]")
    report = page.value("document.querySelector('.run a.button').href")
    page.load(report)
    assert page.value("document.querySelectorAll('.plot').length") > 0
    assert complaints(page) == []
    assert foreign(page, door) == []


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


def test_who_comes_to_the_map_sees_the_busiest_family_and_asks_again_without_stopping(
    page: Page, door: HttpDoor
) -> None:
    show(page, door, "map")
    until(lambda: re.search(r"[1-9]\d* stored", text(page)), "it is watched at once")
    assert page.value("document.querySelector('#m-subject').value") == "truck"
    page.value(
        "document.querySelector('#m-where').value = 'kg>=49'; document.querySelector('#m-where').focus()"
    )
    press(page, "Enter")
    until(lambda: "1 stored" in text(page), "the new condition counts")
    click(page, "Stop")
    until(lambda: page.value("document.querySelector('.asks .quiet').hidden"), "it stops")
    live = {"subject": "truck", "type": "load", "address": "b", "position": [35, 139]}
    nowhere = {"subject": "truck", "type": "load", "address": "c"}
    click(page, "Watch")
    until(lambda: "1 stored" in text(page), "it goes on")
    for one in (live, nowhere):
        assert door.post("/v1/events", {**one, "data": {"kg": 99}}).status == 202
    until(lambda: "2 live matches, 1 of them without a position" in text(page), "both are counted")


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
    """The supervisor would start it again at once: it looks away until the page has been read."""
    show(page, door, "space")
    until(lambda: text(page, "#health") == "all well", "all is well")
    with stopped(cluster.pid("supervisor")):
        os.kill(cluster.pid("server-3"), signal.SIGKILL)
        until(lambda: "server-3" in text(page, "#health"), "the page says so")
        assert "server-3 does not serve: start it again" in text(page)
    until(lambda: text(page, "#health") == "all well", "and recovers")
    assert "does not serve" not in text(page)


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


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


def test_every_page_is_reached_by_keyboard(page: Page, door: HttpDoor) -> None:
    door.post("/v1/events", {"subject": "truck", "type": "load", "address": "a", "data": {"kg": 5}})
    show(page, door, "space")
    page.value("document.querySelector('#nav a[href=\"#families\"]').focus()")
    press(page, "Enter")
    until(lambda: "truck" in text(page), "families are shown")
    until(lambda: "Size" in text(page) and "B/s" in text(page), "with the size of their events")
    show(page, door, "space")
    page.value("document.querySelector('canvas').focus()")
    before = text(page, "[aria-label=Section]")
    press(page, "ArrowRight", "ArrowRight")
    until(lambda: text(page, "[aria-label=Section]") != before, "another section is chosen")


def test_an_area_is_drawn_moved_and_taken_away_by_keyboard_and_drawn_by_mouse(
    page: Page, door: HttpDoor
) -> None:
    show(page, door, "map")

    def area() -> list[float]:
        said = page.value("document.querySelector('#m-area').value")
        return [float(part.rstrip("m")) for part in said.split(",")] if said else []

    def drawing(label: str) -> None:
        click(page, label)
        page.value("document.querySelector('.map-box canvas').focus()")

    drawing("Draw a circle")
    press(page, "Enter")
    lat, lon, radius = area()
    press(page, "ArrowUp", "ArrowRight", "+")
    moved = area()
    assert moved[0] > lat and moved[1] > lon
    assert moved[2] == pytest.approx(1.25 * radius, abs=1)
    press(page, "-")
    assert area()[2] == pytest.approx(radius, abs=1)
    press(page, "Escape")
    assert area() == []
    drawing("Draw a box")
    press(page, "Enter")
    south, west, north, east = area()
    assert south < north and west < east
    press(page, *["ArrowRight"] * 60)
    assert all(-180 <= side <= 180 for side in (area()[1], area()[3])), "around the world"
    press(page, "Escape")
    page.value("document.querySelector('.map-box canvas').scrollIntoView()")
    left, top = page.value(
        "(({left, top}) => [left, top])(document.querySelector('.map-box canvas').getBoundingClientRect())"
    )
    for kind, at in (("mousePressed", 100), ("mouseMoved", 200), ("mouseReleased", 200)):
        page.ask(
            "Input.dispatchMouseEvent",
            type=kind,
            x=left + at,
            y=top + at,
            button="left",
            buttons=int(kind != "mouseReleased"),
            clickCount=1,
        )
    south, west, north, east = area()
    assert south < north and west < east
    assert complaints(page) == []


def test_a_cluster_that_goes_is_told_of_with_how_to_start_it_and_found_again(
    page: Page, door: HttpDoor, cluster: Cluster
) -> None:
    """The last one: other tests need a cluster that has not been stopped."""
    show(page, door, "space")
    assert cluster.run("down").code == 0
    until(lambda: "No cluster answers" in text(page), "it is told")
    assert f"utuple up --data {cluster.folder}" in text(page)
    cluster.up("--servers", "3", "--managers", "1")
    until(lambda: text(page, "#health") == "all well", "and goes on")
    assert "No cluster answers" not in text(page)
