"""Keys are points, sections are half-open slices, and a set of them tiles the hash space or does not."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests import strategies as some
from utuple.errors import InvalidInput
from utuple.model.key import HASH_SPACE, device_key, key_of
from utuple.model.section import Section, equal_sections, tiles
from utuple.model.utuple import Family


@given(some.families)
def test_a_key_is_a_point_of_the_hash_space_and_always_the_same(family: Family) -> None:
    assert 0 <= key_of(*family) < HASH_SPACE
    assert key_of(*family) == key_of.__wrapped__(*family)


def test_keys_are_the_same_in_every_release() -> None:
    """Clients, servers and stores of different ages must agree; these numbers never change."""
    assert key_of("truck", "load") == 0xD3E0708BB00848A7
    assert device_key("aircon", "power", "room-101") == 0xCFC9B597117765B7


def test_the_border_between_subject_and_type_counts() -> None:
    assert key_of("ab", "c") != key_of("a", "bc")
    assert device_key("ab", "c", "d") != device_key("a", "bc", "d") != device_key("a", "b", "cd")


@given(some.sections, some.keys)
def test_a_section_is_half_open(section: Section, key: int) -> None:
    assert section.start in section
    assert section.end not in section
    assert (key in section) == (section.start <= key < section.end)


@given(some.sections, some.keys)
def test_the_halves_of_a_section_share_its_keys(section: Section, key: int) -> None:
    assume(section.start < key < section.end)
    first, second = section.split_at(key)
    assert (first.start, first.end, second.end) == (section.start, second.start, section.end)
    assert key in second and key not in first
    assert not first.overlaps(second)


@given(some.sections, some.sections)
def test_overlap_means_a_key_in_common(one: Section, other: Section) -> None:
    common = max(one.start, other.start) < min(one.end, other.end)
    assert one.overlaps(other) == other.overlaps(one) == common


@given(some.sections, some.sections, some.keys)
def test_what_is_left_without_another_holds_exactly_the_other_keys(
    one: Section, other: Section, key: int
) -> None:
    left = one.without(other)
    for at in (key, one.start, one.end - 1, other.start, other.end - 1, other.end):
        assert any(at in part for part in left) == (at in one and at not in other)
    assert not any(part.overlaps(other) for part in left)


@given(st.integers(1, 200))
def test_equal_sections_tile_the_hash_space_evenly(count: int) -> None:
    sections = equal_sections(count)
    sizes = [section.end - section.start for section in sections]
    assert len(sections) == count and tiles(sections)
    assert max(sizes) - min(sizes) <= 1


@given(st.integers(1, 20), st.data())
def test_a_missing_or_a_doubled_section_tiles_nothing(count: int, draw: st.DataObject) -> None:
    sections = equal_sections(count)
    chosen = draw.draw(st.sampled_from(sections))
    assert not tiles([section for section in sections if section != chosen])
    assert not tiles([*sections, chosen])
    assert tiles(reversed(sections))


@pytest.mark.parametrize(("start", "end"), [(0, 0), (2, 1), (-1, 1), (0, HASH_SPACE + 1)])
def test_a_section_that_is_none_is_refused(start: int, end: int) -> None:
    with pytest.raises(InvalidInput) as refused:
        Section(start, end)
    assert refused.value.field == "section"


def test_a_section_is_not_split_at_its_ends() -> None:
    for key in (10, 20, 9, 21):
        with pytest.raises(InvalidInput):
            Section(10, 20).split_at(key)
