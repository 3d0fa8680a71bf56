"""The monitor's gRPC face: what it sees and does, for `utuple status`."""

from __future__ import annotations

import os
from typing import Any

import grpc

from load_monitor.config import Config
from load_monitor.elasticity import ElasticState
from load_monitor.poller import OrderedMove, Poller
from utuple.cluster.line import ServerInfo
from utuple.runtime.clock import now_us
from utuple.wire import utuple_pb2 as pb
from utuple.wire import utuple_pb2_grpc as rpc
from utuple.wire.cluster import move_to_wire

_BLIND_AFTER_POLLS = 3
_MICROSECONDS = 1e6


class MonitorService(rpc.MonitorServicer):
    def __init__(
        self, config: Config, own: ServerInfo, poller: Poller, elastic: ElasticState | None = None
    ) -> None:
        self._own = own
        self._state = poller.state
        self._recorder = poller.recorder
        self._folder = config.telemetry.folder
        self._elastic = elastic
        self._blind_us = int(
            _BLIND_AFTER_POLLS * (config.poll_s + config.call_limit_s) * _MICROSECONDS
        )

    async def Status(
        self, request: pb.StatusRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> pb.MonitorStatus:
        state = self._state
        watches = now_us() - state.seen_us < self._blind_us
        return pb.MonitorStatus(
            name=self._own.name,
            state="watching" if watches else "waiting",
            pid=os.getpid(),
            since_us=self._own.since_us,
            address=self._own.address,
            polls=state.polls,
            seen_us=state.seen_us,
            accepted=state.accepted,
            refused=state.refused,
            orders=map(_ordered, state.orders),
            advice=(advice.sentence for advice in state.advice),
            servers=(
                pb.Watched(
                    name=load.name,
                    processing=load.processing,
                    memory=load.memory,
                    silent_s=load.silent_s,
                )
                for load in state.servers
            ),
            telemetry=self._telemetry(),
            elastic=_elastic(self._elastic) if self._elastic is not None else None,
        )

    def _telemetry(self) -> pb.Telemetry | None:
        if self._recorder is None:
            return None
        rows = self._recorder.buffer
        return pb.Telemetry(
            folder=self._folder,
            written=rows.written,
            waiting=len(rows),
            dropped=rows.dropped,
            failures=rows.failures,
        )


def _elastic(state: ElasticState) -> pb.Elastic:
    servers = state.seen.servers if state.seen is not None else ()
    return pb.Elastic(
        acts=state.acts,
        servers=len(state.seen.current) if state.seen is not None else 0,
        wanted=state.wanted,
        why=state.decision.why,
        waits=state.decision.waits,
        warning=state.warning,
        waiting=state.waiting,
        machines=(
            pb.ElasticMachine(
                name=machine.name,
                cpu=machine.cpu,
                memory_mb=machine.memory_mb,
                ready=machine.ready,
                servers=(server.name for server in servers if server.machine == machine.name),
            )
            for machine in state.machines
        ),
        done=(
            pb.ElasticAction(at_us=done.at_us, what=done.what, why=done.why, failed=done.failed)
            for done in state.done
        ),
    )


def _ordered(ordered: OrderedMove) -> pb.Ordered:
    return pb.Ordered(
        at_us=ordered.at_us,
        home=ordered.home,
        move=move_to_wire(ordered.move),
        accepted=ordered.answer.accepted,
        reason=ordered.answer.reason,
    )
