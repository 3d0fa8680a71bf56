"""`utuple elastic plan`: what elasticity would do with the cluster as it is now, and why. Nothing is done."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from utuple.cli.elastic.simulate import read_text
from utuple.cli.options import AT_DEFAULT, At, Data, Json, addresses, print_json_block
from utuple.errors import Unavailable

if TYPE_CHECKING:
    from load_monitor.elastic.controller import Placing
    from load_monitor.elastic.policy import ElasticPolicy
    from load_monitor.elastic.seen import Inventory, Seen
    from load_monitor.elastic.settings import ElasticSettings
    from load_monitor.transport import GrpcCalls, OrderAnswer
    from utuple.cluster.move import Move

LOOKS = 3
LOOK_S = 1.0
"""Loads are averages: a few looks, as the load monitor has them."""

File = Annotated[
    Path | None,
    typer.Argument(metavar="[FILE]", help="An elastic.toml.", show_default="the cluster's own"),
]


def plan(file: File = None, at: At = AT_DEFAULT, data: Data = None, json: Json = False) -> None:
    """Say what would be done now, and why; nothing is done.

    The cluster is looked at for a few seconds; then the controller is asked, as if the load stayed as it is until
    servers and machines that are wanted had come.
    """
    from load_monitor.elastic.settings import settings_of
    from utuple.cli.life import folder_of

    folder = folder_of(data, addresses(at))
    path = file or folder.elastic
    settings = settings_of(read_text(path), path.name)
    seen, placing = asyncio.run(_look(addresses(at), settings, str(folder.path)))
    said = steps(settings.policy, placing, seen)
    if json:
        print_json_block(said)
        return
    typer.echo(f"Servers: {said['servers']} serve, {said['wanted']} wanted: {said['why']}")
    if seen.settling:
        typer.echo(f"A decision would wait now: {seen.settling}")
    for action in said["actions"]:
        typer.echo(f"  after {action['after_s']:g} s: {action['what']}, because {action['why']}")
    for warning in said["warnings"]:
        typer.echo(f"  warning: {warning}")
    if not said["actions"] and not said["warnings"]:
        typer.echo("  nothing is to be done")


async def _look(at: list[str], settings: ElasticSettings, data: str) -> tuple[Seen, Placing]:
    from load_monitor.config import Config
    from load_monitor.elastic.seeing import seen_of
    from load_monitor.elasticity import read_floor, today
    from load_monitor.poller import Poller
    from load_monitor.transport import GrpcCalls
    from utuple.runtime.clock import monotonic_s, now_us

    floor = read_floor(settings.forecast.file)
    config = Config("plan", "127.0.0.1:0", tuple(at))
    calls = _Looking(GrpcCalls(config))
    poller = Poller(config, calls, lambda: at)
    for look in range(LOOKS):
        await asyncio.sleep(LOOK_S if look else 0.0)
        await poller.poll(monotonic_s(), now_us())
    await calls.keep_only(())
    snapshot = poller.state.snapshot
    if snapshot is None:
        raise Unavailable(f"no whole table is to be had at {', '.join(at)}: see `utuple status`")
    inventory, placing = await _inventory(settings, data)
    policy = config.policy
    seen = seen_of(
        snapshot,
        inventory,
        settle_s=policy.settle_s,
        silent_s=policy.silent_s,
        floor=today(floor),
    )
    return seen, placing


class _Looking:
    """The monitor's calls, but for orders: a plan gives none."""

    def __init__(self, calls: GrpcCalls) -> None:
        self.table, self.report, self.keep_only = calls.table, calls.report, calls.keep_only

    async def move(self, address: str, move: Move) -> OrderAnswer | None:
        return None


async def _inventory(settings: ElasticSettings, data: str) -> tuple[Inventory, Placing]:
    from load_monitor.provisioning.choosing import provisioner_for

    provisioner = provisioner_for(settings, data)
    try:
        return await provisioner.inventory(), provisioner.placing
    finally:
        await provisioner.close()


def steps(policy: ElasticPolicy, placing: Placing, seen: Seen) -> dict[str, Any]:
    """The controller on a cluster that does not change: what it decides at once, when it is calm, and when servers have
    waited for long enough."""
    from load_monitor.elastic.controller import Controller

    controller = Controller(policy, placing)
    rules, machines = policy.servers, policy.machines
    actions: dict[str, dict[str, Any]] = {}
    warnings = []
    controller.step(seen)
    count, why = controller.wanted.count, controller.wanted.why
    controller = Controller(policy, placing)
    moments = sorted({0.0, machines.pending_s, rules.calm_s, machines.empty_s})
    for after_s in moments:
        then = replace(seen, now_s=seen.now_s + after_s, settling="")
        decision = controller.step(then)
        for action in decision.actions:
            told = {"after_s": after_s, "what": str(action), "why": action.why}
            actions.setdefault(str(action), told)
        warnings += [decision.warning] if decision.warning else []
    return {
        "servers": len(seen.current),
        "wanted": count,
        "why": why,
        "waits": seen.settling,
        "actions": list(actions.values()),
        "warnings": warnings,
    }
