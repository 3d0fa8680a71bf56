"""Everything a server knows of moves, made from its notes when its store is opened; and of the grants, beside them. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from utuple.server.moving.home import HomeMoves
from utuple.server.moving.notes import GRANTS, decode_grants, encode_grants, read_notes
from utuple.server.moving.participant import Participant
from utuple.server.moving.steps import DONE, HearGrants, Outcome, refused
from utuple.server.writing.lines import OwnLines
from utuple.server.writing.transaction import Draft


class MoveState:
    def __init__(self, name: str, lines: OwnLines, notes: Mapping[str, bytes]) -> None:
        kept = read_notes(notes)
        self.home = HomeMoves(name, lines, kept.records)
        """Moves of the sections this server is home of."""
        self.participant = Participant(name, lines, kept)
        """Its part in moves, whoever is their home."""
        self.grants_number = decode_grants(notes.get(GRANTS))[0]
        """Of the grants it holds. It only grows: older ones come late, or by somebody's bad will."""

    def hear_grants(self, step: HearGrants, draft: Draft) -> Outcome:
        if step.number <= self.grants_number:
            return refused(f"grants {self.grants_number} are in force here")
        self.grants_number = step.number
        draft.notes[GRANTS] = encode_grants(step.number, step.body)
        return DONE
