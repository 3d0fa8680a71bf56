"""Messages on a stream: each is one byte (whether it is compressed), its length and its bytes. Pure."""

from __future__ import annotations

from struct import Struct

from utuple.transport.http2.frames import Piece

_SMALL_BYTES = 1024
_PREFIX = Struct(">BI")
PREFIX_BYTES = _PREFIX.size


class Unreadable(Exception):
    """A message this end does not take."""


class TooLarge(Unreadable):
    pass


def prefix(message: bytes) -> bytes:
    return _PREFIX.pack(0, len(message))


class MessageReader:
    """Pieces of DATA in, whole messages out."""

    def __init__(self, max_message_bytes: int) -> None:
        self._most = max_message_bytes
        self._parts: list[Piece | bytearray] = []
        self.kept_bytes = 0
        """Of a message that is not whole yet."""
        self._need: int | None = None
        """Of the message that is being read, once its prefix is there."""

    @property
    def is_between(self) -> bool:
        """No message is broken off here."""
        return not self.kept_bytes and self._need is None

    def feed(self, piece: Piece) -> list[bytes]:
        if not self.kept_bytes and self._need is None and len(piece) >= PREFIX_BYTES:
            size = self._size_of(piece)
            if len(piece) == PREFIX_BYTES + size:  # as it nearly always is
                return [bytes(piece[PREFIX_BYTES:])]
        self._keep(piece)
        messages: list[bytes] = []
        while True:
            if self._need is None:
                if self.kept_bytes < PREFIX_BYTES:
                    return messages
                self._take_prefix()
            assert self._need is not None
            if self.kept_bytes < self._need:
                return messages
            messages.append(self._take(self._need))
            self._need = None

    def _keep(self, piece: Piece) -> None:
        """Small pieces are joined as they come: kept one by one, each would cost many times its bytes."""
        self.kept_bytes += len(piece)
        if len(piece) >= _SMALL_BYTES:
            self._parts.append(piece)
        elif self._parts and isinstance(last := self._parts[-1], bytearray):
            last += piece
        else:
            self._parts.append(bytearray(piece))

    def _take_prefix(self) -> None:
        if len(self._parts[0]) < PREFIX_BYTES:
            self._parts = [b"".join(self._parts)]
        first = self._parts[0]
        self._need = self._size_of(first)
        self._parts[0] = first[PREFIX_BYTES:]
        self.kept_bytes -= PREFIX_BYTES

    def _take(self, size: int) -> bytes:
        over = self.kept_bytes - size
        rest: list[Piece | bytearray] = []
        if over:
            last = self._parts[-1]
            cut = len(last) - over
            rest = [last[cut:]]
            self._parts[-1] = last[:cut]
        message = b"".join(self._parts)
        self._parts, self.kept_bytes = rest, over
        return message

    def _size_of(self, piece: Piece | bytearray) -> int:
        compressed, size = _PREFIX.unpack_from(piece)
        if compressed:
            raise Unreadable("compressed messages are not taken")
        if size > self._most:
            raise TooLarge(f"a message of {size} bytes; at most {self._most} are taken")
        return int(size)
