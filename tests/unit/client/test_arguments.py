"""What a user writes, and what he is told when it is wrong."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from utuple.client.arguments import Place, instant_us, template
from utuple.errors import InvalidInput
from utuple.model.utuple import Template, datetime_of

TOKYO = timezone(timedelta(hours=9))
NOON = datetime(2026, 11, 17, 12, tzinfo=TOKYO)


@pytest.mark.parametrize("earlier", [timedelta(0), timedelta(seconds=1)])
def test_an_until_that_is_not_after_since_is_shown_as_it_was_given(earlier: timedelta) -> None:
    until = NOON - earlier
    with pytest.raises(InvalidInput) as caught:
        template(Place(since=NOON, until=until))
    assert caught.value.value is until
    assert f"until: {until.isoformat()} is refused" in str(caught.value)
    assert "2026-11-17T12:00:00+09:00" in caught.value.rule


def test_the_model_itself_shows_an_instant_and_no_microseconds() -> None:
    with pytest.raises(InvalidInput, match=r"until: 2026-11-17T03:00:00\.000001"):
        Template(since_us=instant_us("since", NOON) + 2, until_us=instant_us("until", NOON) + 1)
    assert datetime_of(instant_us("since", NOON)) == NOON.astimezone(UTC)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (NOON.replace(tzinfo=None), "since: 2026-11-17T12:00:00 is refused: must have a time zone"),
        (datetime(1, 1, 1, tzinfo=TOKYO), "since: 0001-01-01T00:00:00+09:00 is refused: must lie"),
        (
            datetime(9999, 12, 31, 23, 59, tzinfo=timezone(timedelta(hours=-9))),
            "since: 9999-12-31T23:59:00-09:00 is refused: must lie in the years",
        ),
        ("yesterday", "since: 'yesterday' is refused: must be a datetime"),
    ],
)
def test_a_wrong_instant_is_shown_as_people_write_it(value: object, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        instant_us("since", value)
    assert said in str(caught.value)
