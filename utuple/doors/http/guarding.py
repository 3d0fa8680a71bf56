"""Who may ask at all. A door without security trusts whoever reaches it, so it must not be reached by pages of other sites
in a browser of this machine: those are told by their Origin, and by a Host that is not the door's own.

On a secured cluster whoever asks shows a token (`Authorization: Bearer …`, never in the address) or his certificate. There is no
cookie. A browser shows a certificate to whichever page asks for it, so pages of other sites are refused there as well.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from utuple.cluster.address import is_loopback
from utuple.doors.http.door import VISITOR, Door, door_of, visitor_of
from utuple.doors.http.problems import Problem
from utuple.doors.visitors import Reception, Visitor
from utuple.errors import NotAllowed
from utuple.security.identity import Role

CERTIFICATE = "utuple.certificate"
"""Of a request's scope: what was shown in the handshake, as DER."""
_PUBLIC = frozenset({"/", "/openapi.json", "/healthz", "/readyz"})

_SECURITY = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        b"font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
)


class Guard:
    """ASGI middleware: refuses what comes from elsewhere and who is not known, and says to browsers what a page of ours may do."""

    def __init__(self, app: Any, door: Door) -> None:
        self._app = app
        self._reception = door.reception

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def secured(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in message.get("headers", ())}
                more = [header for header in _SECURITY if header[0] not in own]
                message["headers"] = [*message.get("headers", ()), *more]
            await send(message)

        try:
            await self._check(scope)
        except Problem as problem:
            await problem.response()(scope, receive, secured)
            return
        await self._app(scope, receive, secured)

    async def _check(self, scope: Scope) -> None:
        headers, reception = dict(scope["headers"]), self._reception
        why = foreign(headers, is_secured=reception is not None)
        if why:
            raise Problem(403, "Forbidden", why)
        if reception is not None and not is_public(scope["path"]):
            scope[VISITOR] = await admitted(reception, headers, scope.get(CERTIFICATE))


def is_public(path: str) -> bool:
    """The console's files, which hold nothing of the cluster, what says that the door is there, and reports, by an address that
    an operator was given."""
    return path in _PUBLIC or path.startswith(("/console/", "/v1/plan/reports/"))


async def admitted(
    reception: Reception, headers: Mapping[bytes, bytes], certificate: bytes | None
) -> Visitor:
    """Raises a Problem: who comes is told how to sign in."""
    said = headers.get(b"authorization", b"").decode("latin-1")
    scheme, _, token = said.partition(" ")
    try:
        if said and scheme.lower() != "bearer":
            raise NotAllowed(f"Authorization: {scheme} is not taken here, but Bearer TOKEN")
        return await reception.admit(token.strip(), certificate)
    except NotAllowed as error:
        asks = {"WWW-Authenticate": f'Bearer realm="{reception.cluster}"'}
        raise Problem(401, "Sign in", str(error), headers=asks) from None


def check_operator(request: Request) -> None:
    """What operators look at and order is judged by the programs it is asked of; what the door does by itself is judged here."""
    door, visitor = door_of(request), visitor_of(request)
    if door.reception is None:
        return
    assert visitor is not None, "nobody comes here without"
    error = door.reception.why_void(visitor)
    if error is None and visitor.identity.role is not Role.OPERATOR:
        error = NotAllowed(f"{visitor} may not ask that: it is for operators")
    if error is not None:
        raise error


def foreign(headers: Mapping[bytes, bytes], *, is_secured: bool = False) -> str:
    """Why this request is not for us; empty if it is."""
    host = headers.get(b"host", b"").decode("latin-1")
    if not is_secured and not is_loopback(_name(host)):
        return f"Host {host!r} is not this machine: a door without security answers 127.0.0.1 and localhost only"
    origin = headers.get(b"origin", b"").decode("latin-1")
    if origin and _authority(origin) != host:
        return f"Origin {origin!r} is another site: pages of other sites may not use this door"
    is_link = headers.get(b"sec-fetch-mode") == b"navigate"  # somebody followed one to the console
    if headers.get(b"sec-fetch-site") in (b"cross-site", b"same-site") and not is_link:
        return "a page of another site may not use this door"
    return ""


def _name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _authority(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""
