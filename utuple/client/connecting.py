"""The way in: a space for whoever names an assignment manager, and shows who he is if the cluster is secured."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path

from utuple.client.config import Config
from utuple.client.connections import Connections
from utuple.client.parts import put_together
from utuple.client.space import Space
from utuple.client.transport import GrpcTransport
from utuple.cluster.address import check_reachable
from utuple.errors import InvalidInput
from utuple.runtime.clock import now_us
from utuple.runtime.trust.refusal import check_not_ended
from utuple.security.own import OWN, OwnCredentials
from utuple.transport.http2.headers import Metadata


def connect(
    *managers: str,
    timeout_s: float = 30.0,
    choice: str = "adaptive",
    credentials: str | os.PathLike[str] | None = None,
) -> Space:
    """The way in: `async with utuple.connect("127.0.0.1:7400") as space: ...`

    Any assignment manager of the cluster will do; name several and the client goes on with the others
    when one is down. `timeout_s` is how long a verb may take, with all its retries; of a `read`,
    how long any wait for its rows may take.

    `credentials` is the file that proves who you are on a secured cluster, as `utuple grant` writes it; without it the
    one that UTUPLE_CREDENTIALS names, if it does. A file that is renewed meanwhile counts from the next connection on.

    `choice` says how the server of an event is chosen when several would do: "adaptive" (the shortest
    expected wait), or for comparison "random", "least-subscriptions" or "response-time".
    """
    config = Config(timeout_s=timeout_s, choice=choice)
    for manager in managers:
        check_reachable("at", manager)
    if not managers:
        raise InvalidInput("at", managers, "must name at least one assignment manager, HOST:PORT")
    dice = random.SystemRandom()
    own = credentials_to_use(credentials)
    owner = "" if own is None else own.identity.name
    return Space(put_together(managers, config, GrpcTransport(own), dice, now_us, owner))


def connect_for(
    managers: Sequence[str],
    shared: Connections,
    shown: Metadata,
    owner: str,
    timeout_s: float = 30.0,
) -> Space:
    """A door's space for somebody, `owner`: `shown` proves to every program whom it speaks for (`utuple.security.proofs`)."""
    transport = GrpcTransport(shared=shared, shown=shown)
    config = Config(timeout_s=timeout_s)
    return Space(put_together(managers, config, transport, random.SystemRandom(), now_us, owner))


def credentials_to_use(given: str | os.PathLike[str] | None) -> OwnCredentials | None:
    """Those given, or those of the context, or of the environment; None if there are none."""
    path = given if given is not None else os.environ.get("UTUPLE_CREDENTIALS")
    own = OWN.get() if given is None else None
    if own is None and path:
        own = OwnCredentials(Path(path))
    if own is not None:
        check_not_ended(own)
    return own
