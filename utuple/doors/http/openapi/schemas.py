"""What requests and answers carry. Pure data."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]


def listed(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def closed(properties: dict[str, Schema], required: tuple[str, ...] = ()) -> Schema:
    """An object with these and no other."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
WHOLE: Schema = {"type": "integer"}
TRUTH: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[^\\u0000]+$"}
INSTANT: Schema = {"type": "string", "format": "date-time"}
POSITION: Schema = {
    "type": "array",
    "prefixItems": [
        {"type": "number", "minimum": -90, "maximum": 90},
        {"type": "number", "minimum": -180, "maximum": 180},
    ],
    "minItems": 2,
    "maxItems": 2,
    "description": "Latitude, longitude.",
}
LIFETIME: Schema = {
    "type": "number",
    "minimum": 0,
    "maximum": 315_360_000,
    "description": "Seconds. 0: it reaches who is there now, and is not kept.",
}
_MEMBER = closed({"name": TEXT, "accumulatable": TRUTH, "suspended": TRUTH})
_AXIS = closed(
    {
        "dimension": {"type": "string", "description": "address, lat, lon, time or data.FIELD"},
        "bounds": {"type": "array", "items": {"anyOf": [NUMBER, TEXT]}},
        "owners": {"type": "array", "items": {"type": "array", "items": TEXT}},
    }
)
_LINE = closed(
    {
        "start": {"type": "string", "description": "The first key, in hexadecimal."},
        "end": {"type": "string", "description": "The first key that is not in it."},
        "epoch": WHOLE,
        "home": TEXT,
        "members": {"type": "array", "items": _MEMBER},
        "axes": {
            "type": "array",
            "items": _AXIS,
            "description": "How its EFs are partitioned; none: every member keeps every EF.",
        },
    },
    ("start", "end", "epoch", "home", "members", "axes"),
)

SCHEMAS: dict[str, Schema] = {
    "Event": {
        **closed(
            {
                "subject": {**NAME, "description": "Kind of device."},
                "type": {**NAME, "description": "Kind of data."},
                "address": {**NAME, "description": "The device's id."},
                "data": {"type": "object", "description": "Names and values, at most 1 MiB."},
                "position": {"anyOf": [POSITION, {"type": "null"}]},
                "time": {"anyOf": [INSTANT, {"type": "null"}], "description": "Now unless given."},
                "lifetime_s": {"anyOf": [LIFETIME, {"type": "null"}], "default": 604_800},
            },
            ("subject", "type", "address", "data"),
        ),
        "examples": [
            {
                "subject": "truck",
                "type": "load",
                "address": "truck-17",
                "position": [35.68, 139.76],
                "data": {"kg": 1200},
            }
        ],
    },
    "Delivered": closed(
        {
            "id": {"type": "string", "format": "uuid"},
            "subject": TEXT,
            "type": TEXT,
            "address": TEXT,
            "time": INSTANT,
            "position": {"anyOf": [POSITION, {"type": "null"}]},
            "stored": {
                "type": "boolean",
                "description": "Found in the store; false: it came live.",
            },
            "data": OBJECT,
        },
        ("id", "subject", "type", "address", "time", "position", "stored", "data"),
    ),
    "Registered": {
        **closed(
            {
                "registered": {"type": "integer", "description": "These are durable."},
                "refused": WHOLE,
                "refusals": {"type": "array", "items": ref("Refusal")},
            },
            ("registered", "refused", "refusals"),
        ),
        "examples": [
            {
                "registered": 2,
                "refused": 1,
                "refusals": [
                    {"row": 3, "field": "lifetime_s", "value": -1, "rule": "must be 0 or more"}
                ],
            }
        ],
    },
    "Refusal": closed(
        {
            "row": {"type": "integer", "description": "Its line, counted from 1."},
            "field": TEXT,
            "value": {},
            "rule": TEXT,
        },
        ("row", "field", "value", "rule"),
    ),
    "Command": {
        **closed(
            {
                "subject": NAME,
                "type": NAME,
                "data": OBJECT,
                "address": {"anyOf": [NAME, {"type": "array", "items": NAME}]},
                "prefix": TEXT,
                "area": {
                    "type": "string",
                    "description": "`south,west,north,east` or `lat,lon,radius` (500m, 2km).",
                },
                "since": TEXT,
                "until": TEXT,
                "lifetime_s": {
                    **LIFETIME,
                    "default": 0,
                    "description": "Devices that come within this time get it, too.",
                },
                "everywhere": {
                    "type": "boolean",
                    "default": False,
                    "description": "To every device of this subject and type.",
                },
                "notify": {
                    "enum": ["expired", None],
                    "description": "When `lifetime_s` is over: an event for each device that never got it.",
                },
            },
            ("subject", "type", "data"),
        ),
        "examples": [
            {
                "subject": "aircon",
                "type": "power",
                "address": "room-101",
                "data": {"on": False},
            },
            {
                "subject": "aircon",
                "type": "power",
                "area": "35.68,139.76,500m",
                "data": {"on": False},
                "lifetime_s": 3600,
            },
        ],
    },
    "Receipt": closed(
        {
            "id": TEXT,
            "matched": WHOLE,
            "handed_over": WHOLE,
            "waits_s": NUMBER,
            "devices": {
                "type": "array",
                "items": closed(
                    {"address": TEXT, "handed_over": TRUTH, "acknowledged": TRUTH, "reason": TEXT}
                ),
            },
            "said": TEXT,
        },
        ("id", "matched", "handed_over", "waits_s", "devices", "said"),
    ),
    "Problem": {
        "type": "object",
        "description": "RFC 9457. What was refused is named with its field, value and rule.",
        "properties": {
            "type": TEXT,
            "title": TEXT,
            "status": WHOLE,
            "detail": TEXT,
            "field": TEXT,
            "value": {},
            "rule": TEXT,
            "registered": WHOLE,
            "refused": WHOLE,
            "refusals": {"type": "array", "items": ref("Refusal")},
            "reached": {
                "type": "integer",
                "description": "Of many events: the first row that may not be registered.",
            },
        },
        "required": ["type", "title", "status"],
        "examples": [
            {
                "type": "about:blank",
                "title": "Invalid input",
                "status": 400,
                "detail": "lifetime_s: -1 is refused: must be 0 or more",
                "field": "lifetime_s",
                "value": -1,
                "rule": "must be 0 or more",
            }
        ],
    },
    "Status": {
        "type": "object",
        "properties": {
            "well": {"type": "boolean", "description": "Everything serves."},
            "whole": {"type": "boolean", "description": "Every key has a line."},
            **{
                name: {"type": "array", "items": OBJECT}
                for name in (
                    *("servers", "sca", "managers", "monitors", "moves"),
                    "certificates",
                )
            },
            "advice": {"type": "array", "items": TEXT},
            "missing": {"type": "array", "items": TEXT},
        },
        "required": ["well", "whole", "servers", "sca", "managers", "monitors", "moves"],
    },
    "Line": _LINE,
    "Table": closed({"whole": TRUTH, "lines": {"type": "array", "items": ref("Line")}}),
    "Add": closed({"name": TEXT, "dry_run": TRUTH}),
    "Help": {
        **closed({"helper": TEXT, "memory": TRUTH, "section": TEXT, "dry_run": TRUTH}),
        "examples": [{"dry_run": True}],
    },
    "Drain": {
        **closed({"cancel": TRUTH, "dry_run": TRUTH}),
        "examples": [{"dry_run": True}],
    },
    "Plan": closed(
        {
            "kind": {"type": "string", "enum": ["sweep", "forecast", "paper"]},
            "scenario": {"type": "string", "description": "TOML, for a sweep."},
        },
        ("kind",),
    ),
    "Run": closed(
        {
            "id": TEXT,
            "kind": TEXT,
            "state": {"type": "string", "enum": ["running", "done", "failed", "cancelled"]},
            "said": TEXT,
            "done": WHOLE,
            "total": {**WHOLE, "description": "Worlds to simulate; 0 while that is not known."},
            "report": {"anyOf": [TEXT, {"type": "null"}]},
            "opened": {
                **TEXT,
                "description": "Where the cluster is secured: the report, for a tab.",
            },
        },
        ("id", "kind", "state", "said", "done", "total", "report"),
    ),
}
