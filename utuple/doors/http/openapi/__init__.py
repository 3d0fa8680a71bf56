"""The OpenAPI 3.1 document: what can be asked, with examples. `paths` has the operations, `schemas` what they carry."""

from __future__ import annotations

from functools import cache
from typing import Any

from utuple.doors.http.openapi.paths import PATHS
from utuple.doors.http.openapi.schemas import SCHEMAS

_TEXT = """The verbs of uTupleSpace for any language. Sensor programs POST events; applications read them, watch them as
server-sent events, and send commands; actuator programs get theirs as server-sent events. Conditions are written as on the
command line. What is wrong is refused with the field, the value and the rule, and nothing of it is kept."""

_SCHEMES: dict[str, Any] = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "Of a secured cluster: `utuple token`.",
    },
    "certificate": {"type": "mutualTLS", "description": "The same NAME.creds as the SDK takes."},
}


@cache
def document() -> dict[str, Any]:
    from importlib.metadata import version

    return {
        "openapi": "3.1.0",
        "info": {
            "title": "uTupleSpace",
            "version": version("utuple"),
            "description": _TEXT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [
            {"name": "events", "description": "Register them, read stored ones, watch."},
            {"name": "commands", "description": "To one device, or to every device in a place."},
            {"name": "operators", "description": "Look at the cluster, and change it."},
            {"name": "planning", "description": "Simulations of `utuple plan`."},
            {"name": "programs", "description": "For other programs: metrics and health."},
        ],
        "paths": PATHS,
        "components": {"schemas": SCHEMAS, "securitySchemes": _SCHEMES},
        "security": [{}, *({name: []} for name in _SCHEMES)],
    }
