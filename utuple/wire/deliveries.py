"""What a reader's stream carries beside deliveries, for whoever serves one."""

from __future__ import annotations

from utuple.delivery.notice import News, Notice
from utuple.errors import InvalidInput
from utuple.model.utuple import ID_BYTES
from utuple.wire import utuple_pb2 as pb


def notice_to_wire(notice: Notice) -> pb.ToReader:
    id_, generation = notice.formal, notice.generation
    match notice.news:
        case News.DETACHED:
            return pb.ToReader(detached=pb.Detached(id=id_, generation=generation))
        case News.REPLACED:
            return pb.ToReader(replaced=pb.Replaced(id=id_, generation=generation))
        case News.NOT_ALLOWED:
            refused = pb.NotAllowed(id=id_, generation=generation, reason=notice.reason)
            return pb.ToReader(not_allowed=refused)
        case news:
            unknown = news is News.UNKNOWN
            attached = pb.Attached(
                id=id_,
                unknown=unknown,
                generation=generation,
                arrival_per_s=notice.arrival_per_s,
            )
            return pb.ToReader(attached=attached)


def confirmed_from_wire(message: pb.Confirm) -> tuple[list[bytes], list[bytes]]:
    """CFs, and the command each of them has."""
    formals, commands = message.formals, message.commands
    if len(formals) != len(commands) or len(formals) % ID_BYTES:
        raise InvalidInput(
            "confirm", f"{len(formals)} and {len(commands)} bytes", "must be 16 bytes each a row"
        )
    places = range(0, len(formals), ID_BYTES)
    return (
        [formals[at : at + ID_BYTES] for at in places],
        [commands[at : at + ID_BYTES] for at in places],
    )
