"""The seam to other uTupleServers, used only while load moves. `transport.py` has the real one."""

from __future__ import annotations

from typing import Protocol

from utuple.wire import utuple_pb2 as pb


class Others(Protocol):
    """Each call raises Unavailable if it was never sent, OutcomeUnknown if no answer came."""

    async def learn(
        self, address: str, request: pb.LearnRequest, timeout_s: float
    ) -> pb.LearnAnswer: ...

    async def ready(
        self, address: str, request: pb.ReadyRequest, timeout_s: float
    ) -> pb.ReadyAnswer: ...

    async def hear(
        self, address: str, request: pb.HearRequest, timeout_s: float
    ) -> pb.HearAnswer: ...

    async def forget(
        self, address: str, request: pb.ForgetRequest, timeout_s: float
    ) -> pb.ForgetAnswer: ...

    async def vacant(
        self, address: str, request: pb.VacantRequest, timeout_s: float
    ) -> pb.VacantAnswer: ...

    async def ship(
        self, address: str, request: pb.ShipRequest, timeout_s: float
    ) -> pb.ShipAnswer: ...

    async def take(
        self, address: str, request: pb.TakeRequest, timeout_s: float
    ) -> pb.TakeAnswer: ...
