"""python -m sca_server --name sca-1 --listen 127.0.0.1:7420 --managers 127.0.0.1:7400,127.0.0.1:7401"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from dataclasses import fields

from sca_server.config import Config
from sca_server.core import Core
from sca_server.filling.refill import Refill, Refills
from sca_server.filling.refilling import Refilling
from sca_server.judging import ScaJudge
from sca_server.service import ScaService
from sca_server.shares import ScaShareLimits, ScaShares
from sca_server.sharing.awake import Awake
from sca_server.sharing.meeting import Sharing
from sca_server.sharing.membership import Membership
from sca_server.sharing.tenure import Tenure
from utuple.cluster.line import ServerInfo
from utuple.errors import InvalidInput
from utuple.runtime.announcer import Announcer
from utuple.runtime.clock import monotonic_s, now_us
from utuple.runtime.logs import Log
from utuple.runtime.options import add_knobs, add_managers, add_place, knobs_of, listed
from utuple.runtime.program import run_program
from utuple.runtime.tasks import run_until
from utuple.runtime.trust.exchange import GrantsExchange, GrantsFile
from utuple.runtime.trust.program import add_trust, keep_watch, listen

_log = Log("sca_server")


def config_from(arguments: Sequence[str]) -> Config:
    parser = argparse.ArgumentParser(prog="python -m sca_server", description=__doc__)
    add_place(parser)
    add_managers(parser)
    knobs = [field.name for field in fields(Config) if isinstance(field.default, int | float)]
    add_knobs(parser, Config, knobs)
    add_knobs(parser, ScaShareLimits)
    given = parser.parse_args(arguments)
    try:
        return Config(
            given.name,
            given.listen,
            listed(given.managers),
            given.advertise,
            given.log,
            given.credentials,
            shares=knobs_of(ScaShareLimits, given),
            **{name: getattr(given, name) for name in knobs},
        )
    except InvalidInput as error:
        parser.error(str(error))


async def serve(config: Config, stop: asyncio.Event) -> None:
    core = Core(
        config.limits,
        Tenure(config.name, config.tenure, monotonic_s()),
        Awake(2 * config.meet_every_s, monotonic_s(), late_s=config.silent_s),
    )
    refills = Refills(
        Refill(first_retry_s=config.first_retry_s, longest_retry_s=config.longest_retry_s)
    )
    listening = listen(
        config.name,
        config.listen,
        config.credentials,
        connections=config.connections,
        connections_per_address=config.connections_per_address,
    )
    server, guard = listening.server, listening.guard
    exchange = None if guard is None else GrantsExchange(guard, GrantsFile(guard).keep)
    own = ServerInfo(config.name, config.advertise or listening.address, "sca", now_us())
    judge = None
    if guard is not None:
        shares = ScaShares(config.shares, core.index.kept_by)
        judge = ScaJudge(guard, guard.audit.refused, shares)
    service = ScaService(config, core, refills, own, judge)
    membership = Membership(own, silent_s=config.silent_s)
    if guard is not None:
        guard.when_changed.append(service.judge_again)
    service.add_to(server)
    add_trust(listening, exchange)
    await server.start()
    _log.info("listening", address=listening.address, known_as=own.address)
    async with Announcer(
        config.managers,
        lambda: membership.own,
        tuple,
        others=lambda: membership.gone,
        grants=exchange,
    ) as announcer:

        def managers() -> list[str]:
            learned = (manager.address for manager in announcer.managers.values())
            return list(dict.fromkeys([*config.managers, *learned]))

        sharing = Sharing(
            config, core, membership, refills, wake=service.wake, announce=announcer.now
        )
        service.when_met(sharing.met)
        refilling = Refilling(config, core, refills, sharing, managers)
        await run_until(
            stop, refilling.run(), sharing.run(), service.keep_up(), keep_watch(listening)
        )
        await sharing.leave()
        await announcer.tell()
        await sharing.close()
    service.stop()
    await server.stop(config.flush_s)
    _log.info("stopped")


def main() -> int:
    config = config_from(sys.argv[1:])
    return run_program(config.name, lambda stop: serve(config, stop), config.log)


if __name__ == "__main__":
    sys.exit(main())
