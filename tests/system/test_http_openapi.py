"""The OpenAPI document against a real door and cluster: no answer that it does not describe, and none of them a fault."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.system.cluster import Cluster, running_cluster
from tests.system.http_door import HttpDoor, door_before
from utuple.doors.http.app import ROUTES
from utuple.doors.http.openapi import document

pytestmark = pytest.mark.slow

CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)
EXAMPLES = 40
OPERATIONS = sorted(
    (method.upper(), path) for path, methods in document()["paths"].items() for method in methods
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster("--servers", "1", "--managers", "1", "--no-monitor") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def door(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpDoor]:
    with door_before(cluster, tmp_path_factory.mktemp("door"), "--plans", "0") as door:
        yield door


def test_every_route_is_described_and_every_description_has_its_route() -> None:
    routes = {(method, path) for method, path, _ in ROUTES if path != "/openapi.json"}
    assert set(OPERATIONS) == routes


@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=lambda part: part)
def test_no_answer_is_a_fault_or_undocumented(door: HttpDoor, method: str, path: str) -> None:
    schema: Any = schemathesis.openapi.from_dict(document())
    operation = schema[path][method]
    is_stream = path.endswith(("/live", "/commands")) and method == "GET"

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy())
    def ask(case: Any) -> None:
        if is_stream:  # it would last for ever
            case.query = {**(case.query or {}), "timeout": "0.05"}
        answer = case.call(base_url=door.url, timeout=60)
        case.validate_response(answer, checks=CHECKS)

    ask()
