"""The routes, in one table."""

from __future__ import annotations

from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

import utuple
from utuple.doors.http.door import Door, door_of
from utuple.doors.http.guarding import Guard, check_operator, is_public
from utuple.doors.http.openapi import document
from utuple.doors.http.operators import acting, looking, planning
from utuple.doors.http.problems import Problem, answer_http, answer_problem, encoded
from utuple.doors.http.verbs import commands, events, live

CONSOLE = Path(__file__).parent / "console"
_A_DAY = "public, max-age=86400"


async def openapi(request: Request) -> Response:
    return Response(encoded(document()), media_type="application/json")


async def console(request: Request) -> Response:
    return FileResponse(CONSOLE / "index.html", headers={"Cache-Control": "no-cache"})


class Files(StaticFiles):
    """Of the console. A browser asks whether one has changed before it uses its copy."""

    def file_response(self, *args: object, **kwargs: object) -> Response:
        answer = super().file_response(*args, **kwargs)  # type: ignore[arg-type]
        vendored = str(args[0]).find("/vendor/") >= 0
        answer.headers["cache-control"] = _A_DAY if vendored else "no-cache"
        return answer


ROUTES = (
    ("POST", "/v1/events", events.register),
    ("GET", "/v1/events", events.read),
    ("GET", "/v1/events/live", live.live),
    ("POST", "/v1/commands", commands.command),
    ("GET", "/v1/commands/{id}", commands.receipt),
    ("GET", "/v1/devices/{subject}/{type}/{address}/commands", live.device),
    ("GET", "/v1/me", looking.me),
    ("GET", "/v1/status", looking.status),
    ("GET", "/v1/status/live", looking.pages),
    ("GET", "/v1/table", looking.table),
    ("GET", "/v1/moves", looking.moves),
    ("GET", "/v1/readers", looking.readers),
    ("POST", "/v1/readers/{reader}/ack", live.acknowledge),
    ("DELETE", "/v1/readers/{reader}", acting.forget),
    ("GET", "/v1/servers", looking.servers),
    ("POST", "/v1/servers", acting.add),
    ("POST", "/v1/servers/{name}/help", acting.help_server),
    ("POST", "/v1/servers/{name}/drain", acting.drain),
    ("GET", "/v1/plan/template", planning.template),
    ("GET", "/v1/plan/runs", planning.runs),
    ("POST", "/v1/plan/runs", planning.begin),
    ("GET", "/v1/plan/runs/{id}", planning.run),
    ("DELETE", "/v1/plan/runs/{id}", planning.cancel),
    ("GET", "/v1/plan/runs/{id}/report", planning.report),
    ("GET", "/v1/plan/reports/{ticket}", planning.opened),
    ("GET", "/metrics", looking.metrics),
    ("GET", "/healthz", looking.healthz),
    ("GET", "/readyz", looking.readyz),
    ("GET", "/openapi.json", openapi),
)


OPEN_TO_ALL = frozenset(
    {
        *("/v1/events", "/v1/events/live", "/v1/commands", "/v1/commands/{id}", "/v1/me"),
        *("/v1/devices/{subject}/{type}/{address}/commands", "/v1/readers/{reader}/ack"),
        "/v1/plan/reports/{ticket}",
        *("/healthz", "/readyz", "/openapi.json"),
    }
)
"""Judged by what they carry, at the servers. Everything else is for operators, where the cluster is secured."""


class Methods:
    """All methods of one path: what is not among them is answered 405, with those that are."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._by_method = {method: work for method, own, work in ROUTES if own == path}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        method = "GET" if request.method == "HEAD" else request.method
        work = self._by_method.get(method)
        if work is None:
            allowed = [*self._by_method, *(["HEAD"] if "GET" in self._by_method else [])]
            raise HTTPException(405, headers={"Allow": ", ".join(allowed)})
        if self._path not in OPEN_TO_ALL:
            check_operator(request)
        if is_public(self._path):
            answer = await work(request)
            await answer(scope, receive, send)
            return
        async with door_of(request).acting_for(request):
            answer = await work(request)
            await answer(scope, receive, send)


def application(door: Door) -> Starlette:
    paths = dict.fromkeys(path for _, path, _ in ROUTES)
    app = Starlette(
        routes=[
            *(Route(_with_slashes(path), Methods(path)) for path in paths),
            Route("/", console, methods=["GET"]),
            Mount("/console", Files(directory=CONSOLE), name="console"),
        ],
        middleware=[Middleware(Guard, door=door)],
        exception_handlers={
            Problem: answer_problem,
            utuple.UTupleError: answer_problem,
            HTTPException: answer_http,
            Exception: answer_problem,
        },
    )
    app.state.door = door
    app.router.redirect_slashes = False  # nothing of ours ends with one
    return app


def _with_slashes(path: str) -> str:
    """Addresses of devices and names of readers may have them (%2F)."""
    return path.replace("{address}", "{address:path}").replace("{reader}", "{reader:path}")
