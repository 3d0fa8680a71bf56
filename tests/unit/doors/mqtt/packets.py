"""Packets of any kind, for both versions, as hypothesis makes them; and step lists in short."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from utuple.doors.mqtt.codec.fields import ALLOWED, WILL
from utuple.doors.mqtt.codec.packets import (
    V5,
    V311,
    Ack,
    Auth,
    Connack,
    Connect,
    Disconnect,
    Filter,
    Kind,
    Packet,
    Ping,
    Property,
    Publish,
    Suback,
    Subscribe,
    Unsubscribe,
    Will,
)
from utuple.doors.mqtt.codec.reasons import CONNACK_311, Reason

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
topics = texts.map(lambda text: text.replace("+", "x").replace("#", "y") or "t")
binaries = st.binary(max_size=6)
ids = st.integers(1, 65_535)
flags = st.integers(0, 1)

_LONG = st.integers(0, 0xFFFF_FFFF)
_VALUES: dict[Property, st.SearchStrategy[Any]] = {
    Property.MESSAGE_EXPIRY_INTERVAL: _LONG,
    Property.CORRELATION_DATA: binaries,
    Property.RESPONSE_TOPIC: topics,
    Property.SUBSCRIPTION_IDENTIFIER: st.integers(1, 268_435_455).map(lambda one: (one,)),
    Property.SESSION_EXPIRY_INTERVAL: _LONG,
    Property.SERVER_KEEP_ALIVE: st.integers(0, 65_535),
    Property.AUTHENTICATION_DATA: binaries,
    Property.WILL_DELAY_INTERVAL: _LONG,
    Property.RECEIVE_MAXIMUM: ids,
    Property.TOPIC_ALIAS_MAXIMUM: st.integers(0, 65_535),
    Property.TOPIC_ALIAS: ids,
    Property.MAXIMUM_PACKET_SIZE: st.integers(1, 0xFFFF_FFFF),
    Property.USER_PROPERTY: st.lists(st.tuples(texts, texts), min_size=1, max_size=3).map(tuple),
    **dict.fromkeys(
        (
            Property.PAYLOAD_FORMAT_INDICATOR,
            Property.REQUEST_PROBLEM_INFORMATION,
            Property.REQUEST_RESPONSE_INFORMATION,
            Property.MAXIMUM_QOS,
            Property.RETAIN_AVAILABLE,
            Property.WILDCARD_SUBSCRIPTION_AVAILABLE,
            Property.SUBSCRIPTION_IDENTIFIER_AVAILABLE,
            Property.SHARED_SUBSCRIPTION_AVAILABLE,
        ),
        flags,
    ),
}


def properties(kind: int, version: int) -> st.SearchStrategy[dict[Property, Any]]:
    if version != V5:
        return st.just({})
    allowed = sorted(ALLOWED[kind])
    return st.fixed_dictionaries({}, optional={one: _VALUES.get(one, texts) for one in allowed})


def publishes(version: int) -> st.SearchStrategy[Publish]:
    def with_qos(qos: int) -> st.SearchStrategy[Publish]:
        return st.builds(
            Publish,
            topics,
            binaries,
            st.just(qos),
            st.booleans(),
            st.booleans() if qos else st.just(False),
            ids if qos else st.just(0),
            properties(Kind.PUBLISH, version),
        )

    return st.integers(0, 2).flatmap(with_qos)


def connects(version: int) -> st.SearchStrategy[Connect]:
    wills = st.builds(
        Will, topics, binaries, st.integers(0, 2), st.booleans(), properties(WILL, version)
    )
    names = st.none() | texts
    return st.builds(
        Connect,
        texts,
        st.just(version),
        st.booleans(),
        st.integers(0, 65_535),
        st.none() | wills,
        names if version == V5 else texts,
        st.none() | binaries,
        properties(Kind.CONNECT, version),
    )


def packets(version: int) -> st.SearchStrategy[Packet]:
    of_5 = version == V5
    codes = st.sampled_from(Reason).map(int) if of_5 else st.just(0)
    acks = st.sampled_from((Kind.PUBACK, Kind.PUBREC, Kind.PUBREL, Kind.PUBCOMP)).flatmap(
        lambda kind: st.builds(Ack, st.just(kind), ids, codes, properties(kind, version))
    )
    options = (st.booleans(), st.booleans(), st.integers(0, 2)) if of_5 else (st.just(False),) * 2
    filters = st.lists(
        st.builds(Filter, texts, st.integers(0, 2), *options), min_size=1, max_size=3
    ).map(tuple)
    granted = st.lists(st.sampled_from((0, 1, 2, 0x80)), min_size=1, max_size=3).map(tuple)
    answers = st.sampled_from((Kind.SUBACK, Kind.UNSUBACK) if of_5 else (Kind.SUBACK,)).flatmap(
        lambda kind: st.builds(Suback, st.just(kind), ids, granted, properties(kind, version))
    )
    reasons = st.sampled_from(
        Reason if of_5 else [r for r in CONNACK_311 if r != Reason.SERVER_BUSY]
    )
    made: list[st.SearchStrategy[Packet]] = [
        publishes(version),
        connects(version),
        acks,
        answers,
        st.builds(Connack, reasons, st.booleans(), properties(Kind.CONNACK, version)),
        st.builds(Subscribe, ids, filters, properties(Kind.SUBSCRIBE, version)),
        st.builds(
            Unsubscribe,
            ids,
            st.lists(texts, min_size=1, max_size=3).map(tuple),
            properties(Kind.UNSUBSCRIBE, version),
        ),
        st.sampled_from((Ping(Kind.PINGREQ), Ping(Kind.PINGRESP))),
        st.builds(Disconnect, codes, properties(Kind.DISCONNECT, version)),
    ]
    if of_5:
        made.append(st.builds(Auth, codes, properties(Kind.AUTH, version)))
    return st.one_of(made)


versions = st.sampled_from((V311, V5))
