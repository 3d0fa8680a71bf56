"""Kubernetes: servers are the pods of a StatefulSet; machines are NodeClaims of Karpenter, where the cluster has it.

A server's name is used once, and a StatefulSet would use the highest ordinal again. So servers come at the upper end (`replicas`) and leave at
the lower one (`ordinals.start`). Places are found by Kubernetes' own scheduler. Of several controllers the one that holds the Lease acts.
Whatever is written carries the version it was read at: of two writers one is refused, and looks again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from load_monitor.elastic.controller import Placing
from load_monitor.elastic.seen import Inventory, Machine, Provisioned, number_of
from load_monitor.provisioning.contract import ProvisioningFailed
from utuple.errors import InvalidInput
from utuple.runtime.clock import now_us

LEASE_S = 30
"""A controller that has not renewed its lease for so long is gone."""
LABEL = "utuple/elastic"
_KARPENTER = {"group": "karpenter.sh", "version": "v1"}
_CONFLICT, _NOT_FOUND = 409, 404
_MICROSECONDS = 1e6
_MI = 1024 * 1024
_UNITS = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "m": 1e-3, "": 1}
_UNITS |= {"Ki": 1024, "Mi": _MI, "Gi": 1024 * _MI, "Ti": _MI * _MI}

T = TypeVar("T")


def api_client() -> Any:
    """As the pod it runs in, or as the user's kubeconfig has it."""
    try:
        from kubernetes import client, config
    except ImportError:
        rule = "needs the extra: pip install 'utuple[kubernetes]'"
        raise InvalidInput("provisioner.kind", "kubernetes", rule) from None
    try:
        config.load_incluster_config()
    except config.ConfigException:
        try:
            config.load_kube_config()
        except config.ConfigException as error:
            rule = f"finds no cluster: {error}"
            raise InvalidInput("provisioner.kind", "kubernetes", rule) from None
    return client.ApiClient()


class StatefulSetProvisioner:
    def __init__(
        self, api: Any, namespace: str, stateful_set: str, pool: str, limit_s: float
    ) -> None:
        from kubernetes import client

        self._apps = client.AppsV1Api(api)
        self._core = client.CoreV1Api(api)
        self._leases = client.CoordinationV1Api(api)
        self._custom = client.CustomObjectsApi(api)
        self._client = client
        self._namespace, self._set, self._pool = namespace, stateful_set, pool
        self._limit = {"_request_timeout": limit_s}

    @property
    def placing(self) -> Placing:
        return Placing(
            places_itself=True,
            first_leaves=True,
            makes_machines=bool(self._pool),
            prefix=self._set,
        )

    async def close(self) -> None:
        return

    # ------------------------------------------------------------------------------------------ one acts

    async def hold(self, holder: str) -> bool:
        return await self._do(lambda: self._hold(holder))

    def _hold(self, holder: str) -> bool:
        name, now = f"{self._set}-elastic", datetime.fromtimestamp(now_us() / _MICROSECONDS, UTC)
        body: dict[str, Any] = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": self._namespace},
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": LEASE_S,
                "renewTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            },
        }
        read = self._leases.read_namespaced_lease
        lease = self._found(lambda: read(name, self._namespace, **self._limit))
        try:
            if lease is None:
                self._leases.create_namespaced_lease(self._namespace, body, **self._limit)
                return True
            if not _is_free(lease.spec, holder, now):
                return False
            body["metadata"]["resourceVersion"] = lease.metadata.resource_version
            self._leases.replace_namespaced_lease(name, self._namespace, body, **self._limit)
        except self._client.ApiException as error:
            if error.status == _CONFLICT:
                return False  # somebody else was quicker
            raise
        return True

    # -------------------------------------------------------------------------------------- what is there

    async def inventory(self) -> Inventory:
        return await self._do(self._inventory)

    def _inventory(self) -> Inventory:
        found = self._read_set()
        first, count = _ordinals(found)
        selector = ",".join(
            f"{key}={value}" for key, value in found.spec.selector.match_labels.items()
        )
        listed = self._core.list_namespaced_pod(
            self._namespace, label_selector=selector, **self._limit
        )
        pods = {pod.metadata.name: pod for pod in listed.items}
        claims = self._claims()
        machines = {claim.get("status", {}).get("nodeName", ""): claim for claim in claims}
        return Inventory(
            tuple(map(self._machine, claims)),
            tuple(
                self._server(f"{self._set}-{ordinal}", pods, machines)
                for ordinal in range(first, first + count)
            ),
            first + count,
        )

    def _server(
        self, name: str, pods: Mapping[str, Any], machines: Mapping[str, dict[str, Any]]
    ) -> Provisioned:
        pod = pods.get(name)
        place = pod.spec.node_name if pod is not None else None
        if not place:
            return Provisioned(name, waits=True)
        claim = machines.get(place)
        return Provisioned(name, self._short(claim) if claim is not None else place)

    def _claims(self) -> list[dict[str, Any]]:
        if not self._pool:
            return []
        selector = f"{LABEL}={self._label}"
        listed = self._custom.list_cluster_custom_object(
            **_KARPENTER, plural="nodeclaims", label_selector=selector, **self._limit
        )
        return list(listed["items"])

    def _machine(self, claim: dict[str, Any]) -> Machine:
        asked = claim["spec"].get("resources", {}).get("requests", {})
        conditions = claim.get("status", {}).get("conditions", [])
        return Machine(
            self._short(claim),
            max(1, int(quantity(str(asked.get("cpu", "1"))))),
            quantity(str(asked.get("memory", "1Mi"))) / _MI,
            any(one["type"] == "Ready" and one["status"] == "True" for one in conditions),
        )

    # ------------------------------------------------------------------------------------------- machines

    async def create_machine(self, machine: Machine) -> None:
        await self._do(lambda: self._create_machine(machine))

    def _create_machine(self, machine: Machine) -> None:
        """Of the pool's kind, and just as large as it is asked for."""
        pool = self._custom.get_cluster_custom_object(
            **_KARPENTER, plural="nodepools", name=self._pool, **self._limit
        )
        template = pool["spec"]["template"]
        requests = {"cpu": str(machine.cpu), "memory": f"{machine.memory_mb:.0f}Mi"}
        body = {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {
                "name": self._long(machine.name),
                "labels": {
                    **template.get("metadata", {}).get("labels", {}),
                    "karpenter.sh/nodepool": self._pool,
                    LABEL: self._label,
                },
            },
            "spec": {
                "nodeClassRef": template["spec"]["nodeClassRef"],
                "requirements": template["spec"].get("requirements", []),
                "resources": {"requests": requests},
            },
        }
        create = self._custom.create_cluster_custom_object
        made = {"plural": "nodeclaims", "body": body, **_KARPENTER, **self._limit}
        self._unless(_CONFLICT, lambda: create(**made))

    async def delete_machine(self, name: str) -> None:
        delete = self._custom.delete_cluster_custom_object
        named = {"plural": "nodeclaims", "name": self._long(name), **_KARPENTER, **self._limit}
        await self._do(lambda: self._unless(_NOT_FOUND, lambda: delete(**named)))

    @property
    def _label(self) -> str:
        return f"{self._namespace}.{self._set}"

    def _long(self, machine: str) -> str:
        """Claims belong to the whole cluster, where others may have a machine-2, too."""
        return f"{self._namespace}-{self._set}-{machine}"

    def _short(self, claim: Mapping[str, Any]) -> str:
        return str(claim["metadata"]["name"]).removeprefix(self._long(""))

    # -------------------------------------------------------------------------------------------- servers

    async def create_server(self, name: str, machine: str) -> None:
        await self._do(lambda: self._create_server(number_of(name)))

    def _create_server(self, ordinal: int) -> None:
        found = self._read_set()
        first, count = _ordinals(found)
        if ordinal >= first + count:
            self._patch(found, first, ordinal - first + 1)

    async def delete_server(self, name: str) -> bool:
        await self._do(lambda: self._delete_server(name))
        return True

    def _delete_server(self, name: str) -> None:
        found, ordinal = self._read_set(), number_of(name)
        first, count = _ordinals(found)
        if not first <= ordinal < first + count:
            return
        if ordinal == first + count - 1 and self._waits(name):
            self._patch(found, first, count - 1)  # it never ran: its name is as good as new
        elif ordinal == first and count > 1:
            self._patch(found, first + 1, count - 1)
        else:
            raise ProvisioningFailed(
                f"{name} is neither the first of {self._set}, nor waits for a place"
            )

    def _waits(self, name: str) -> bool:
        read = self._core.read_namespaced_pod
        pod = self._found(lambda: read(name, self._namespace, **self._limit))
        return pod is None or not pod.spec.node_name

    def _read_set(self) -> Any:
        return self._apps.read_namespaced_stateful_set(self._set, self._namespace, **self._limit)

    def _patch(self, found: Any, first: int, count: int) -> None:
        body = {
            "metadata": {"resourceVersion": found.metadata.resource_version},
            "spec": {"replicas": count, "ordinals": {"start": first}},
        }
        self._apps.patch_namespaced_stateful_set(self._set, self._namespace, body, **self._limit)

    # --------------------------------------------------------------------------------------------- calling

    async def _do(self, work: Callable[[], T]) -> T:
        """The official client blocks."""
        from urllib3.exceptions import HTTPError

        try:
            return await asyncio.to_thread(work)
        except self._client.ApiException as error:
            raise ProvisioningFailed(f"Kubernetes says {error.status} {error.reason}") from None
        except (OSError, HTTPError) as error:
            raise ProvisioningFailed(f"Kubernetes does not answer: {error}") from None
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            said = f"{type(error).__name__}: {error}"
            raise ProvisioningFailed(f"Kubernetes said what makes no sense ({said})") from None

    def _found(self, work: Callable[[], T]) -> T | None:
        try:
            return work()
        except self._client.ApiException as error:
            if error.status == _NOT_FOUND:
                return None
            raise

    def _unless(self, status: int, work: Callable[[], object]) -> None:
        """What was done already is done."""
        try:
            work()
        except self._client.ApiException as error:
            if error.status != status:
                raise


def _is_free(spec: Any, holder: str, now: datetime) -> bool:
    if spec.holder_identity in (holder, "", None) or spec.renew_time is None:
        return True
    ends = spec.renew_time + timedelta(seconds=spec.lease_duration_seconds or LEASE_S)
    return bool(now >= ends)


def _ordinals(found: Any) -> tuple[int, int]:
    """The first, and how many."""
    start = found.spec.ordinals.start if found.spec.ordinals is not None else 0
    return start or 0, found.spec.replicas or 0


def quantity(text: str) -> float:
    """Kubernetes' numbers: 500m, 1024Mi, 2Gi, 4."""
    number = text.rstrip("KMGTikm")
    try:
        return float(number) * _UNITS[text[len(number) :]]
    except KeyError:
        raise ValueError(f"{text!r} is no quantity") from None
