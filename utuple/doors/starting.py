"""What every door is told, and where it may listen: without credentials on this machine only."""

from __future__ import annotations

import argparse
import os

from utuple.cluster.address import check_address, is_loopback
from utuple.errors import InvalidInput
from utuple.runtime.clock import now_us
from utuple.runtime.options import add_knobs
from utuple.security.identity import Role
from utuple.security.own import OwnCredentials


def door_parser(
    module: str, description: str | None, listen: str, limits: type
) -> argparse.ArgumentParser:
    """Which cluster, who it is, where it listens and logs, and its limits."""
    made = argparse.ArgumentParser(
        prog=f"python -m {module}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "--at",
        default=os.environ.get("UTUPLE_AT", "127.0.0.1:7400"),
        metavar="HOST:PORT,…",
        help="assignment managers of the cluster (default 127.0.0.1:7400, or UTUPLE_AT)",
    )
    made.add_argument(
        "--listen",
        default=listen,
        metavar="HOST:PORT",
        help=f"default {listen}; port 0: a free one",
    )
    made.add_argument(
        "--credentials",
        default="",
        metavar="FILE",
        help="of this door, if the cluster is secured (utuple grant NAME --as door): it speaks TLS, and whoever comes shows who "
        "he is; without them it listens on loopback only",
    )
    made.add_argument(
        "--certificate",
        default="",
        metavar="FILE",
        help="with its key and those that vouch for it, as PEM: shown to who comes instead of the door's own, which only who trusts "
        "the cluster's authority takes for good (a browser)",
    )
    made.add_argument(
        "--log", default="", metavar="FILE", help="log there instead of to standard error"
    )
    add_knobs(made, limits)
    return made


def place(text: str, *, is_secured: bool = False) -> tuple[str, int]:
    """HOST:PORT; of an unsecured door on this machine: whoever reaches it may do everything."""
    check_address("listen", text)
    host, _, port = text.rpartition(":")
    if not is_secured and not is_loopback(host):
        rule = (
            "is not on loopback (127.0.0.1), and a door without security is for this machine only: "
            "give it --credentials FILE of a secured cluster (docs/security.md)"
        )
        raise InvalidInput("listen", text, rule)
    return host.strip("[]"), int(port)


def door_credentials(file: str) -> OwnCredentials | None:
    """Those of a door, and such that hold; None: nothing is secured."""
    if not file:
        return None
    own = OwnCredentials(file)
    if own.identity.role is not Role.DOOR:
        rule = "must be those of a door (utuple grant NAME --as door)"
        raise InvalidInput("credentials", str(own.identity), rule)
    if own.held.until_us <= now_us():
        raise InvalidInput("credentials", own.path.name, f"ended {own.held.until}; renew them")
    return own
