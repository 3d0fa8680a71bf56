"""Everything a server knows of moves, made from its notes when its store is opened. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from utuple.server.moving.home import HomeMoves
from utuple.server.moving.notes import read_notes
from utuple.server.moving.participant import Participant
from utuple.server.writing.lines import OwnLines


class MoveState:
    def __init__(self, name: str, lines: OwnLines, notes: Mapping[str, bytes]) -> None:
        kept = read_notes(notes)
        self.home = HomeMoves(name, lines, kept.records)
        """Moves of the sections this server is home of."""
        self.participant = Participant(name, lines, kept)
        """Its part in moves, whoever is their home."""
