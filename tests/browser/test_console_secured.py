"""The console of a secured cluster in a real browser: it asks who looks, signs in by the fragment of its address, and shows each what is his."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.chromium import Page, found, opened
from tests.system.cluster import Cluster, free_port, running_cluster
from tests.waiting import until

CHROMIUM = found()
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: `make browser` installs it"),
    pytest.mark.slow,
]
LIMIT_S = 60.0


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def cluster(port: int) -> Iterator[Cluster]:
    few = ("--servers", "1", "--managers", "1", "--http", str(port))
    with running_cluster("--secure", *few) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    assert CHROMIUM is not None
    with opened(CHROMIUM, tmp_path_factory.mktemp("profile")) as page:
        page.ask("Security.enable")
        page.ask(
            "Security.setIgnoreCertificateErrors", ignore=True
        )  # the authority is not imported
        yield page


def text(page: Page, where: str = "body") -> str:
    try:
        said: Any = page.value(f"document.querySelector({where!r})?.innerText")
    except AssertionError as error:
        assert "navigated" in str(error), error  # it is being loaded
        return ""
    return said or ""


def shows(page: Page, words: str, where: str = "body") -> None:
    until(lambda: words in text(page, where), f"{words!r} is shown", LIMIT_S)


def test_who_is_not_known_is_asked_to_sign_in_and_then_sees_the_cluster(
    page: Page, cluster: Cluster, port: int, tmp_path: Path
) -> None:
    page.ask("Page.navigate", url=f"https://127.0.0.1:{port}/#servers")
    shows(page, "utuple token --console")
    assert text(page, "#health") == "sign in"
    assert page.value("document.querySelector('#out').hidden")

    given = cluster.run("token", "--console")
    assert given.code == 0, given.err
    address = given.out.strip()
    assert address.startswith(f"https://127.0.0.1:{port}/#token=")
    page.ask("Page.navigate", url="about:blank")
    page.events.clear()
    page.ask("Page.navigate", url=address)
    shows(page, "all well", "#health")
    assert page.value("location.hash") == ""  # it has left the address
    token = address.partition("#token=")[2]
    urls = [event["request"]["url"] for event in page.said("Network.requestWillBeSent")]
    assert urls
    assert not [url for url in urls if token in url]
    assert token not in "".join(one.read_text() for one in (cluster.folder / "logs").glob("*.log"))

    page.value("location.hash = '#servers'")
    shows(page, "server-1", "main")
    page.value("document.querySelector('#out').click()")
    shows(page, "utuple token --console")


def test_who_is_no_operator_is_told_so_and_has_the_map(
    page: Page, cluster: Cluster, port: int, tmp_path: Path
) -> None:
    creds = str(tmp_path / "looker.creds")
    granted = cluster.run(
        "grant", "looker", "--as", "application", "--watch", "truck/*", "-o", creds
    )
    assert granted.code == 0, granted.err
    token = cluster.run("token", "--credentials", creds).out.strip()
    page.ask("Page.navigate", url="about:blank")
    page.ask("Page.navigate", url=f"https://127.0.0.1:{port}/#token={token}")
    shows(page, "for operators", "#health")
    shows(page, "it is for operators", "main")
    page.value("location.hash = '#map'")
    shows(page, "Watch", "main")
    fields = "document.querySelector('#m-subject').value = {!r}; document.querySelector('#m-type').value = 'load'"
    click = "[...document.querySelectorAll('button')].find((e) => e.innerText.trim() === 'Watch').click()"
    page.value(fields.format("bus"))
    page.value(click)
    shows(page, "may not watch bus/load", "main")
    page.value(fields.format("truck"))
    page.value(click)
    shows(page, "Waiting for matches", "main")
    assert cluster.run("revoke", "looker").code == 0
    shows(page, "were revoked", "main")
