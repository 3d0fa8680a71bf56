"""A uTupleServer of a secured cluster: its judge, and the grants it judges by, in its store."""

from __future__ import annotations

from functools import partial

from utuple.errors import Unavailable
from utuple.runtime.trust.exchange import GrantsExchange
from utuple.runtime.trust.guard import Guard
from utuple.security.signed import Signed
from utuple.server.judging import Judge
from utuple.server.moving.steps import HearGrants
from utuple.server.sharing import FairShares
from utuple.server.writing.engine import Engine


def secured(engine: Engine, guard: Guard) -> GrantsExchange:
    """Before it is started: it judges by what its store holds, from its first call on."""
    engine.judge = Judge(guard, guard.audit.refused, guard.restore, guard.audit.note)
    limits = engine.config.shares
    engine.judge.shares = FairShares(limits, lambda formal: formal in engine.writer.templates)
    guard.when_changed.append(engine.delivering.judge_again)
    return GrantsExchange(guard, partial(keep_grants, engine))


async def keep_grants(engine: Engine, given: Signed, number: int) -> None:
    """Durable, in the writer's order. Raises Unavailable if newer ones are."""
    outcome = await engine.step(HearGrants(number, given.to_bytes()))
    if not outcome.done:
        raise Unavailable(outcome.reason)
