"""Kubernetes through the official client, against a recorded API server."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from load_monitor.elastic.controller import Placing
from load_monitor.elastic.seen import Machine, Provisioned
from load_monitor.provisioning.contract import ProvisioningFailed
from load_monitor.provisioning.stateful_set import (
    LEASE_S,
    StatefulSetProvisioner,
    quantity,
)

client = pytest.importorskip("kubernetes.client", reason="pip install '.[kubernetes]'")

from tests.unit.load_monitor.provisioning.api_server import (  # noqa: E402  it needs the client, too
    APPS,
    CLAIMS,
    LEASES,
    PODS,
    POOL,
    ApiServer,
    api_server,
    pod,
    violations,
)


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with api_server() as running:
        yield running


def provisioner(
    server: ApiServer, pool: str = "servers", *, namespace: str = "space", name: str = "server"
) -> StatefulSetProvisioner:
    configuration = client.Configuration(host=server.url)
    configuration.retries = False
    return StatefulSetProvisioner(client.ApiClient(configuration), namespace, name, pool, 5.0)


def spec(server: ApiServer) -> tuple[int, int]:
    told = server.objects[APPS]["spec"]
    return told["ordinals"]["start"], told["replicas"]


async def test_the_pods_of_the_set_are_the_servers(server: ApiServer) -> None:
    found = await provisioner(server).inventory()
    assert found.servers == (
        Provisioned("server-1", "ip-10-0-0-1"),
        Provisioned("server-2", "ip-10-0-0-1"),
    )
    assert (found.machines, found.next_server) == ((), 3)


async def test_a_server_that_is_asked_for_twice_is_one_replica_more(server: ApiServer) -> None:
    kubernetes = provisioner(server)
    for _ in range(2):
        await kubernetes.create_server("server-3", "")
    assert spec(server) == (1, 3)
    await kubernetes.create_server("server-1", "")
    assert spec(server) == (1, 3), "one that is there takes nobody away"
    assert (await kubernetes.inventory()).servers[-1] == Provisioned("server-3", waits=True)
    await kubernetes.create_server("server-5", "")
    assert spec(server) == (1, 5), "by its name, not one more"
    server.objects[f"{PODS}/server-5"] = pod("server-5", None)
    assert (await kubernetes.inventory()).servers[-1].waits


async def test_a_set_that_says_neither_where_it_begins_nor_how_many_it_has_begins_at_0_and_has_none(
    server: ApiServer,
) -> None:
    kubernetes = provisioner(server)
    server.objects[APPS]["spec"]["ordinals"] = {}
    assert (await kubernetes.inventory()).next_server == 2
    del server.objects[APPS]["spec"]["ordinals"], server.objects[APPS]["spec"]["replicas"]
    found = await kubernetes.inventory()
    assert (found.servers, found.next_server) == ((), 0)


async def test_the_first_leaves_and_no_name_is_used_again(server: ApiServer) -> None:
    kubernetes = provisioner(server)
    for _ in range(2):
        assert await kubernetes.delete_server("server-1")
    assert spec(server) == (2, 1)
    assert (await kubernetes.inventory()).next_server == 3
    with pytest.raises(ProvisioningFailed, match="neither the first"):
        await kubernetes.delete_server("server-2")
    assert spec(server) == (2, 1), "the last one stays"


async def test_one_in_the_middle_that_runs_is_never_taken_away(server: ApiServer) -> None:
    with pytest.raises(ProvisioningFailed, match="neither the first"):
        await provisioner(server).delete_server("server-2")
    assert spec(server) == (1, 2)


async def test_one_in_the_middle_that_waits_for_a_place_takes_nobody_else_away(
    server: ApiServer,
) -> None:
    kubernetes = provisioner(server)
    await kubernetes.create_server("server-3", "")
    server.objects[f"{PODS}/server-2"] = pod("server-2", None)
    with pytest.raises(ProvisioningFailed, match="neither the first"):
        await kubernetes.delete_server("server-2")
    assert spec(server) == (1, 3)


async def test_one_that_waits_for_a_place_is_given_up(server: ApiServer) -> None:
    kubernetes = provisioner(server)
    for its in (pod("server-3", None), None):
        await kubernetes.create_server("server-3", "")
        server.objects.pop(f"{PODS}/server-3", None)
        if its is not None:  # else Kubernetes has not made it yet
            server.objects[f"{PODS}/server-3"] = its
        await kubernetes.delete_server("server-3")
        assert spec(server) == (1, 2)


async def test_a_machine_is_a_claim_of_the_pool_s_kind_and_just_as_large(server: ApiServer) -> None:
    kubernetes = provisioner(server)
    for _ in range(2):
        await kubernetes.create_machine(Machine("machine-2", 2, 3840, ready=False))
    (claim,) = [told for path, told in server.objects.items() if path.startswith(CLAIMS)]
    assert claim["metadata"]["name"] == "space-server-machine-2"
    labels = claim["metadata"]["labels"]
    assert (labels["karpenter.sh/nodepool"], labels["for"]) == ("servers", "utuple")
    assert claim["spec"]["resources"]["requests"] == {"cpu": "2", "memory": "3840Mi"}
    assert claim["spec"]["requirements"][0]["key"] == "kubernetes.io/arch"
    assert (await kubernetes.inventory()).machines == (Machine("machine-2", 2, 3840, ready=False),)
    condition = {"type": "Ready", "status": "False"}
    launched = {"type": "Launched", "status": "True"}
    claim["status"] = {"nodeName": "ip-10-0-0-9", "conditions": [launched, condition]}
    assert not (await kubernetes.inventory()).machines[0].ready
    condition["status"] = "True"
    server.objects[f"{PODS}/server-2"] = pod("server-2", "ip-10-0-0-9")
    found = await kubernetes.inventory()
    assert found.machines == (Machine("machine-2", 2, 3840),)
    assert found.servers[1].machine == "machine-2"
    for _ in range(2):
        await kubernetes.delete_machine("machine-2")
    assert (await kubernetes.inventory()).machines == ()


@pytest.mark.parametrize(("asked", "cpu"), [("500m", 1), ("1900m", 1), ("2", 2)])
async def test_of_a_machine_whole_processors_count_and_one_at_least(
    server: ApiServer, asked: str, cpu: int
) -> None:
    kubernetes = provisioner(server)
    await kubernetes.create_machine(Machine("machine-2", 2, 3840, ready=False))
    claim = server.objects[f"{CLAIMS}/space-server-machine-2"]
    claim["spec"]["resources"]["requests"]["cpu"] = asked
    assert (await kubernetes.inventory()).machines[0].cpu == cpu


async def test_what_belongs_to_others_of_the_cluster_is_not_seen(server: ApiServer) -> None:
    kubernetes = provisioner(server)
    await kubernetes.create_machine(Machine("machine-2", 2, 3840, ready=False))
    await provisioner(server, namespace="other").create_machine(Machine("machine-7", 1, 1024))
    server.objects[f"{PODS}/server-2"]["metadata"]["labels"] = {"app": "of somebody else"}
    found = await kubernetes.inventory()
    assert [machine.name for machine in found.machines] == ["machine-2"]
    assert [server.waits for server in found.servers] == [False, True]


async def test_without_a_pool_no_machine_is_made(server: ApiServer) -> None:
    del server.objects[POOL]  # this cluster has never heard of claims
    kubernetes = provisioner(server, pool="")
    assert not kubernetes.placing.makes_machines
    assert (await kubernetes.inventory()).machines == ()


def test_places_are_kubernetes_own_and_names_are_those_of_the_set(server: ApiServer) -> None:
    own = Placing(places_itself=True, first_leaves=True, makes_machines=True, prefix="node")
    assert provisioner(server, name="node").placing == own


async def test_whoever_holds_the_lease_acts_until_it_ends(server: ApiServer) -> None:
    kubernetes = provisioner(server)
    assert [await kubernetes.hold(name) for name in ("a", "b", "a")] == [True, False, True]
    lease = server.objects[f"{LEASES}/server-elastic"]
    ended = datetime.now(UTC) - timedelta(seconds=LEASE_S + 1)
    lease["spec"]["renewTime"] = ended.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    assert [await kubernetes.hold(name) for name in ("b", "a")] == [True, False]


@pytest.mark.parametrize(
    ("left", "is_free"),
    [
        ({"holderIdentity": ""}, True),
        ({"holderIdentity": None}, True),
        ({"renewTime": None}, True),
        ({"leaseDurationSeconds": 5}, True),
        ({"leaseDurationSeconds": 15}, False),
        ({"leaseDurationSeconds": None}, False),
    ],
)
async def test_a_lease_of_ten_seconds_ago_is_free_if_it_says_so(
    server: ApiServer, left: dict[str, Any], is_free: bool
) -> None:
    """Others may have written it: a controller that gave it up, or one with another patience."""
    kubernetes = provisioner(server)
    assert await kubernetes.hold("a")
    told = server.objects[f"{LEASES}/server-elastic"]["spec"]
    assert told["leaseDurationSeconds"] == LEASE_S
    before = datetime.now(UTC) - timedelta(seconds=10)
    told |= {"renewTime": before.strftime("%Y-%m-%dT%H:%M:%S.%fZ"), **left}
    assert await kubernetes.hold("b") is is_free


async def test_who_is_second_with_the_lease_does_not_act(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubernetes = provisioner(server)
    server.refuses = 409
    assert not await kubernetes.hold("a")


async def test_of_two_writers_one_looks_again(server: ApiServer) -> None:
    kubernetes = provisioner(server)
    read = kubernetes._read_set

    def overtaken() -> Any:
        found = read()
        server.stamp(server.objects[APPS])
        return found

    kubernetes._read_set = overtaken  # type: ignore[method-assign]
    with pytest.raises(ProvisioningFailed, match="409"):
        await kubernetes.create_server("server-3", "")
    assert spec(server) == (1, 2)


async def test_what_goes_wrong_is_told(server: ApiServer) -> None:
    kubernetes = provisioner(server)
    server.refuses = 403
    refused: list[Callable[[], Awaitable[object]]] = [
        lambda: kubernetes.create_server("server-3", ""),
        lambda: kubernetes.create_machine(Machine("machine-2", 2, 3840)),
        lambda: kubernetes.hold("a"),
    ]
    for ask in refused:
        with pytest.raises(ProvisioningFailed, match="Kubernetes says 403"):
            await ask()
    server.refuses, server.hides = 0, 403
    with pytest.raises(ProvisioningFailed, match="Kubernetes says 403"):
        await kubernetes.hold("a")
    server.hides = 0
    del server.objects[APPS]
    with pytest.raises(ProvisioningFailed, match="404"):
        await kubernetes.inventory()
    server.objects[APPS] = {"kind": "StatefulSet", "metadata": {}, "spec": {}}
    with pytest.raises(ProvisioningFailed, match="makes no sense"):
        await kubernetes.inventory()


async def test_a_server_that_is_away_is_said_so() -> None:
    with api_server() as server:
        kubernetes = provisioner(server)
    with pytest.raises(ProvisioningFailed, match="does not answer"):
        await kubernetes.inventory()


async def test_a_server_that_takes_calls_and_says_nothing_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        configuration = client.Configuration(host=f"http://127.0.0.1:{silent.getsockname()[1]}")
        configuration.retries = False
        kubernetes = StatefulSetProvisioner(
            client.ApiClient(configuration), "space", "server", "", limit_s=0.2
        )
        async with asyncio.timeout(60.0):
            with pytest.raises(ProvisioningFailed, match="does not answer"):
                await kubernetes.inventory()


def test_the_schemas_notice_what_does_not_belong() -> None:
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"holder": "a"}}
    assert "holder" in violations(lease)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("500m", 0.5),
        ("2", 2),
        ("3k", 3e3),
        ("3M", 3e6),
        ("3G", 3e9),
        ("3T", 3e12),
        ("2Ki", 2048),
        ("3840Mi", 3840 * 2**20),
        ("1Gi", 2**30),
        ("1Ti", 2**40),
    ],
)
def test_quantities_of_kubernetes_are_read(text: str, number: float) -> None:
    assert quantity(text) == number


@pytest.mark.parametrize("text", ["2 apples", "2kM", "2iG", "", "Mi"])
def test_what_is_no_quantity_is_said_so(text: str) -> None:
    with pytest.raises(ValueError):
        quantity(text)
