"""A batch of commands is admitted at one glance only if each of its rows would be."""

from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as st

from sca_server.commands import Commands, admit
from utuple.errors import InvalidInput
from utuple.model.utuple import Family

GOOD = ("room-1", bytes.fromhex("0198c0de") + bytes(12), b'{"on":true}')
ROWS = st.tuples(
    st.sampled_from([GOOD[0], "raum-ü", "", "a\x00b", "x" * 5_000]),
    st.sampled_from([GOOD[1], b"\x7f" + bytes(15), b"\x80" + bytes(15), b"\xff" * 16]),
    st.sampled_from([GOOD[2], b'{ "on": true }', b'{"on":NaN}', b"[1]", b"{"]),
)


def batch(rows: list[tuple[str, bytes, bytes]]) -> Commands:
    addresses, ids, payloads = zip(*rows, strict=True)
    which = array("I", bytes(4 * len(rows)))
    return Commands((Family("aircon", "power"),), which, b"".join(ids), addresses, payloads)


def is_good(row: tuple[str, bytes, bytes]) -> bool:
    """Beside one that is refused, so that each is looked at closely."""
    _, places, _ = admit(batch([row, ("", *GOOD[1:])]))
    return 0 in places


@given(st.lists(st.one_of(st.just(GOOD), ROWS), min_size=1, max_size=6))
def test_a_batch_is_admitted_as_its_rows_are_one_by_one(
    rows: list[tuple[str, bytes, bytes]],
) -> None:
    admitted, places, wrong = admit(batch(rows))
    good = [at for at, row in enumerate(rows) if is_good(row)]
    assert list(places) == good
    assert [row for row, _ in wrong] == [at for at in range(len(rows)) if at not in good]
    assert all(isinstance(error, InvalidInput) for _, error in wrong)
    assert list(admitted.addresses) == [rows[at][0] for at in good]
    assert [admitted.id_at(at) for at in range(len(admitted))] == [rows[at][1] for at in good]
    assert set(admitted.payloads) <= {b'{"on":true}'}
