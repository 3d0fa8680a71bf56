"""Between the protocol's messages and the core's values. Nothing here waits or decides."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from sca_server.commands import Commands
from sca_server.outbox import Parcel, Servers
from sca_server.sharing.sorting import Sorted
from utuple.cluster.address import check_address
from utuple.cluster.line import ServerInfo
from utuple.cluster.shares import SCA_ROLES
from utuple.errors import Conflict, InvalidInput, NotAllowed, shown
from utuple.model.columns import MICROSECONDS
from utuple.model.identity import TIME_BYTES, time_of_id_us
from utuple.model.utuple import ID_BYTES
from utuple.model.value import check_name
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import server_from_wire, server_to_wire
from utuple.wire.codec import family_from_wire, pack, refuse_unknown, unpack

M = TypeVar("M", bound=Message)

MAX_MET = 1_000
"""sCA servers, those that have left included, that one tells another of."""


def parse(kind: type[M], raw: bytes) -> M:
    """The message these bytes are; gRPC's own parsing would answer bad bytes with an internal error."""
    try:
        message = kind.FromString(raw)
    except DecodeError:
        raise InvalidInput("message", raw, f"must be a {kind.DESCRIPTOR.name}") from None
    _refuse_unknown_inside(message, kind.DESCRIPTOR.name)
    return message


def _refuse_unknown_inside(message: Message, field: str) -> None:
    refuse_unknown(message, field)
    for descriptor, value in message.ListFields():
        if descriptor.type != descriptor.TYPE_MESSAGE:
            continue
        for inner in value if descriptor.is_repeated else (value,):
            _refuse_unknown_inside(inner, f"{field}.{descriptor.name}")


def commands_from_wire(message: pb.SimpleCommands, most: int) -> Commands:
    """The shape is checked here; the rows by `commands.admit`."""
    rows = len(message.ids) // ID_BYTES
    if len(message.ids) != rows * ID_BYTES:
        raise InvalidInput("ids", f"{len(message.ids)} bytes", "must be 16 bytes a row")
    if rows > most:
        raise InvalidInput("ids", f"{rows} rows", f"a call carries at most {most} commands")
    for name, column in (("addresses", message.addresses), ("payloads", message.payloads)):
        if len(column) != rows:
            raise InvalidInput(
                name, f"{len(column)} values", f"must be one for each of {rows} rows"
            )
    families = tuple(family_from_wire(family) for family in message.families)
    if rows and not families:
        raise InvalidInput("families", [], "a batch with rows names its families")
    family = (
        unpack("I", message.family, rows, "family")
        if message.family
        else array("I", bytes(4 * rows))
    )
    if rows and max(family) >= len(families):
        raise InvalidInput("family", max(family), f"must be below {len(families)}")
    return Commands(families, family, message.ids, list(message.addresses), list(message.payloads))


def confirm_s(message: pb.SimpleCommands, longest_s: float) -> float:
    if message.confirm_us < 0:
        raise InvalidInput("confirm_us", message.confirm_us, "must not be negative")
    return min(message.confirm_us / MICROSECONDS, longest_s)


def refusals_to_wire(
    wrong: Iterable[tuple[int, InvalidInput | Conflict | NotAllowed]], part: pb.Part.ValueType
) -> list[pb.Refusal]:
    """Rows refused for the same reason share one refusal."""
    found: dict[tuple[pb.Reason.ValueType, str, str, str], pb.Refusal] = {}
    for row, error in wrong:
        if isinstance(error, InvalidInput):
            said = (pb.INVALID, error.field, shown(error.value), error.rule)
        elif isinstance(error, NotAllowed):
            said = (pb.NOT_ALLOWED, "", "", str(error))
        else:
            said = (pb.CONFLICT, "id", "", str(error))
        refusal = found.get(said)
        if refusal is None:
            reason, field, value, rule = said
            refusal = found[said] = pb.Refusal(
                part=part, reason=reason, field=field, value=value, rule=rule
            )
        refusal.rows.append(row)
    return list(found.values())


def receipts_to_wire(
    rows: Sequence[int],
    formals: Iterable[bytes],
    handed: bytearray,
    wrong: Iterable[tuple[int, InvalidInput | NotAllowed]],
) -> pb.SimpleReceipts:
    return pb.SimpleReceipts(
        refusals=refusals_to_wire(wrong, pb.PART_UNKNOWN),
        rows=rows,
        ids=b"".join(formals),
        handed=bytes(handed),
    )


def add_moving(
    receipts: pb.SimpleReceipts, found: Sorted, places: Sequence[int], servers: Iterable[ServerInfo]
) -> None:
    """`places` are where the sorted rows stood in the call."""
    if found.moving:
        receipts.moving.extend(places[row] for row in found.moving)
        receipts.servers.extend(map(server_to_wire, servers))
        receipts.reason = found.reason


def servers_to_wire(servers: Servers) -> pb.ToReader:
    return pb.ToReader(changed=pb.Changed(servers=map(server_to_wire, servers.infos)))


def met_from_wire(message: pb.ScaServers) -> tuple[str, list[ServerInfo]]:
    if len(message.servers) > MAX_MET:
        raise InvalidInput("servers", f"{len(message.servers)} values", f"at most {MAX_MET}")
    infos = list(map(server_from_wire, message.servers))
    for info in infos:
        check_name("servers.name", info.name)
        check_address("servers.address", info.address)
        if info.role not in SCA_ROLES:
            raise InvalidInput("servers.role", info.role, f"must be one of {', '.join(SCA_ROLES)}")
    return check_name("name", message.name), infos


def deliveries_to_wire(parcel: Parcel, origin: str) -> pb.ToReader:
    """What a device knows of itself is not said."""
    rows_of: dict[bytes, list[int]] = {}
    for row, formal in enumerate(parcel.formals):
        rows_of.setdefault(formal, []).append(row)
    many = len(rows_of) > 1
    columns = pb.Columns(
        ids=b"".join(parcel.commands),
        times_us=pack(array("q", _times_us(parcel.commands))),
        payloads=parcel.payloads,
    )
    return pb.ToReader(
        deliveries=pb.Deliveries(
            formals=b"".join(rows_of),
            counts=pack(array("I", map(len, rows_of.values()))) if many else b"",
            rows=pack(array("I", chain(*rows_of.values()))) if many else b"",
            origin=origin,
            columns=columns,
        )
    )


def _times_us(ids: Sequence[bytes]) -> Iterable[int]:
    """Many were made in the same millisecond."""
    made = [id_[:TIME_BYTES] for id_ in ids]
    times_us = {one: time_of_id_us(one) for one in set(made)}
    return map(times_us.__getitem__, made)
