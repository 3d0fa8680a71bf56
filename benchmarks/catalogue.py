"""Which benchmarks there are. Light: `utuple bench --help` reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.benchmark import Benchmark, Options


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    what: str
    make: Callable[[Options], Benchmark]
    runs: int = 3
    """Unless told otherwise: enough for a median."""


def _help(options: Options) -> Benchmark:
    from benchmarks.help.benchmark import Help

    return Help(options)


def _partition(options: Options) -> Benchmark:
    from benchmarks.partition.benchmark import Partition

    return Partition(options)


def _ingest(options: Options) -> Benchmark:
    from benchmarks.ingest.benchmark import Ingest

    return Ingest(options)


def _hotkey(options: Options) -> Benchmark:
    from benchmarks.hotkey.benchmark import HotKey

    return HotKey(options)


def _command(options: Options) -> Benchmark:
    from benchmarks.command.benchmark import Command

    return Command(options)


def _shares(options: Options) -> Benchmark:
    from benchmarks.shares.benchmark import Shares

    return Shares(options)


def _lookup(options: Options) -> Benchmark:
    from benchmarks.lookup.benchmark import Lookup

    return Lookup(options)


def _gossip(options: Options) -> Benchmark:
    from benchmarks.gossip.benchmark import Gossip

    return Gossip(options)


def _match(options: Options) -> Benchmark:
    from benchmarks.match.benchmark import Match

    return Match(options)


def _read(options: Options) -> Benchmark:
    from benchmarks.read.benchmark import Read

    return Read(options)


def _overload(options: Options) -> Benchmark:
    from benchmarks.overload.benchmark import Overload

    return Overload(options)


def _plan(options: Options) -> Benchmark:
    from benchmarks.plan.benchmark import Plan

    return Plan(options)


def _subscribe(options: Options) -> Benchmark:
    from benchmarks.subscribe.benchmark import Subscribe

    return Subscribe(options)


def _restart(options: Options) -> Benchmark:
    from benchmarks.restart.benchmark import Restart

    return Restart(options)


def _single(options: Options) -> Benchmark:
    from benchmarks.single.benchmark import Single

    return Single(options)


def _latency(options: Options) -> Benchmark:
    from benchmarks.latency.benchmark import Latency

    return Latency(options)


def _dropping(options: Options) -> Benchmark:
    from benchmarks.dropping.benchmark import Dropping

    return Dropping(options)


def _slow_reader(options: Options) -> Benchmark:
    from benchmarks.slow_reader.benchmark import SlowReader

    return SlowReader(options)


def _idle_readers(options: Options) -> Benchmark:
    from benchmarks.slow_reader.benchmark import IdleReaders

    return IdleReaders(options)


def _fleeting(options: Options) -> Benchmark:
    from benchmarks.fleeting.benchmark import Fleeting

    return Fleeting(options)


def _client(options: Options) -> Benchmark:
    from benchmarks.client.benchmark import ClientCost

    return ClientCost(options)


def _growth(options: Options) -> Benchmark:
    from benchmarks.growth.benchmark import Growth

    return Growth(options)


def _storage(options: Options) -> Benchmark:
    from benchmarks.storage.benchmark import Storage

    return Storage(options)


def _hostile(options: Options) -> Benchmark:
    from benchmarks.hostile.benchmark import Hostile

    return Hostile(options)


def _fair(options: Options) -> Benchmark:
    from benchmarks.fair.benchmark import Fair

    return Fair(options)


def _secure(options: Options) -> Benchmark:
    from benchmarks.secure.benchmark import Secure

    return Secure(options)


def _mqtt(options: Options) -> Benchmark:
    from benchmarks.mqtt.benchmark import Mqtt

    return Mqtt(options)


def _http(options: Options) -> Benchmark:
    from benchmarks.http.benchmark import Http

    return Http(options)


def _elastic(options: Options) -> Benchmark:
    from benchmarks.elastic.benchmark import Elastic

    return Elastic(options)


ENTRIES = (
    Entry("match", "EAs through the server's template index, on one core.", _match, runs=5),
    Entry("lookup", "Keys answered by one assignment manager.", _lookup, runs=5),
    Entry(
        "gossip", "Fifty assignment managers: what they say while nothing happens.", _gossip, runs=1
    ),
    Entry("command", "Simple commands to a million devices.", _command, runs=5),
    Entry("shares", "Commands while sCA servers join, leave and are killed.", _shares, runs=1),
    Entry(
        "ingest",
        "Application A, from emit_many to the acknowledged delivery, beside bare COPY.",
        _ingest,
        5,
    ),
    Entry("subscribe", "EFs come and go at a server with a million, while EAs flow.", _subscribe),
    Entry(
        "restart", "Kill -9 of a server with 1 M EFs and 10 M EAs: serving again.", _restart, runs=1
    ),
    Entry("single", "64 coroutines that await `emit`, beside 64 that INSERT.", _single, runs=5),
    Entry("latency", "From emit to a live watcher at 1,000 EAs/s, beside mosquitto.", _latency, 5),
    Entry(
        "fleeting",
        "EAs of lifetime 0: to a live watcher, beside mosquitto and NATS core.",
        _fleeting,
    ),
    Entry("dropping", "Readers that come and go, beside the ON/OFF queue's model.", _dropping, 1),
    Entry(
        "slow-reader",
        "One reader stopped beside a hundred: writer, others, memory.",
        _slow_reader,
        5,
    ),
    Entry("idle-readers", "Ten thousand readers on one server that get nothing.", _idle_readers, 1),
    Entry("elastic", "Servers and machines follow the load; nothing is missed.", _elastic, runs=1),
    Entry("mqtt", "One MQTT door beside mosquitto: publishes, delays, idle connections.", _mqtt),
    Entry("http", "One HTTP door beside the SDK: NDJSON, single POSTs, live events.", _http, 1),
    Entry("secure", "The same work with and without TLS and grants, in turns.", _secure),
    Entry("client", "What the SDK costs beside building the messages alone.", _client, runs=5),
    Entry("growth", "What an EA costs as stored EAs and EFs become many.", _growth, runs=3),
    Entry("storage", "Bytes an EA of application A takes, with all indexes.", _storage, runs=5),
    Entry("help", "One hot key with many EFs gets a helper under load: what users notice.", _help),
    Entry("partition", "A hot key with many EFs: each member keeps its share.", _partition, runs=1),
    Entry(
        "hotkey", "All load on one key: throughput by number of members, and by policy.", _hotkey
    ),
    Entry("read", "Stored searches among ten million EAs of one key.", _read, runs=5),
    Entry("overload", "Three times what a server can carry, for a minute.", _overload, runs=1),
    Entry(
        "hostile", "Strangers at a server's port: its memory, and who else notices.", _hostile, 1
    ),
    Entry("fair", "One identity far beyond its share: what the others notice.", _fair, 1),
    Entry("plan", "Scenarios × days on Spark, against a plain Python loop.", _plan, runs=1),
)
