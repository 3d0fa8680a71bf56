"""A Kubernetes API server that answers as a recorded one did, over HTTP: objects by path, versions, 404 and 409.

What is written to it is read by the official client's own types, which are generated from the published schemas: a key they do not
know, or a type that is wrong, is answered 422, as a real one with strict validation does.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

APPS = "/apis/apps/v1/namespaces/space/statefulsets/server"
PODS = "/api/v1/namespaces/space/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/space/leases"
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
POOL = "/apis/karpenter.sh/v1/nodepools/servers"


def recorded() -> dict[str, dict[str, Any]]:
    """Two servers on one machine."""
    labels = {"app": "utuple-server"}
    stateful_set = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {
            "name": "server",
            "namespace": "space",
            "resourceVersion": "41",
            "generation": 3,
        },
        "spec": {
            "replicas": 2,
            "ordinals": {"start": 1},
            "selector": {"matchLabels": labels},
            "serviceName": "servers",
            "podManagementPolicy": "Parallel",
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "server", "image": "utuple:1"}]},
            },
        },
        "status": {"replicas": 2, "readyReplicas": 2, "currentReplicas": 2},
    }
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "servers", "resourceVersion": "7"},
        "spec": {
            "template": {
                "metadata": {"labels": {"for": "utuple"}},
                "spec": {
                    "nodeClassRef": {
                        "group": "karpenter.k8s.aws",
                        "kind": "EC2NodeClass",
                        "name": "default",
                    },
                    "requirements": [
                        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}
                    ],
                },
            }
        },
    }
    return {
        APPS: stateful_set,
        POOL: pool,
        f"{PODS}/server-1": pod("server-1", "ip-10-0-0-1"),
        f"{PODS}/server-2": pod("server-2", "ip-10-0-0-1"),
    }


def pod(name: str, place: str | None) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "server", "image": "utuple:1"}]}
    if place is not None:
        spec["nodeName"] = place
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "space", "labels": {"app": "utuple-server"}},
        "spec": spec,
        "status": {"phase": "Running" if place else "Pending"},
    }


class ApiServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        self.objects = recorded()
        self.version = 100
        self.requests: list[str] = []
        self.refuses = 0
        """The status every write is answered with, if it is not 0."""
        self.hides = 0
        """The status every look is answered with, if it is not 0."""
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def stamp(self, told: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        told.setdefault("metadata", {})["resourceVersion"] = str(self.version)
        return told


class _Handler(BaseHTTPRequestHandler):
    server: ApiServer

    def log_message(self, format: str, *args: object) -> None:
        return

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if self.server.hides:
            return self._answer(self.server.hides, {})
        if path in self.server.objects:
            return self._answer(200, self.server.objects[path])
        if path == PODS or (path == CLAIMS and POOL in self.server.objects):
            listed = [o for at, o in self.server.objects.items() if at.startswith(path + "/")]
            items = [one for one in listed if _has_labels(one, self.path)]
            return self._answer(
                200, {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}
            )
        return self._answer(404, {})

    def do_POST(self) -> None:
        told = self._read()
        path = f"{self.path.partition('?')[0]}/{told['metadata']['name']}"
        if path in self.server.objects:
            return self._answer(409, {})
        return self._write(path, told)

    def do_PUT(self) -> None:
        self._replace(self._read())

    def do_PATCH(self) -> None:
        told = self._read()
        known = json.loads(json.dumps(self.server.objects[self.path.partition("?")[0]]))
        sent = told.get("metadata", {}).get("resourceVersion")
        merged = _merged(known, told)
        merged["metadata"]["resourceVersion"] = sent or known["metadata"]["resourceVersion"]
        self._replace(merged)

    def do_DELETE(self) -> None:
        gone = self.server.objects.pop(self.path.partition("?")[0], None)
        self._answer(200 if gone is not None else 404, {})

    def _replace(self, told: dict[str, Any]) -> None:
        path = self.path.partition("?")[0]
        sent = told["metadata"].get("resourceVersion")
        if sent != self.server.objects[path]["metadata"]["resourceVersion"]:
            return self._answer(409, {})
        return self._write(path, told)

    def _write(self, path: str, told: dict[str, Any]) -> None:
        if self.server.refuses:
            return self._answer(self.server.refuses, {})
        if wrong := violations(told):
            return self._answer(422, {"message": wrong})
        self.server.objects[path] = self.server.stamp(told)
        return self._answer(200, told)

    def _read(self) -> dict[str, Any]:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append(f"{self.command} {self.path.partition('?')[0]}")
        told: dict[str, Any] = json.loads(body)
        return told

    def _answer(self, status: int, told: dict[str, Any]) -> None:
        body = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _has_labels(told: dict[str, Any], url: str) -> bool:
    """Those that its `labelSelector` asks for."""
    asked = parse_qs(urlsplit(url).query).get("labelSelector", [""])[0]
    labels = told["metadata"].get("labels", {})
    pairs = (pair.partition("=") for pair in asked.split(",") if pair)
    return all(labels.get(key) == value for key, _, value in pairs)


def _merged(known: Any, told: Any) -> Any:
    if not (isinstance(known, dict) and isinstance(told, dict)):
        return told
    return {**known, **{key: _merged(known.get(key), value) for key, value in told.items()}}


def violations(told: dict[str, Any]) -> str:
    """By the types of the official client; a NodeClaim's by what its published definition requires."""
    from kubernetes import client

    kinds = {"StatefulSet": client.V1StatefulSet, "Lease": client.V1Lease, "Pod": client.V1Pod}
    if told["kind"] in kinds:
        api = client.ApiClient()
        read = kinds[told["kind"]].from_dict(told)
        back = api.sanitize_for_serialization(read)
        lost = sorted(_paths(told) - _paths(back))
        return f"unknown: {lost}" if lost else ""
    if told["kind"] == "NodeClaim":
        spec = told["spec"]
        allowed = {
            "expireAfter",
            "nodeClassRef",
            "requirements",
            "resources",
            "startupTaints",
            "taints",
        }
        if not {"nodeClassRef", "requirements"} <= spec.keys() <= allowed:
            return f"spec has {sorted(spec)}"
        if set(spec["nodeClassRef"]) != {"group", "kind", "name"}:
            return "nodeClassRef"
        if any(not isinstance(value, str) for value in spec["resources"]["requests"].values()):
            return "requests"
        return ""
    return f"unknown kind {told['kind']}"


def _paths(told: Any, at: str = "") -> set[str]:
    if isinstance(told, dict):
        return {at}.union(*(_paths(value, f"{at}.{key}") for key, value in told.items()))
    if isinstance(told, list):
        return {at}.union(*(_paths(value, f"{at}[]") for value in told))
    return {at}


@contextmanager
def api_server() -> Iterator[ApiServer]:
    server = ApiServer()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
