"""A cluster of 100 servers and 10,000 sections in the console: the door's own parts of a made-up snapshot, through the pages' own code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.browser.chromium import Page, found, opened
from tests.browser.console import complaints, text, until
from utuple.admin.programs import FamilyLoad, Flag, Load, Manager, Monitor, Sca, Server
from utuple.admin.snapshot import Snapshot
from utuple.cluster.line import Line, Member
from utuple.doors.http.operators.parts import changed_lines, parts_of, sample_of
from utuple.model.key import HASH_SPACE
from utuple.model.section import Section

CHROMIUM = found()
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: `make browser` installs it"),
    pytest.mark.slow,
]
CONSOLE = Path(__file__).parents[2] / "utuple" / "doors" / "http" / "console"
SERVERS, SECTIONS, CHANGED, UPDATES = 100, 10_000, 100, 4
BUSY_MAX = 0.5
"""Seconds of the page's thread, in processor time, for an update, which comes every second, and the frames that mark it: the rest is there
for whoever scrolls and types."""

FRAMES = """new Promise((done) => {
  let left = 30;
  const next = () => (left-- ? requestAnimationFrame(next) : done());
  next(); })"""
"""Half a second at 60 a second, while what has changed is marked. Counted, not timed: on a busy machine there would be fewer."""
SOURCE = r"""
const others = window.fetch;
window.fetch = (url, asked) => {
  if (asked?.headers?.Accept !== "text/event-stream") return others(url, asked);
  const encoder = new TextEncoder();
  const start = (stream) => {
    window.said = (name, data) => stream.enqueue(encoder.encode(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`));
  };
  return Promise.resolve(new Response(new ReadableStream({ start })));
};
"""
"""The stream of the door: `window.said` puts an event into it."""


def a_snapshot() -> Snapshot:
    width = HASH_SPACE // SECTIONS
    names = [f"server-{n + 1}" for n in range(SERVERS)]
    lines = [
        Line(
            Section(n * width, (n + 1) * width if n + 1 < SECTIONS else HASH_SPACE),
            1,
            (Member(names[n % SERVERS]), Member(names[(n + 7) % SERVERS], n % 3 > 0)),
        )
        for n in range(SECTIONS)
    ]
    servers = [
        Server(
            name,
            "127.0.0.1:1",
            state="serving",
            load=Load(0.5),
            flags=(Flag("0", "1", 1, True, False, name),) * (2 * SECTIONS // SERVERS),
            events=1_000_000,
            size_bytes=10**9,
            capacity_bytes=10**10,
            families=tuple(FamilyLoad(f"kind-{k}", "t", 10.0 + k, 5) for k in range(20)),
        )
        for name in names
    ]
    return Snapshot(
        True,
        lines,
        servers,
        [Sca("sca-1", state="serving")],
        [Manager("manager-1", state="serving")],
        [Monitor("monitor-1", state="watching")],
    )


def updates(first: Snapshot) -> Iterator[list[tuple[str, object]]]:
    """What the door would send second by second while a hundred sections change."""
    before, old = first, parts_of(first)
    for number in range(1, UPDATES + 1):
        lines = list(before.lines)
        for at in range(0, SECTIONS, SECTIONS // CHANGED):
            lines[at] = replace(lines[at], epoch=lines[at].epoch + 1)
        servers = [replace(one, load=Load(0.5 + number / 100)) for one in before.servers]
        before = replace(before, lines=lines, servers=servers)
        new = parts_of(before)
        said: list[tuple[str, object]] = [
            (name, part) for name, part in new.items() if name != "lines" and part != old[name]
        ]
        said.append(("patch", changed_lines(old["lines"], new["lines"])))
        said.append(("sample", [1_000.0 + number, sample_of(servers)]))
        old = new
        yield said


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    assert CHROMIUM is not None
    with opened(CHROMIUM, tmp_path_factory.mktemp("profile")) as page:
        page.ask("Page.addScriptToEvaluateOnNewDocument", source=SOURCE)
        yield page


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The console's files alone, where the door has them."""
    import threading
    from functools import partial
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    class Files(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Quietly."""

    root = tmp_path_factory.mktemp("files")
    (root / "console").symlink_to(CONSOLE)
    (root / "index.html").symlink_to(CONSOLE / "index.html")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=str(root)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def seconds() -> list[str]:
    """What the page is told: everything, then second by second what changes."""
    first = a_snapshot()
    whole: list[tuple[str, object]] = [("cluster", {"answers": True, "why": "", "data": ""})]
    whole += parts_of(first).items()
    return [
        "".join(f"window.said({json.dumps(name)}, {json.dumps(part)});" for name, part in said)
        for said in (whole, *updates(first))
    ]


def busy_s(page: Page) -> float:
    told = page.ask("Performance.getMetrics")["metrics"]
    return float({one["name"]: one["value"] for one in told}["TaskDuration"])


def opened_at(page: Page, address: str, name: str, whole: str) -> None:
    """The page, told everything."""
    page.size(1280, 900)
    page.ask("Page.navigate", url="about:blank")
    page.load(f"{address}/#{name}")
    until(lambda: page.value("typeof window.said === `function`"), "it listens")
    page.value(whole)
    until(lambda: page.value("document.documentElement.dataset.drawn === ``"), "it is drawn")


@pytest.mark.parametrize(
    ("name", "shown"), [("space", "9,800 more"), ("servers", "server-100"), ("families", "kind-19")]
)
def test_a_page_of_10_000_sections_and_100_servers_leaves_half_of_the_time_to_its_reader(
    page: Page, address: str, seconds: list[str], name: str, shown: str
) -> None:
    whole, *changes = seconds
    opened_at(page, address, name, whole)
    page.ask("Performance.enable", timeDomain="threadTicks")
    before_s = busy_s(page)
    for said in changes:
        page.value(said)
        page.value(FRAMES)
    took_s = (busy_s(page) - before_s) / UPDATES
    page.ask("Performance.disable")
    assert shown in text(page)
    assert complaints(page) == []
    assert 0 < took_s < BUSY_MAX, f"{took_s:.3f} s of work for an update and 30 frames"
    print(f"{took_s:.3f} s of work")


def test_a_button_that_is_pressed_while_the_page_changes_is_pressed(
    page: Page, address: str, seconds: list[str]
) -> None:
    """A page is drawn anew every second: what is pressed must be the same element when it is let go."""
    whole, change, *_ = seconds
    opened_at(page, address, "servers", whole)
    x, y = page.value("""(() => {
      const button = document.querySelector("[aria-label='Help server-2']");
      button.scrollIntoView({ block: "center" });
      const box = button.getBoundingClientRect();
      return [box.left + box.width / 2, box.top + box.height / 2];
    })()""")
    mouse = {"x": x, "y": y, "button": "left", "clickCount": 1}
    before = text(page, "[aria-label=server-2]")
    page.ask("Input.dispatchMouseEvent", type="mousePressed", buttons=1, **mouse)
    page.value(change)
    page.value(FRAMES)
    assert text(page, "[aria-label=server-2]") == before
    page.ask("Input.dispatchMouseEvent", type="mouseReleased", buttons=0, **mouse)
    until(lambda: "Help server-2" in text(page, "dialog"), "it is clicked")
    until(lambda: text(page, "[aria-label=server-2]") != before, "and the page goes on")


def test_a_reader_that_two_servers_know_is_one_reader(
    page: Page, address: str, seconds: list[str]
) -> None:
    opened_at(page, address, "readers", seconds[0])
    rows = [
        {"reader": name, "server": server, "connected": here, "lag": lag, "families": ["a/t"]}
        | {"lag_is_more": False, "seen_us": 1, "expires_us": None, "dropped": 0, "parked": 0}
        for name, server, here, lag in (
            ("dispatch", "server-1", True, 3),
            ("dispatch", "server-2", True, 4),
            ("archive", "server-1", False, 5),
        )
    ]
    page.value(f"window.said('readers', {json.dumps(rows)})")
    figures = "[...document.querySelectorAll('.stat dd')].slice(0, 3).map((e) => e.innerText)"
    until(lambda: page.value(figures) == ["2", "1", "7"], "readers, away, most behind")
