"""Errors over gRPC: the caller gets the error that was raised, with everything it can act on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
import pytest

from utuple.errors import (
    Closed,
    Conflict,
    InvalidInput,
    NotRegistered,
    OutcomeUnknown,
    Overloaded,
    Refused,
    SomeRefused,
    SomeRegistered,
    Unavailable,
    UTupleError,
    WrongContext,
)
from utuple.wire.status import abort, code_of, error_from


class Call:
    """A gRPC call that remembers how it was ended."""

    def __init__(self) -> None:
        self.ended: Any = None

    async def abort(self, code: Any, details: str, trailers: Any) -> None:
        self.ended = (code, details, trailers)

    def as_the_caller_sees_it(self) -> grpc.aio.AioRpcError:
        code, details, trailers = self.ended
        return grpc.aio.AioRpcError(
            code, grpc.aio.Metadata(), grpc.aio.Metadata(*trailers), details=details
        )


async def sent_over(error: UTupleError) -> UTupleError:
    call = Call()
    await abort(call, error)  # type: ignore[arg-type]
    return error_from(call.as_the_caller_sees_it(), sent="emit")


@pytest.mark.parametrize(
    "error",
    [
        InvalidInput("position.latitude", 91, "must lie between -90 and 90 degrees"),
        Conflict("the id is known with other content"),
        Unavailable("starting", retry_after_s=0.25),
        Overloaded("full", retry_after_s=3.5),
        NotRegistered("not now"),
        Closed("stopping"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_an_error_arrives_as_it_was_raised(error: UTupleError) -> None:
    arrived = await sent_over(error)
    assert type(arrived) is type(error)
    assert str(arrived) == str(error)
    assert getattr(arrived, "retry_after_s", None) == getattr(error, "retry_after_s", None)
    assert getattr(arrived, "field", None) == getattr(error, "field", None)


async def test_a_huge_value_is_shown_short_in_the_trailers() -> None:
    arrived = await sent_over(InvalidInput("data", "x" * (2 << 20), "must be at most 1 MiB"))
    assert len(str(arrived)) < 300


async def test_a_field_that_is_no_text_for_headers_still_arrives() -> None:
    arrived = await sent_over(InvalidInput("data.温度", "\x00\n", "must not contain U+0000"))
    assert isinstance(arrived, InvalidInput) and arrived.field == "data.温度"


def broken(code: grpc.StatusCode) -> UTupleError:
    error = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details="gone")
    return error_from(error, sent="emit")


@pytest.mark.parametrize(
    "code", ["UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "UNKNOWN", "INTERNAL"]
)
def test_a_call_that_broke_without_a_word_may_have_been_registered(code: str) -> None:
    assert isinstance(broken(grpc.StatusCode[code]), OutcomeUnknown)


def test_a_call_that_was_not_answered_in_time_is_told_in_our_words() -> None:
    nothing = grpc.aio.Metadata()
    late = grpc.StatusCode.DEADLINE_EXCEEDED
    error = grpc.aio.AioRpcError(late, nothing, nothing, details="Deadline Exceeded")
    assert str(error_from(error, sent="command")) == "command: no answer in time"


def test_where_every_event_is_refused_there_are_no_others() -> None:
    assert str(SomeRefused({0: Refused("why")}, 0)) == (
        "1 of 1 events were refused, none is registered: why"
    )
    assert "1 of 3 events were refused, the others are" in str(SomeRefused({0: Refused("")}, 2))


@pytest.mark.parametrize("code", ["UNIMPLEMENTED", "INVALID_ARGUMENT", "OUT_OF_RANGE"])
def test_a_call_grpc_refused_before_a_handler_ran_was_not_registered(code: str) -> None:
    assert isinstance(broken(grpc.StatusCode[code]), Refused)


_ODD: dict[type[UTupleError], Callable[[], UTupleError]] = {
    InvalidInput: lambda: InvalidInput("f", 1, "r"),
    SomeRefused: lambda: SomeRefused({0: Refused("why")}, 1),
    SomeRegistered: lambda: SomeRegistered("why", 1, 1),
}
"""Those that say more than why."""

_WITHOUT_A_CODE = (OutcomeUnknown, SomeRegistered, WrongContext)
"""The last two are raised in the client: no server sends them."""


def test_every_error_of_the_tree_has_a_code() -> None:
    def below(kind: type[UTupleError]) -> list[type[UTupleError]]:
        return [kind, *(found for child in kind.__subclasses__() for found in below(child))]

    for kind in below(UTupleError):
        if kind.__module__ == "utuple.errors" and kind is not UTupleError:
            made = _ODD[kind]() if kind in _ODD else kind("why")
            assert code_of(made) is not grpc.StatusCode.OK
            if kind not in _WITHOUT_A_CODE:
                assert code_of(made) is not grpc.StatusCode.UNKNOWN, kind
