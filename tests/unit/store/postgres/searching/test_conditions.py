"""The text of statements, for what the conformance suite cannot see on its own PostgreSQL."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import templates
from utuple.model.condition import Equal, Range
from utuple.model.utuple import Family, Template, UTuple
from utuple.store.postgres.searching.conditions import found, question
from utuple.store.postgres.statements import Statement, compiled


def statement(where: dict[str, Range | Equal]) -> tuple[str, dict[str, object]]:
    asked = UTuple(bytes(16), Family("truck", "load"), Template(), None, where, 1.0, "reader")
    made = question(asked, 1, 0, 9, 0)
    return made.text.decode(), made.parameters


def test_texts_are_compared_by_code_points_whatever_the_database_prefers() -> None:
    text, _ = statement({"name": Range("a", "b")})
    assert text.count('COLLATE "C") >=') == text.count('COLLATE "C") <') == 1


def test_names_and_values_are_parameters_and_never_part_of_the_statement() -> None:
    text, parameters = statement({"field-name": Equal("field-value"), "n": Range(12.5, None)})
    assert not [word for word in ("field-name", "field-value", "12.5") if word in text]
    assert {"field-name", '"field-value"'} <= {str(value) for value in parameters.values()}


def test_data_is_read_as_json_once_a_row_however_many_conditions_there_are() -> None:
    """200 conditions took 44 s over 200 rows of 300 fields when each read the data anew."""
    text, _ = statement({f"n{number}": Range(0, number + 1) for number in range(200)})
    assert text.upper().count("AS JSONB)") == 1


def named(made: Statement) -> dict[str, object]:
    return {name: made.parameters[name] for name in re.findall(r"%\((\w+)\)s", made.text.decode())}


@given(templates, st.sampled_from(["", "server-x"]))
def test_a_statement_kept_for_its_shape_asks_the_same_as_one_made_anew(
    metadata: Template, origin: str
) -> None:
    asked = UTuple(bytes(16), Family("truck", "load"), metadata, None, {}, 1.0, "reader")
    kept, anew = question(asked, 1, 2, 9, 5, origin), compiled(found(asked, 1, 2, 9, 5, origin))
    assert (kept.text, named(kept)) == (anew.text, named(anew))
