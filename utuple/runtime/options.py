"""The options that every program has, and help for those that are knobs of its config."""

from __future__ import annotations

import argparse
import ast
import inspect
import textwrap
from collections.abc import Iterable
from dataclasses import fields
from typing import TypeVar

from utuple.runtime.log_file import KEPT, LIMIT_BYTES

T = TypeVar("T")

ADVERTISE = "where others reach it, if that is not where it listens (0.0.0.0, address translation)"


def add_place(parser: argparse.ArgumentParser) -> None:
    """Who it is, where it listens, where it logs."""
    parser.add_argument("--name", required=True, help="for ever: it is known by this")
    parser.add_argument(
        "--listen", required=True, metavar="HOST:PORT", help="where it listens; port 0: a free one"
    )
    parser.add_argument("--advertise", default="", metavar="HOST:PORT", help=ADVERTISE)
    parser.add_argument(
        "--credentials",
        default="",
        metavar="FILE",
        help="of this program, as an authority of the cluster has issued them (docs/security.md): it speaks TLS, and refuses "
        "what is not granted; without them it listens on loopback only",
    )
    parser.add_argument(
        "--log",
        default="",
        metavar="FILE",
        help=f"log there instead of to standard error: at {LIMIT_BYTES >> 20} MiB it is set aside as FILE.1, and "
        f"{KEPT} such are kept",
    )


def add_managers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--managers",
        required=True,
        metavar="HOST:PORT,…",
        help="assignment managers; the others are learned from one that answers",
    )


def listed(given: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in given.split(",") if part.strip())


def flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def add_knobs(
    parser: argparse.ArgumentParser,
    config: type,
    names: Iterable[str] | None = None,
    *,
    metavar: str = "N",
) -> None:
    """One option for each of these fields, or for all, with its type and default, and its reason as help."""
    reasons, wanted = reasons_of(config), None if names is None else set(names)
    for field in fields(config):
        if wanted is None or field.name in wanted:
            parser.add_argument(
                flag(field.name),
                type=type(field.default),
                default=field.default,
                metavar=metavar,
                help=help_of(reasons[field.name], field.default),
            )


def knobs_of(config: type[T], given: argparse.Namespace) -> T:
    """A config all of whose fields are such options."""
    made: type = config
    return config(**{field.name: getattr(given, field.name) for field in fields(made)})


def help_of(reason: str, default: object) -> str:
    """For argparse, which reads % as its own."""
    shown = (
        f"{default:,}"
        if isinstance(default, int)
        else f"{default:g}"
        if isinstance(default, float)
        else default
    )
    return f"{reason} Default {shown}.".replace("%", "%%")


def reasons_of(config: type) -> dict[str, str]:
    """What is written below each field in the source of a config: the reason is said once. Fields that share one have it
    below the last of them."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(config))).body
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    without: list[str] = []
    for item in body.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            without.append(item.target.id)
        elif isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant) and without:
            found |= dict.fromkeys(without, " ".join(str(item.value.value).split()))
            without.clear()
    return found | dict.fromkeys(without, "")
