"""From what a user writes to uTuples, checked before anything is sent. Pure: ids and time are given."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from utuple.errors import InvalidInput
from utuple.model.area import Area
from utuple.model.condition import (
    ANY,
    AddressCondition,
    Present,
    Where,
    address_condition,
    data_template,
    encode_where,
)
from utuple.model.identity import named_id
from utuple.model.limits import MAX_TIME_US, MIN_TIME_US
from utuple.model.packed import check_bytes, check_many, encode_metadata
from utuple.model.terms import DEFAULT, DropPolicy, Terms
from utuple.model.utuple import (
    EPOCH,
    Exact,
    Template,
    UTuple,
    check_lifetime,
    family,
    must_lie_after,
)
from utuple.model.value import Value, check_name, encode_data, plain, plain_scalar

_US = timedelta(microseconds=1)

MIN_READER_LIFETIME_S = 0.1
"""Between its registration and its attachment a formal must not expire: two messages and a commit."""

AddressAsked = str | AddressCondition | None
"""`address=` of a template: a text, `prefix(...)`, `one_of(...)`, `between(...)`, or None for any."""


class Place(NamedTuple):
    """The metadata conditions of `watch`, `read` and `command`, as the user wrote them."""

    address: AddressAsked = None
    area: Area | None = None
    since: datetime | None = None
    until: datetime | None = None


def check_timeout(timeout_s: object) -> None:
    if timeout_s is None:
        return
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float) or not timeout_s >= 0:
        raise InvalidInput(
            "timeout_s", timeout_s, "must be a number of seconds, 0 or more, or None"
        )


def instant_us(field: str, value: object) -> int:
    """An instant of the user's, in microseconds. Without a zone it would mean another instant on
    another machine."""
    if not isinstance(value, datetime):
        raise InvalidInput(field, value, "must be a datetime")
    if value.tzinfo is None or value.utcoffset() is None:
        raise InvalidInput(
            field, value, "must have a time zone, such as datetime.now(timezone.utc)"
        )
    time_us = (value - EPOCH) // _US
    if not MIN_TIME_US <= time_us < MAX_TIME_US:
        raise InvalidInput(field, value, "must lie in the years 1 to 9999 of UTC")
    return time_us


def template(place: Place) -> Template:
    since_us = None if place.since is None else instant_us("since", place.since)
    until_us = None if place.until is None else instant_us("until", place.until)
    if since_us is not None and until_us is not None and since_us >= until_us:
        assert place.since is not None
        raise InvalidInput("until", place.until, must_lie_after(place.since))
    return Template(address_condition(place.address), since_us, until_us, place.area)


def check_limit(limit: object, newest_first: object) -> int | None:
    """Of `read`."""
    limit = plain_scalar(limit)
    if limit is not None and (type(limit) is not int or limit < 1):
        raise InvalidInput("limit", limit, "must be a whole number above 0, or None for all")
    if not isinstance(newest_first, bool):
        raise InvalidInput("newest_first", newest_first, "must be True or False")
    return limit


def check_reader_lifetime(lifetime_s: object) -> None:
    """Of `watch` and `serve`. An EF or CF that dies before its reader could attach would be registered for ever."""
    if not check_lifetime(lifetime_s) >= MIN_READER_LIFETIME_S:
        rule = f"must be at least {MIN_READER_LIFETIME_S} seconds: a reader that is away is kept so long"
        raise InvalidInput("lifetime_s", lifetime_s, rule)


def formal(
    id_: bytes,
    subject: str,
    type_: str,
    metadata: Exact | Template,
    where: Mapping[str, object] | None,
    reader: str,
    lifetime_s: float,
    terms: Terms | None = None,
) -> UTuple:
    """An EF or a CF, as its metadata is a template or exact."""
    wanted = data_template(where)
    _check_size(metadata, wanted)
    return UTuple(
        id=id_,
        family=family(subject, type_),
        metadata=metadata,
        data=None,
        where=wanted,
        lifetime_s=check_lifetime(lifetime_s),
        reader=check_name("reader", reader),
        terms=terms,
    )


def agreed(
    reader: str | None,
    absent: DropPolicy,
    ack_within_s: float | None = None,
    attempts: int | None = None,
    *,
    share: bool = False,
    sticky: bool = False,
) -> Terms | None:
    """The terms a watch asks for; None: the default. They are agreed with servers that know the reader by its name."""
    terms = Terms(absent, ack_within_s, attempts, share, sticky)
    if terms == DEFAULT:
        return None
    if reader is None:
        rule = "a watch with absent=, ack_within_s=, attempts= or share= needs a reader's name"
        raise InvalidInput("reader", reader, rule)
    return terms


def commanding(
    id_: bytes,
    subject: str,
    type_: str,
    place: Place,
    data: Mapping[str, Value],
    lifetime_s: float,
    *,
    everywhere: bool = False,
) -> UTuple:
    """A CA. One that names no devices would switch all of them, mostly by mistake."""
    encode_data(data)
    asked = template(place)
    if not isinstance(everywhere, bool):
        raise InvalidInput("everywhere", everywhere, "must be True or False")
    if not everywhere and asked.area is None and isinstance(asked.address, Present):
        raise InvalidInput(
            "everywhere",
            everywhere,
            "a command without address= and area= goes to every device, which needs everywhere=True",
        )
    _check_size(asked, {})
    return UTuple(
        id=id_,
        family=family(subject, type_),
        metadata=asked,
        data=plain(data),
        where=None,
        lifetime_s=check_lifetime(lifetime_s),
    )


def _check_size(metadata: Exact | Template, where: Where) -> None:
    """As a server will: before anything is sent, and with the user's own words."""
    address = metadata.address if isinstance(metadata, Template) else ANY
    check_many(where, address)
    place = len(encode_metadata(metadata)) if isinstance(metadata, Template) else 0
    check_bytes(place, len(encode_where(where)))


def named(formal: UTuple, owner: str) -> UTuple:
    """The same formal under the fixed id that a named reader of this owner finds it by again."""
    return UTuple(
        id=named_id(formal, owner),
        family=formal.family,
        metadata=formal.metadata,
        data=None,
        where=formal.where,
        lifetime_s=formal.lifetime_s,
        reader=formal.reader,
        terms=formal.terms,
    )
