"""The operations. Pure data."""

from __future__ import annotations

from typing import Any

from utuple.doors.http.openapi.schemas import NAME, OBJECT, TEXT, Schema, listed, ref

_JSON = "application/json"
_PROBLEMS = {
    400: "A field, its value and the rule it breaks; nothing of it was kept.",
    401: "Where the cluster is secured: sign in, with a token (`utuple token`) or a certificate.",
    403: "Not granted, or not for pages of other sites.",
    404: "There is no such thing.",
    406: "None of the formats that are accepted.",
    408: "The body stopped coming.",
    409: "Not possible as things are; the detail says why.",
    413: "Too large.",
    415: "JSON, or NDJSON for many events.",
    503: "The cluster does not answer, or is full; `Retry-After` says when to try again.",
    504: "Outcome unknown: it may or may not be registered.",
}


def _answer(content: dict[str, Schema], what: str) -> Schema:
    return {"description": what, "content": {kind: {"schema": s} for kind, s in content.items()}}


def _problems(*codes: int) -> dict[str, Schema]:
    problem = {"application/problem+json": ref("Problem")}
    return {str(code): _answer(problem, _PROBLEMS[code]) for code in codes}


def _query(name: str, what: str, schema: Schema | None = None, **more: Any) -> Schema:
    return {
        "name": name,
        "in": "query",
        "description": what,
        "schema": schema or TEXT,
        **more,
    }


def _in_path(name: str, what: str) -> Schema:
    schema = {**NAME, "pattern": "^[^\\u0000/]+$"}
    return {"name": name, "in": "path", "required": True, "description": what, "schema": schema}


def _body(name: str, *, required: bool = True) -> Schema:
    return {"required": required, "content": {_JSON: {"schema": ref(name)}}}


_TEMPLATE = [
    _query("subject", "Kind of device.", NAME, required=True, example="truck"),
    _query("type", "Kind of data.", NAME, required=True, example="load"),
    _query("address", "Only this device; may be given several times.", listed(NAME)),
    _query("prefix", "Only devices whose address begins so."),
    _query("area", "`south,west,north,east`, or `lat,lon,radius` with the radius as 500m or 2km."),
    _query("since", "Not before: ISO 8601, or how long ago (15m, 1h, 2d)."),
    _query("until", "Before (half-open), written likewise."),
    _query(
        "where",
        "`kg>=1000`, `kg>=1 kg<5`, `state=idle`, `state in idle,busy`, `on is bool`, `kg exists`, "
        "`kg absent`; may be given several times.",
        listed(TEXT),
    ),
]
_LIMIT: Schema = {"type": "integer", "minimum": 1, "maximum": 1_000_000_000}
_READER = [
    _query(
        "reader", "A name to go on under later: `Last-Event-ID` resumes it without a gap.", NAME
    ),
    _query("lifetime", "How long a reader that is away is kept: seconds, or 15m, 1d."),
    _query("limit", "End after so many.", _LIMIT),
    _query("timeout", "End after so many seconds."),
    {
        "name": "Last-Event-ID",
        "in": "header",
        "description": "The id of the last event that this reader has.",
        "schema": TEXT,
    },
]
_STREAM = {
    "text/event-stream": {
        "type": "object",
        "properties": {"data": TEXT, "event": TEXT, "id": TEXT},
        "required": ["data"],
    }
}


def _operation(
    name: str,
    tag: str,
    what: str,
    answers: dict[str, Schema],
    *,
    parameters: list[Schema] | None = None,
    body: Schema | None = None,
) -> Schema:
    made: Schema = {
        "operationId": name,
        "tags": [tag],
        "summary": what,
        "responses": answers | _problems(401, 403),
    }
    if parameters:
        made["parameters"] = parameters
    if body:
        made["requestBody"] = body
    return made


def _looks(name: str, what: str, schema: Schema) -> Schema:
    return {
        "get": _operation(
            name, "operators", what, {"200": _answer({_JSON: schema}, what)} | _problems(400, 503)
        )
    }


def _orders(name: str, what: str, body: str) -> Schema:
    done = {
        "200": _answer({_JSON: OBJECT}, "Nothing was done: this is what would be (`dry_run`)."),
        "202": _answer({_JSON: OBJECT}, "Accepted: follow it in /v1/moves."),
    }
    return _operation(
        name,
        "operators",
        what,
        done | _problems(400, 408, 409, 413, 415, 503, 504),
        body=_body(body, required=False),
    )


_SERVER = [_in_path("name", "The server.")]
_RUN = [_in_path("id", "The run.")]

PATHS: dict[str, Schema] = {
    "/v1/events": {
        "post": _operation(
            "emit",
            "events",
            "Register one event, or many as NDJSON. 202 when they are durable.",
            {
                "202": _answer(
                    {_JSON: ref("Registered")},
                    "Durable. Of many, those in `refusals` were refused, by row.",
                )
            }
            | _problems(400, 408, 409, 413, 415, 503, 504),
            body={
                "required": True,
                "content": {
                    _JSON: {"schema": ref("Event")},
                    "application/x-ndjson": {
                        "schema": TEXT,
                        "example": '{"subject":"truck","type":"load","address":"truck-17","data":{"kg":1200}}\n'
                        '{"subject":"truck","type":"load","address":"truck-18","data":{"kg":900}}\n',
                    },
                },
            },
        ),
        "get": _operation(
            "read",
            "events",
            "Stored events that match, streamed as they are found.",
            {
                "200": _answer(
                    {
                        _JSON: {
                            "type": "object",
                            "properties": {"events": {"type": "array", "items": ref("Delivered")}},
                            "required": ["events"],
                        },
                        "application/x-ndjson": TEXT,
                        "text/csv": TEXT,
                        "application/vnd.apache.arrow.stream": {
                            "type": "string",
                            "format": "binary",
                        },
                    },
                    "By `Accept`.",
                )
            }
            | _problems(400, 406, 503),
            parameters=[
                *_TEMPLATE,
                _query("limit", "So many at most, in order of time.", _LIMIT),
                _query("newest", "The newest first.", {"type": "boolean"}),
            ],
        ),
    },
    "/v1/events/live": {
        "get": _operation(
            "watch",
            "events",
            "Stored matches, then live ones, without a gap, as server-sent events.",
            {"200": _answer(_STREAM, "`data` is a Delivered; an event `problem` ends it.")}
            | _problems(400, 409, 503, 504),
            parameters=[*_TEMPLATE, *_READER],
        )
    },
    "/v1/commands": {
        "post": _operation(
            "command",
            "commands",
            "Command one device, or every device that matches.",
            {"200": _answer({_JSON: ref("Receipt")}, "Which devices have it.")}
            | _problems(400, 408, 409, 413, 415, 503, 504),
            body=_body("Command"),
        )
    },
    "/v1/commands/{id}": {
        "get": _operation(
            "receipt",
            "commands",
            "How a command stands now, by any door while its lifetime lasts.",
            {"200": _answer({_JSON: ref("Receipt")}, "Which devices have it by now.")}
            | _problems(400, 404, 503, 504),
            parameters=[_in_path("id", "As POST /v1/commands gave it.")],
        )
    },
    "/v1/devices/{subject}/{type}/{address}/commands": {
        "get": _operation(
            "serve",
            "commands",
            "Be a device: its commands as server-sent events, while the stream is open.",
            {"200": _answer(_STREAM, "`data` is a Delivered.")}
            | _problems(400, 404, 409, 503, 504),
            parameters=[
                _in_path("subject", "Kind of device."),
                _in_path("type", "Kind of data."),
                _in_path("address", "The device's id."),
                _query("position", "`latitude,longitude`."),
                _TEMPLATE[-1],
                *_READER,
            ],
        )
    },
    "/v1/me": _looks("me", "Who asks, until when, and what he may do.", OBJECT),
    "/v1/status": _looks("status", "Servers, load, flags, readers, moves, advice.", ref("Status")),
    "/v1/status/live": {
        "get": _operation(
            "statusLive",
            "operators",
            "The console's stream: what has changed, once a second.",
            {"200": _answer(_STREAM, "Parts by name: summary, servers, lines, moves, …")}
            | _problems(400, 503),
            parameters=[_query("timeout", "End after so many seconds.")],
        )
    },
    "/v1/table": _looks("table", "The assignment table.", ref("Table")),
    "/v1/moves": {
        "get": _looks("moves", "Moves of load, the newest first.", OBJECT)["get"]
        | {"parameters": [_query("limit", "So many at most.", _LIMIT)]}
    },
    "/v1/readers": _looks("readers", "Who reads, and how far each is behind.", OBJECT),
    "/v1/readers/{reader}": {
        "delete": _operation(
            "forgetReader",
            "operators",
            "Forget a reader that will not come back.",
            {"200": _answer({_JSON: OBJECT}, "Where it was forgotten.")}
            | _problems(400, 404, 409, 503, 504),
            parameters=[_in_path("reader", "Its name.")],
        )
    },
    "/v1/readers/{reader}/ack": {
        "post": _operation(
            "acknowledge",
            "events",
            "A named reader has the events up to this one.",
            {"204": {"description": "Noted."}} | _problems(400, 404, 408, 413, 415),
            parameters=[_in_path("reader", "Its name.")],
            body={
                "required": True,
                "content": {
                    _JSON: {
                        "schema": {
                            "type": "object",
                            "properties": {"id": TEXT},
                            "required": ["id"],
                            "additionalProperties": False,
                        }
                    }
                },
            },
        )
    },
    "/v1/servers": {
        **_looks("servers", "Every uTupleServer.", OBJECT),
        "post": _orders("addServer", "Add a server to the cluster of this machine.", "Add"),
    },
    "/v1/servers/{name}/help": {
        "post": _orders("help", "Let another server help this one with a section.", "Help")
        | {"parameters": _SERVER}
    },
    "/v1/servers/{name}/drain": {
        "post": _orders("drain", "Take this server out; or with `cancel` let it stay.", "Drain")
        | {"parameters": _SERVER}
    },
    "/v1/plan/template": {
        "get": _operation(
            "planTemplate",
            "planning",
            "A scenario with every key explained.",
            {"200": _answer({"text/plain": TEXT}, "TOML.")} | _problems(400),
        )
    },
    "/v1/plan/runs": {
        "get": _operation(
            "planRuns",
            "planning",
            "Simulations, the newest first.",
            {"200": _answer({_JSON: OBJECT}, "Runs.")} | _problems(400),
        ),
        "post": _operation(
            "plan",
            "planning",
            "Begin a simulation: a sweep of a scenario, a forecast, or the paper's.",
            {"202": _answer({_JSON: ref("Run")}, "Begun.")} | _problems(400, 408, 409, 413, 415),
            body=_body("Plan"),
        ),
    },
    "/v1/plan/runs/{id}": {
        "get": _operation(
            "planRun",
            "planning",
            "How far a simulation is.",
            {"200": _answer({_JSON: ref("Run")}, "The run.")} | _problems(404),
            parameters=_RUN,
        ),
        "delete": _operation(
            "cancelPlan",
            "planning",
            "End a simulation.",
            {"200": _answer({_JSON: ref("Run")}, "The run.")} | _problems(404),
            parameters=_RUN,
        ),
    },
    "/v1/plan/runs/{id}/report": {
        "get": _operation(
            "planReport",
            "planning",
            "Its report, one HTML file.",
            {"200": _answer({"text/html": TEXT}, "The report.")} | _problems(404),
            parameters=_RUN,
        )
    },
    "/v1/plan/reports/{ticket}": {
        "get": _operation(
            "planOpened",
            "planning",
            "A report in a tab of its own, where the cluster is secured.",
            {"200": _answer({"text/html": TEXT}, "The report.")} | _problems(404),
            parameters=[_in_path("ticket", "As `opened` of a run gave it.")],
        )
    },
    "/metrics": {
        "get": _operation(
            "metrics",
            "programs",
            "Figures in Prometheus's format.",
            {"200": _answer({"text/plain": TEXT}, "Figures.")} | _problems(400),
        )
    },
    "/healthz": {
        "get": _operation(
            "healthz",
            "programs",
            "This door answers.",
            {"200": _answer({"text/plain": TEXT}, "ok")},
        )
    },
    "/readyz": {
        "get": _operation(
            "readyz",
            "programs",
            "The cluster behind it takes events.",
            {"200": _answer({"text/plain": TEXT}, "ready")} | _problems(503),
        )
    },
}

for _methods in PATHS.values():
    for _made in _methods.values():
        _made["responses"] |= {
            "405": _answer({"application/problem+json": ref("Problem")}, "Not understood here.")
        }
