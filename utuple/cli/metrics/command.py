"""`utuple metrics`: printed once, or served until Ctrl-C. Each scrape asks the cluster anew."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from utuple.cli.options import AT_DEFAULT, At, addresses
from utuple.cli.outcome import INTERRUPTED
from utuple.errors import InvalidInput, UTupleError

if TYPE_CHECKING:
    from prometheus_client.core import Metric

Listen = Annotated[
    str,
    typer.Option(
        metavar="HOST:PORT", help="Serve them at http://HOST:PORT/metrics until Ctrl-C, instead."
    ),
]


def metrics(at: At = AT_DEFAULT, listen: Listen = "") -> None:
    """The cluster's figures in Prometheus's format: load, stores, readers' lag, moves.

    Printed once; with --listen served, and each scrape asks the cluster
    anew. One exporter is enough for a cluster.
    """
    from prometheus_client import CollectorRegistry, generate_latest, start_http_server

    asked = addresses(at)
    registry = CollectorRegistry()
    if not listen:
        registry.register(Cluster(asked, must_answer=True))
        print(generate_latest(registry).decode(), end="", flush=True)
        return
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal():
        raise InvalidInput("--listen", listen, "must be HOST:PORT, such as 127.0.0.1:9464")
    registry.register(Cluster(asked, must_answer=False))
    ending = (signal.SIGINT, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_BLOCK, ending)  # before the threads that inherit it
    try:
        server, thread = start_http_server(int(port), host, registry)
    except (OSError, OverflowError) as error:
        raise InvalidInput("--listen", listen, f"cannot be listened on: {error}") from None
    typer.echo(f"http://{listen}/metrics; Ctrl-C ends it", err=True)
    asked_by = signal.sigwait(ending)
    server.shutdown()
    thread.join()
    if asked_by == signal.SIGINT:
        raise typer.Exit(INTERRUPTED)


class Cluster:
    """Asked whenever Prometheus asks. A cluster that does not answer is a figure, too."""

    def __init__(self, at: Sequence[str], *, must_answer: bool) -> None:
        self._at = at
        self._must_answer = must_answer

    def describe(self) -> list[Metric]:
        return []  # so that registering asks nobody

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import GaugeMetricFamily

        from utuple.admin.metrics import families_of
        from utuple.admin.snapshot import snapshot_of

        is_well = False
        try:
            snapshot = asyncio.run(snapshot_of(self._at))
        except UTupleError:
            if self._must_answer:
                raise
        else:
            is_well = snapshot.is_well
            yield from families_of(snapshot)
        yield GaugeMetricFamily(
            "utuple_well", "1 if everything serves, an sCA server too.", value=float(is_well)
        )
