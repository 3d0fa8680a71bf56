"""Data templates of CFs, each decoded once: devices of one make ask the same, so a million share a few.
Pure."""

from __future__ import annotations

from dataclasses import dataclass

from utuple.errors import InvalidInput
from utuple.model.condition import Where, decode_where, encode_where
from utuple.model.packed import asked_where


@dataclass(frozen=True, slots=True, eq=False)
class DataTemplate:
    """Compared by identity, which is what the matcher's cache of verdicts goes by."""

    encoded: bytes
    """The one encoding: equal templates have equal bytes."""
    where: Where | None
    """None where it asks nothing, so that every command passes without a look at its data."""


class Templates:
    """The decoded templates by the bytes they came as. When full it starts again: devices keep what
    they have, and the next ones decode anew."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[bytes, DataTemplate] = {}

    def of(self, payload: bytes) -> DataTemplate:
        known = self._known.get(payload)
        return known if known is not None else self._decoded(payload)

    def check(self, payload: bytes) -> None:
        """Of a device that registers: one that asks too much is refused. What servers have stored is not asked again."""
        if payload not in self._known:
            asked_where(payload)

    def _decoded(self, payload: bytes) -> DataTemplate:
        try:
            where = decode_where(payload)
            encoded = encode_where(where)
        except (TypeError, RecursionError):  # odd or very deep JSON that the decoder trips over
            raise InvalidInput(
                "where", payload, "must be a mapping of names to conditions"
            ) from None
        template = self._known.get(encoded)
        if template is None:
            template = DataTemplate(encoded, where or None)
        if len(self._known) + 2 > self._most:
            self._known.clear()
        self._known[encoded] = self._known[payload] = template
        return template
