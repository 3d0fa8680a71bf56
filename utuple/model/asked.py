"""What a user asks at once is limited: by conditions, by alternatives and by bytes. Pure.

What is stored was taken by the limits of its own version, so only what comes in is looked at here.
"""

from __future__ import annotations

from collections.abc import Iterable

from utuple.errors import InvalidInput
from utuple.model.condition import (
    ANY,
    AddressCondition,
    DataCondition,
    OneOf,
    Where,
    forms_of,
    where_of,
)
from utuple.model.limits import MAX_ALTERNATIVES, MAX_CONDITIONS, MAX_TEMPLATE_BYTES
from utuple.model.value import check_parts


def asked_where(
    encoded: bytes, alternatives: int = 0, field: str = "where"
) -> dict[str, DataCondition]:
    """A data template that came from a user, beside an address condition with so many alternatives: what is too much is
    refused before anything is made of it."""
    check_bytes(0, len(encoded))
    if encoded == b"{}":
        return {}
    check_parts(encoded, field)
    forms = forms_of(encoded, field)
    named = (
        len(form) - 1
        for form in forms.values()
        if isinstance(form, list) and form[:1] == ["one_of"]
    )
    _check_counts(len(forms), (alternatives, *named), field)
    return where_of(forms, field)


def check_many(where: Where, address: AddressCondition = ANY) -> None:
    """Refuse a template that asks more at once than a server looks at in passing. What is stored was taken by its own
    version's limits, so only what comes from a user is asked."""
    _check_counts(len(where), map(_alternatives, (address, *where.values())), "where")


def _alternatives(wanted: DataCondition | AddressCondition) -> int:
    return len(wanted.values) if isinstance(wanted, OneOf) else 0


def _check_counts(conditions: int, alternatives: Iterable[int], field: str) -> None:
    if conditions > MAX_CONDITIONS:
        raise InvalidInput(
            field, f"{conditions} conditions", f"must be at most {MAX_CONDITIONS} conditions"
        )
    if (values := sum(alternatives)) > MAX_ALTERNATIVES:
        rule = f"all one_of of a template together name at most {MAX_ALTERNATIVES} values"
        raise InvalidInput(field, f"{values} values", rule)


def check_bytes(metadata: int, where: int) -> None:
    """Of a template's two halves, as JSON."""
    if metadata + where > MAX_TEMPLATE_BYTES:
        raise InvalidInput(
            "where" if where > metadata else "address",
            f"{metadata + where} bytes",
            f"a template must be at most {MAX_TEMPLATE_BYTES} bytes",
        )
