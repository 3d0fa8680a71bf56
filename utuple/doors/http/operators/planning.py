"""`/v1/plan`: the forecast of the running cluster, and simulations of scenarios, by `utuple plan` as a program of its own:
they take minutes and gigabytes, which a door has no business with."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_urlsafe
from typing import Any
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response

from utuple.doors.http.config import Config
from utuple.doors.http.door import door_of, visitor_of
from utuple.doors.http.problems import Problem, encoded, invalid
from utuple.doors.http.verbs import asking
from utuple.doors.http.verbs.body import JSON, json_object
from utuple.local.folder import DataFolder
from utuple.runtime.clock import monotonic_s
from utuple.runtime.logs import Log
from utuple.runtime.tasks import Tasks

_log = Log("utuple.doors.http.operators.planning")

KINDS = ("sweep", "forecast", "paper")
_KEPT = 20
_END_S = 10.0
"""For a simulation that is told to end; then it is killed."""
_TICKET_S = 300.0
_TICKETS = 1_000
_TAIL_CHARS = 4_000
_LINE_BYTES = 1 << 20
_PROGRESS = re.compile(r"(\d+) of (\d+) ")
"""As `utuple plan` tells it where nobody looks at a terminal."""
_REPORT_CSP = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:"
"""A report is one file that holds its own scripts and asks nobody for anything."""


@dataclass
class Run:
    id: str
    kind: str
    folder: Path
    state: str = "running"
    said: str = ""
    done: int = 0
    total: int = 0
    """Of what it simulates, where it says how far it is."""
    report: Path | None = None
    task: asyncio.Task[None] | None = None

    def hear(self, line: str) -> None:
        """A line of what the program says: how far it is, or something to show."""
        if found := _PROGRESS.match(line):
            self.done, self.total = int(found[1]), int(found[2])
        else:
            self.said = (self.said + line)[-4 * _TAIL_CHARS :]

    def shown(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "kind": self.kind,
            "state": self.state,
            "said": self.said[-_TAIL_CHARS:],
            "done": self.done,
            "total": self.total,
            "report": f"/v1/plan/runs/{self.id}/report" if self.report is not None else None,
        }


@dataclass
class Plans:
    config: Config
    runs: dict[str, Run] = field(default_factory=dict)
    _tasks: Tasks = field(default_factory=Tasks)
    _tickets: OrderedDict[str, tuple[float, str]] = field(default_factory=OrderedDict)

    def ticket(self, run: Run) -> str:
        """A report is opened in a tab of its own, which shows no token: an address that is good for this report, for a while."""
        made = token_urlsafe(24)
        self._tickets[made] = monotonic_s() + _TICKET_S, run.id
        while len(self._tickets) > _TICKETS:
            self._tickets.popitem(last=False)
        return f"/v1/plan/reports/{made}"

    def by_ticket(self, ticket: str) -> Run:
        until_s, id_ = self._tickets.get(ticket, (0.0, ""))
        if monotonic_s() >= until_s:
            raise Problem(
                404, "Not found", "this address has ended: open the report from the console"
            )
        return self.find(id_)

    def begin(self, kind: str, scenario: str) -> Run:
        running = [run for run in self.runs.values() if run.state == "running"]
        if len(running) >= self.config.limits.plans:
            names = ", ".join(run.id for run in running) or "none may"
            raise Problem(409, "Busy", f"simulations that run: {names}: wait, or cancel one")
        run = Run(uuid4().hex[:12], kind, Path(tempfile.mkdtemp(prefix="utuple-plan-")))
        arguments = self._arguments(run, scenario)
        self.runs[run.id] = run
        run.task = self._tasks.start(self._carry_out(run, arguments), f"plan {run.id}")
        for old in list(self.runs.values())[:-_KEPT]:
            self._forget(old)
        return run

    def _arguments(self, run: Run, scenario: str) -> Sequence[str]:
        into = str(run.folder / "report")
        if run.kind == "paper":
            return ["paper", "--report", into]
        if run.kind == "forecast":
            return ["forecast", "--telemetry", self._telemetry(), "--report", into]
        path = run.folder / "scenario.toml"
        path.write_text(scenario, encoding="utf-8")
        return ["sweep", str(path), "--out", into]

    def _telemetry(self) -> str:
        folder = DataFolder(Path(self.config.data)) if self.config.data else None
        cluster = folder.read_cluster() if folder is not None else None
        if cluster is None or not cluster.telemetry:
            raise Problem(
                409,
                "No samples",
                "the load monitor keeps no samples: start the cluster with `utuple up --telemetry DIR`",
            )
        return cluster.telemetry

    async def _carry_out(self, run: Run, arguments: Sequence[str]) -> None:
        command = [sys.executable, "-P", "-m", "utuple.cli.main", "plan", *arguments]
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=run.folder,
            limit=_LINE_BYTES,
            start_new_session=True,
        )
        assert process.stdout is not None
        try:
            async with asyncio.timeout(self.config.limits.plan_s):
                async for line in process.stdout:
                    run.hear(line.decode(errors="replace"))
                code = await process.wait()
            run.report = next(iter(sorted(run.folder.rglob("*.html"))), None)
            run.state = "done" if code == 0 else "failed"
        except TimeoutError:
            run.state = "failed"
            run.said += f"\nnot done after {self.config.limits.plan_s:g} s"
        except asyncio.CancelledError:
            run.state = "cancelled"
            raise
        finally:
            await end(process)

    def _forget(self, run: Run) -> None:
        if run.state != "running":
            self.runs.pop(run.id, None)
            shutil.rmtree(run.folder, ignore_errors=True)

    async def cancel(self, run: Run) -> None:
        if run.task is not None and not run.task.done():
            run.task.cancel()
            await asyncio.gather(run.task, return_exceptions=True)

    async def close(self) -> None:
        await self._tasks.close()
        for run in self.runs.values():
            shutil.rmtree(run.folder, ignore_errors=True)

    def find(self, id_: str) -> Run:
        run = self.runs.get(id_)
        if run is None:
            raise Problem(404, "Not found", f"no run {id_!r} at this door")
        return run


async def end(process: asyncio.subprocess.Process, limit_s: float = _END_S) -> None:
    """It leads a group of its own: what it started ends with it, whether it heeds or not."""
    if process.returncode is not None:
        return
    try:
        process.terminate()
        async with asyncio.timeout(limit_s):
            await process.wait()
    except TimeoutError:
        _log.warning("simulation killed", reason="it did not end", s=limit_s)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


async def template(request: Request) -> Response:
    """A scenario with every key explained, to begin with."""
    from importlib.resources import files

    asking.check_known(request.query_params, ())
    text = (files("ops_sim.operation") / "template.toml").read_text("utf-8")
    return PlainTextResponse(text)


async def begin(request: Request) -> Response:
    door = door_of(request)
    asking.check_known(request.query_params, ())
    said = await json_object(request, door.limits)
    asking.check_fields(said, ("kind", "scenario"))
    kind, scenario = said.get("kind"), said.get("scenario", "")
    if kind not in KINDS:
        raise invalid("kind", kind, f"must be one of {', '.join(KINDS)}")
    if not isinstance(scenario, str):
        raise invalid("scenario", scenario, "must be text: a scenario in TOML")
    if kind == "sweep" and not scenario.strip():
        raise invalid("scenario", scenario, "must not be empty: GET /v1/plan/template gives one")
    return Response(
        encoded(_shown(request, door.plans.begin(kind, scenario))), 202, media_type=JSON
    )


def _shown(request: Request, run: Run) -> dict[str, Any]:
    said = run.shown()
    if run.report is not None and visitor_of(request) is not None:
        said["opened"] = door_of(request).plans.ticket(run)
    return said


async def runs(request: Request) -> Response:
    asking.check_known(request.query_params, ())
    found = [_shown(request, run) for run in reversed(door_of(request).plans.runs.values())]
    return Response(encoded({"runs": found}), media_type=JSON)


async def run(request: Request) -> Response:
    found = door_of(request).plans.find(request.path_params["id"])
    return Response(encoded(_shown(request, found)), media_type=JSON)


async def cancel(request: Request) -> Response:
    plans = door_of(request).plans
    found = plans.find(request.path_params["id"])
    await plans.cancel(found)
    return Response(encoded(found.shown()), media_type=JSON)


async def report(request: Request) -> Response:
    return _report(door_of(request).plans.find(request.path_params["id"]))


async def opened(request: Request) -> Response:
    return _report(door_of(request).plans.by_ticket(request.path_params["ticket"]))


def _report(found: Run) -> Response:
    if found.report is None:
        raise Problem(404, "Not found", f"run {found.id} has no report: it is {found.state}")
    answer = FileResponse(found.report, media_type="text/html")
    answer.headers["content-security-policy"] = _REPORT_CSP
    return answer
