"""Who may ask at all. A door without security trusts whoever reaches it, so it must not be reached by pages of other sites
in a browser of this machine: those are told by their Origin, and by a Host that is not the door's own."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any
from urllib.parse import urlsplit

from starlette.types import Receive, Scope, Send

from utuple.doors.http.problems import Problem

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})

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
    """ASGI middleware: refuses what comes from elsewhere, and says to browsers what a page of ours may do."""

    def __init__(self, app: Any) -> None:
        self._app = app

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

        why = foreign(dict(scope["headers"]))
        if why:
            await Problem(403, "Forbidden", why).response()(scope, receive, secured)
            return
        await self._app(scope, receive, secured)


def foreign(headers: dict[bytes, bytes]) -> str:
    """Why this request is not for us; empty if it is."""
    host = headers.get(b"host", b"").decode("latin-1")
    if _name(host) not in LOOPBACK:
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
