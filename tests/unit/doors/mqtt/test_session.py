"""The session, step by step: what a client says and the space answers, and what is to be done then."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from utuple.doors.mqtt.codec.packets import (
    V5,
    V311,
    Ack,
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
)
from utuple.doors.mqtt.codec.reasons import ProtocolError, Reason
from utuple.doors.mqtt.config import Limits
from utuple.doors.mqtt.protocol.greeting import terms_of
from utuple.doors.mqtt.protocol.outgoing import Message
from utuple.doors.mqtt.protocol.session import (
    Delivered,
    Done,
    Effect,
    End,
    Open,
    Received,
    Register,
    Registered,
    Send,
    Session,
    Subscribed,
    Subscription,
    Tick,
)

LIMITS = Limits(receive_maximum=3, topic_aliases=2, session_expiry_most_s=1000)


def session(version: int = V5, limits: Limits = LIMITS, **said: Any) -> Session:
    properties = {Property[name.upper()]: value for name, value in said.items()}
    connect = Connect("c", version, keep_alive_s=10, properties=properties)
    return Session(terms_of(connect, limits, "new"), limits)


def said(to: Session, packet: Packet, now_s: float = 0.0) -> list[Effect]:
    return to.step(Received([packet]), now_s)


def publish(packet_id: int, qos: int = 1, **changes: Any) -> Publish:
    return Publish("a/b", b"x", qos, packet_id=packet_id, **changes)


def message(number: int = 1, topic: str = "a/b", qos: int = 2, **changes: Any) -> Message:
    fields: dict[str, Any] = {"retain": False, "is_retained": False, "handle": f"event {number}"}
    return Message(UUID(int=number), topic, b"x", qos, **{**fields, **changes})


def subscribed(
    to: Session, pattern: str, qos: int = 2, identifier: int = 0, **options: bool
) -> None:
    to.subscribe(Subscription(Filter(pattern, qos, **options), identifier))


def ended(effects: list[Effect]) -> Reason:
    assert isinstance(effects[-1], End)
    return effects[-1].reason


# --- from the client ------------------------------------------------------------------------------


def test_qos_1_is_acknowledged_when_the_space_has_answered_and_not_before() -> None:
    at = session()
    assert said(at, publish(7)) == [Register([(1, publish(7))])]
    assert at.step(Registered([(1, Reason.SUCCESS)]), 0) == [Send(Ack(Kind.PUBACK, 7))]


def test_acknowledgements_come_in_the_order_of_the_messages() -> None:
    at = session()
    said(at, publish(7))
    said(at, publish(8, 2))
    assert at.step(Registered([(2, Reason.SUCCESS)]), 0) == []
    answers = at.step(Registered([(1, Reason.SUCCESS)]), 0)
    assert answers == [Send(Ack(Kind.PUBACK, 7)), Send(Ack(Kind.PUBREC, 8))]


def test_messages_that_came_together_are_registered_together_and_before_what_came_with_them() -> (
    None
):
    at = session()
    came: list[Packet] = [
        publish(7),
        Ping(Kind.PINGREQ),
        publish(8),
        publish(7),
        Disconnect(),
        publish(9),
    ]
    assert at.step(Received(came), 0) == [
        Register([(1, publish(7)), (2, publish(8))]),
        Send(Ping(Kind.PINGRESP)),
        End(Reason.SUCCESS, said=True, with_will=False),
    ]


def test_what_came_before_a_packet_that_breaks_the_protocol_is_registered() -> None:
    effects = session().step(Received([publish(7), Connect("c"), publish(8)]), 0)
    assert effects == [Register([(1, publish(7))]), End(Reason.PROTOCOL_ERROR)]


def test_messages_are_answered_together_and_what_is_of_a_connection_before_not_at_all() -> None:
    at = session()
    at.step(Received([publish(7), publish(8)]), 0)
    at.begin(at.terms, 0)
    at.step(Received([publish(5, 0), publish(7), publish(8, 2)]), 0)
    answers = [(number, Reason.SUCCESS) for number in (1, 0, 4, 2, 3)]
    acks = [Send(Ack(Kind.PUBACK, 7)), Send(Ack(Kind.PUBREC, 8))]
    assert at.step(Registered(answers), 0) == acks


def test_a_message_sent_again_before_its_answer_is_registered_once() -> None:
    at = session()
    said(at, publish(7))
    assert said(at, publish(7, dup=True)) == []


def test_qos_2_sent_again_after_pubrec_is_registered_once_until_it_is_released() -> None:
    at = session()
    said(at, publish(7, 2))
    at.step(Registered([(1, Reason.SUCCESS)]), 0)
    assert said(at, publish(7, 2, dup=True)) == [Send(Ack(Kind.PUBREC, 7))]
    assert said(at, Ack(Kind.PUBREL, 7)) == [Send(Ack(Kind.PUBCOMP, 7))]
    assert said(at, publish(7, 2)) == [Register([(2, publish(7, 2))])]


def test_a_release_of_nothing_is_told_so() -> None:
    at = session()
    assert said(at, Ack(Kind.PUBREL, 9)) == [Send(Ack(Kind.PUBCOMP, 9, Reason.PACKET_ID_NOT_FOUND))]


def test_more_than_the_receive_maximum_ends_a_connection_of_5_and_not_of_3_1_1() -> None:
    for version, expected in ((V5, Reason.RECEIVE_MAXIMUM_EXCEEDED), (V311, None)):
        at = session(version)
        effects = [effect for number in range(1, 5) for effect in said(at, publish(number))]
        reason = effects[-1].reason if isinstance(effects[-1], End) else None
        assert reason is expected


def test_qos_2_that_is_not_released_counts_against_the_receive_maximum() -> None:
    at = session()
    for number in (1, 2, 3):
        said(at, publish(number, 2))
        at.step(Registered([(number, Reason.SUCCESS)]), 0)
    assert ended(said(at, publish(4, 2))) is Reason.RECEIVE_MAXIMUM_EXCEEDED


def test_a_refusal_is_said_in_5_and_ends_the_connection_in_3_1_1() -> None:
    new, old = session(), session(V311)
    for at in (new, old):
        said(at, publish(7))
    refusal = Registered([(1, Reason.TOPIC_NAME_INVALID)])
    assert new.step(refusal, 0) == [Send(Ack(Kind.PUBACK, 7, Reason.TOPIC_NAME_INVALID))]
    assert ended(old.step(refusal, 0)) is Reason.TOPIC_NAME_INVALID


def test_aliases_stand_for_names_within_a_connection() -> None:
    at = session()
    alias = {Property.TOPIC_ALIAS: 2}
    said(at, publish(1, properties=alias))
    (register,) = said(at, Publish("", b"y", 0, properties=alias))
    assert isinstance(register, Register)
    assert [one.topic for _, one in register.messages] == ["a/b"]
    at.begin(at.terms, 0)
    assert ended(said(at, Publish("", b"y", 0, properties=alias))) is Reason.TOPIC_ALIAS_INVALID


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (Connect("c"), Reason.PROTOCOL_ERROR),
        (Suback(Kind.SUBACK, 1, (0,)), Reason.PROTOCOL_ERROR),
        (Publish("a", b"", properties={Property.TOPIC_ALIAS: 3}), Reason.TOPIC_ALIAS_INVALID),
        (
            Publish("a", b"", properties={Property.SUBSCRIPTION_IDENTIFIER: (1,)}),
            Reason.PROTOCOL_ERROR,
        ),
        (Disconnect(properties={Property.SESSION_EXPIRY_INTERVAL: 5}), Reason.PROTOCOL_ERROR),
    ],
)
def test_what_breaks_the_protocol_ends_the_connection(packet: Packet, reason: Reason) -> None:
    assert ended(said(session(), packet)) is reason


def test_goodbye_without_a_reason_has_no_will() -> None:
    assert said(session(), Disconnect()) == [End(Reason.SUCCESS, said=True, with_will=False)]
    (end,) = said(session(), Disconnect(Reason.DISCONNECT_WITH_WILL))
    assert isinstance(end, End)
    assert end.with_will


def test_a_client_that_is_silent_for_one_and_a_half_keep_alives_is_gone() -> None:
    at = session()
    assert said(at, Ping(Kind.PINGREQ), 100.0) == [Send(Ping(Kind.PINGRESP))]
    assert at.step(Tick(), 115.0) == []
    assert ended(at.step(Tick(), 115.1)) is Reason.KEEP_ALIVE_TIMEOUT


def test_a_subscription_is_answered_when_it_is_open() -> None:
    at = session()
    packet = Subscribe(3, (Filter("a/#", 1),))
    assert said(at, packet) == [Open(packet)]
    answer = at.step(Subscribed(Kind.SUBACK, 3, (Reason.GRANTED_QOS_1,)), 0)
    assert answer == [Send(Suback(Kind.SUBACK, 3, (Reason.GRANTED_QOS_1,)))]


# --- to the client --------------------------------------------------------------------------------


def delivered(to: Session, what: Message, pattern: str = "a/#") -> list[Effect]:
    return to.step(Delivered(what, pattern), 0)


def test_qos_0_is_done_when_it_is_sent() -> None:
    at = session()
    subscribed(at, "a/#", 0)
    assert delivered(at, message()) == [Send(Publish("a/b", b"x")), Done("event 1")]


def test_qos_1_is_done_when_the_client_has_acknowledged_it() -> None:
    at = session()
    subscribed(at, "a/#", 1)
    assert delivered(at, message()) == [Send(Publish("a/b", b"x", 1, packet_id=1))]
    assert said(at, Ack(Kind.PUBACK, 1)) == [Done("event 1")]
    assert said(at, Ack(Kind.PUBACK, 1)) == []


def test_qos_2_is_done_when_the_client_has_completed_it() -> None:
    at = session()
    subscribed(at, "a/#")
    delivered(at, message())
    assert said(at, Ack(Kind.PUBREC, 1)) == [Send(Ack(Kind.PUBREL, 1))]
    assert said(at, Ack(Kind.PUBCOMP, 1)) == [Done("event 1")]


def test_what_was_not_acknowledged_is_sent_again_on_the_next_connection_in_order() -> None:
    at = session()
    subscribed(at, "a/#")
    for number in (1, 2):
        delivered(at, message(number))
    said(at, Ack(Kind.PUBREC, 1))
    at.begin(at.terms, 0)
    again = Publish("a/b", b"x", 2, dup=True, packet_id=2)
    assert at.resend() == [Send(Ack(Kind.PUBREL, 1)), Send(again)]
    # The space brings it again too, since it is not acknowledged there: it is the same message.
    assert delivered(at, message(2, handle="anew")) == []
    said(at, Ack(Kind.PUBREC, 2))
    assert said(at, Ack(Kind.PUBCOMP, 2)) == [Done("anew")]


def test_a_client_is_never_sent_more_than_it_takes_at_once() -> None:
    at = session(receive_maximum=2)
    subscribed(at, "a/#")
    for number in (1, 2):
        assert at.has_room
        delivered(at, message(number))
    assert not at.has_room
    said(at, Ack(Kind.PUBREC, 1, Reason.UNSPECIFIED_ERROR))
    assert at.has_room


def test_one_message_for_all_subscriptions_that_it_came_by() -> None:
    at = session()
    subscribed(at, "a/#", 1, identifier=3)
    subscribed(at, "a/+", 2, identifier=2)
    (sent,) = delivered(at, message())
    both = {Property.SUBSCRIPTION_IDENTIFIER: (2, 3)}
    assert sent == Send(Publish("a/b", b"x", 2, packet_id=1, properties=both))
    said(at, Ack(Kind.PUBREC, 1))
    said(at, Ack(Kind.PUBCOMP, 1))
    assert delivered(at, message(handle="the same"), "a/+") == [Done("the same")]


def test_a_subscription_that_comes_later_counts_for_names_that_came_before() -> None:
    at = session()
    for pattern in ("a/#", "a/+"):
        subscribed(at, pattern, 0)
    delivered(at, message(1))
    subscribed(at, "+/b", 1)
    sent, *_ = delivered(at, message(2))
    assert sent == Send(Publish("a/b", b"x", 1, packet_id=1))


def test_an_acknowledgement_of_the_wrong_kind_is_none() -> None:
    at = session()
    subscribed(at, "a/#")
    delivered(at, message())
    assert said(at, Ack(Kind.PUBACK, 1)) == []
    assert said(at, Ack(Kind.PUBREC, 1)) == [Send(Ack(Kind.PUBREL, 1))]


def test_no_local_keeps_a_client_s_own_messages_from_it() -> None:
    at = session()
    subscribed(at, "a/#", no_local=True)
    at.note_own(UUID(int=1))
    assert delivered(at, message(1)) == [Done("event 1")]
    assert delivered(at, message(2)) != [Done("event 2")]


@pytest.mark.parametrize(
    ("as_published", "retain", "is_retained", "shown"),
    [
        (False, True, False, False),
        (True, True, False, True),
        (True, False, False, False),
        (False, True, True, True),
    ],
)
def test_the_retain_flag(as_published: bool, retain: bool, is_retained: bool, shown: bool) -> None:
    at = session()
    subscribed(at, "a/#", 0, retain_as_published=as_published)
    sent, _ = delivered(at, message(retain=retain, is_retained=is_retained))
    assert isinstance(sent, Send)
    assert isinstance(sent.packet, Publish)
    assert sent.packet.retain is shown


def test_what_is_larger_than_a_client_takes_is_not_sent() -> None:
    at = session(maximum_packet_size=20)
    subscribed(at, "a/#")
    assert delivered(at, message(topic="a/" + 20 * "b")) == [Done("event 1")]
    assert isinstance(delivered(at, message(2))[0], Send)


def test_the_first_names_get_the_aliases_that_a_client_allows() -> None:
    at = session(topic_alias_maximum=1)
    subscribed(at, "a/#", 0)
    packets = [delivered(at, message(n, topic))[0] for n, topic in enumerate(("a/b", "a/b", "a/c"))]
    alias = {Property.TOPIC_ALIAS: 1}
    assert packets == [
        Send(Publish("a/b", b"x", properties=alias)),
        Send(Publish("", b"x", properties=alias)),
        Send(Publish("a/c", b"x")),
    ]


# --- greeting -------------------------------------------------------------------------------------


def test_terms_are_the_client_s_wishes_within_the_door_s_limits() -> None:
    said = {Property.SESSION_EXPIRY_INTERVAL: 5000}
    terms = terms_of(Connect("", V5, keep_alive_s=120, properties=said), LIMITS, "new")
    assert (terms.client_id, terms.expiry_s, terms.keep_alive_s) == ("new", 1000, 60)
    assert terms.answer[Property.ASSIGNED_CLIENT_IDENTIFIER] == "new"
    assert terms.answer[Property.SERVER_KEEP_ALIVE] == 60
    assert terms.answer[Property.SESSION_EXPIRY_INTERVAL] == 1000
    assert terms_of(Connect("c", V311, False), LIMITS, "new").expiry_s == 1000


@pytest.mark.parametrize(
    ("connect", "reason"),
    [
        (Connect("", V311, clean_start=False), Reason.CLIENT_ID_NOT_VALID),
        (Connect("x" * 600), Reason.CLIENT_ID_NOT_VALID),
        (
            Connect("c", properties={Property.AUTHENTICATION_METHOD: "x"}),
            Reason.BAD_AUTHENTICATION_METHOD,
        ),
    ],
)
def test_who_may_not_come_in_is_told_why(connect: Connect, reason: Reason) -> None:
    with pytest.raises(ProtocolError) as caught:
        terms_of(connect, LIMITS, "new")
    assert caught.value.reason is reason
