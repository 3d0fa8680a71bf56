"""The audit's chain: what was written holds, and no change of it goes unseen."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from utuple.security.audit import Broken, Entry, Head, verified

words = st.text(st.characters(codec="utf-8"), max_size=8)
contents = st.tuples(
    st.integers(0, 2**60),
    words,
    words,
    st.dictionaries(words, words | st.integers(-9, 9), max_size=2),
)


def chain(written: list[tuple[int, str, str, dict[str, object]]]) -> list[Entry]:
    head, entries = Head(), []
    for time_us, who, what, about in written:
        entries.append(head.next(time_us, who, what, about))
        head = head.after(entries[-1])
    return entries


@given(st.lists(contents, max_size=6))
def test_a_chain_that_was_written_holds_and_ends_where_it_was_written_to(
    written: list[tuple[int, str, str, dict[str, object]]],
) -> None:
    entries = chain(written)
    head = Head().after(entries[-1]) if entries else Head()
    assert verified([entry.line() for entry in entries]) == head
    assert verified([entry.line() for entry in entries], head) == head


@given(st.lists(contents, min_size=1, max_size=5, unique_by=repr), st.data())
def test_no_line_can_be_changed_dropped_or_moved(
    written: list[tuple[int, str, str, dict[str, object]]], data: st.DataObject
) -> None:
    entries = chain(written)
    head = Head().after(entries[-1])
    lines = [entry.line() for entry in entries]
    at = data.draw(st.integers(0, len(lines) - 1))
    match data.draw(st.sampled_from(["change", "drop", "repeat", "cut"])):
        case "change":
            lines[at] = orjson.dumps({**orjson.loads(lines[at]), "who": entries[at].who + "x"})
        case "drop":
            del lines[at]
        case "repeat":
            lines.insert(at, lines[at])
        case _:
            lines = lines[:at]
    with pytest.raises(Broken):
        verified(lines, head)


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"1", b"{}", b'{"number": 1}'])
def test_what_is_no_entry_is_named_by_its_line(line: bytes) -> None:
    first = Head().next(1, "", "grant", {})
    with pytest.raises(Broken, match="line 2: it is no entry"):
        verified([first.line(), line])


def test_a_head_in_the_middle_is_reached_by_a_longer_chain() -> None:
    entries = chain([(1, "a", "grant", {}), (2, "a", "revoke", {})])
    assert verified([entry.line() for entry in entries], Head().after(entries[0])).number == 2
