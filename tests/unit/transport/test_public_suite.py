"""The public conformance suite for RFC 9113 (h2spec 2.6, 146 cases, and one that it asks with --strict only) beside ours.

The suite itself is a program in Go that is in no package registry we have; so each of its cases, by its section there and in its order,
is named here with the case of ours that asks the same. That such a case exists, and how many there are, is what is tested here; that it passes,
where it stands.
"""

from __future__ import annotations

from tests.unit.transport import test_rfc9113_connections as connections
from tests.unit.transport import test_rfc9113_requests as requests

OURS: dict[str, tuple[str, ...]] = {
    "generic/1": ("test_section_3_4_the_server_says_its_settings_first",),
    "generic/2": (
        "5.1 PRIORITY on an idle stream",
        "5.1 WINDOW_UPDATE on a stream half closed",
        "5.1 PRIORITY on a stream half closed",
        "5.1 RST_STREAM on a stream half closed",
        "5.1 PRIORITY on a closed stream",
    ),
    "generic/3.1": (
        "6.1 DATA of a request",
        "6.1 DATA in several frames",
        "6.1 DATA with padding",
    ),
    "generic/3.2": (
        "6.2 HEADERS",
        "6.2 HEADERS with padding",
        "5.3 a priority in HEADERS",
    ),
    "generic/3.3": (
        "6.3 PRIORITY with the least weight",
        "6.3 PRIORITY with the greatest weight",
        "6.3 PRIORITY that depends on another stream",
        "6.3 PRIORITY that is exclusive",
        "5.1 PRIORITY on an idle stream",
    ),
    "generic/3.4": ("7 RST_STREAM with an unknown code",),
    "generic/3.5": ("6.5.2 settings of every kind",),
    "generic/3.7": ("test_section_6_7_a_ping_is_answered_with_what_it_holds",),
    "generic/3.8": ("test_section_6_8_a_client_that_leaves_is_let_go_when_its_calls_are_over",),
    "generic/3.9": (
        "6.9 WINDOW_UPDATE on the connection",
        "6.9 WINDOW_UPDATE on a stream",
    ),
    "generic/3.10": (
        "6.10 one CONTINUATION",
        "6.10 several CONTINUATIONs",
    ),
    "generic/4": (
        "8.1 GET",
        "8.1 HEAD",
        "6.1 DATA of a request",
        "test_section_8_1_a_request_with_trailers_is_answered",
    ),
    "generic/5": (
        "RFC 7541 6.1 indexed",
        "RFC 7541 6.2.1 indexed name",
        "RFC 7541 6.2.1 indexed name, Huffman",
        "RFC 7541 6.2.1 new name",
        "RFC 7541 6.2.1 new name, Huffman",
        "RFC 7541 6.2.2 indexed name",
        "RFC 7541 6.2.2 indexed name, Huffman",
        "RFC 7541 6.2.2 new name",
        "RFC 7541 6.2.2 new name, Huffman",
        "RFC 7541 6.2.3 indexed name",
        "RFC 7541 6.2.3 indexed name, Huffman",
        "RFC 7541 6.2.3 new name",
        "RFC 7541 6.2.3 new name, Huffman",
        "test_rfc_7541_6_3_a_table_may_be_given_up",
        "test_rfc_7541_6_3_a_table_may_be_given_up",
    ),
    "http2/3.5": (
        "test_section_3_4_the_server_says_its_settings_first",
        "test_section_3_4_who_does_not_begin_with_the_preface_is_hung_up_on",
    ),
    "http2/4.1": (
        "4.1 a frame of unknown type",
        "4.1 undefined flags",
        "4.1 the reserved bit",
    ),
    "http2/4.2": (
        "4.2 DATA of 2^14 bytes",
        "4.2 DATA larger than MAX_FRAME_SIZE",
        "4.2 HEADERS larger than they may be",
    ),
    "http2/4.3": (
        "4.3 a header block that is none",
        "4.3 PRIORITY between headers",
        "4.3 HEADERS of another stream between headers",
    ),
    "http2/5.1": (
        "5.1 DATA on an idle stream",
        "5.1 RST_STREAM on an idle stream",
        "5.1 WINDOW_UPDATE on an idle stream",
        "5.1 CONTINUATION on an idle stream",
        "5.1 DATA on a stream half closed",
        "5.1 HEADERS on a stream half closed",
        "5.1 CONTINUATION on a stream half closed",
        "5.1 DATA after RST_STREAM",
        "5.1 HEADERS after RST_STREAM",
        "5.1 CONTINUATION after RST_STREAM",
        "5.1 DATA on a closed stream",
        "5.1 HEADERS on a closed stream",
        "5.1 CONTINUATION on a closed stream",
    ),
    "http2/5.1.1": (
        "5.1.1 an even number",
        "5.1.1 a number below the last",
    ),
    "http2/5.1.2": ("test_section_5_1_2_more_streams_than_allowed_are_refused_one_by_one",),
    "http2/5.3.1": (
        "5.3.1 HEADERS that depend on themselves",
        "5.3.1 PRIORITY that depends on itself",
    ),
    "http2/5.4.1": (
        "6.7 PING on a stream",
        "test_section_5_4_1_a_connection_error_is_said_before_it_is_closed",
    ),
    "http2/5.5": (
        "5.5 an unknown frame",
        "5.5 an unknown frame between headers",
    ),
    "http2/6.1": (
        "6.1 DATA on stream 0",
        "5.1 DATA on a closed stream",
        "6.1 more padding than DATA",
    ),
    "http2/6.2": (
        "6.2 HEADERS without an end, then PRIORITY",
        "6.2 HEADERS without an end, then another stream",
        "6.2 HEADERS on stream 0",
        "6.2 more padding than HEADERS",
    ),
    "http2/6.3": (
        "6.3 PRIORITY on stream 0",
        "6.3 PRIORITY of another size",
    ),
    "http2/6.4": (
        "6.4 RST_STREAM on stream 0",
        "5.1 RST_STREAM on an idle stream",
        "6.4 RST_STREAM of another size",
    ),
    "http2/6.5": (
        "6.5 SETTINGS that answer and set",
        "6.5 SETTINGS on a stream",
        "6.5 SETTINGS of an odd size",
    ),
    "http2/6.5.2": (
        "6.5.2 ENABLE_PUSH of 2",
        "6.5.2 INITIAL_WINDOW_SIZE too large",
        "6.5.2 MAX_FRAME_SIZE too small",
        "6.5.2 MAX_FRAME_SIZE too large",
        "6.5.2 an unknown setting",
    ),
    "http2/6.5.3": (
        "test_section_6_5_3_settings_are_taken_in_their_order_and_answered",
        "test_section_6_5_3_settings_are_taken_in_their_order_and_answered",
    ),
    "http2/6.7": (
        "test_section_6_7_a_ping_is_answered_with_what_it_holds",
        "6.7 an answer to a ping that was not sent",
        "6.7 PING on a stream",
        "6.7 PING of another size",
    ),
    "http2/6.8": ("6.8 GOAWAY on a stream",),
    "http2/6.9": (
        "6.9 WINDOW_UPDATE of 0",
        "6.9 WINDOW_UPDATE of 0 on a stream",
        "6.9 WINDOW_UPDATE of another size",
    ),
    "http2/6.9.1": (
        "test_section_6_9_1_no_more_is_sent_than_a_window_of_one_byte_takes",
        "6.9.1 the connection's window above the most",
        "6.9.1 a stream's window above the most",
    ),
    "http2/6.9.2": (
        "test_section_6_9_2_new_settings_change_windows_that_are_open",
        "test_section_6_9_2_a_window_may_become_negative_and_is_kept_so",
        "6.5.2 INITIAL_WINDOW_SIZE too large",
    ),
    "http2/6.10": (
        "6.10 several CONTINUATIONs",
        "6.10 CONTINUATION that is followed by DATA",
        "6.10 CONTINUATION on stream 0",
        "6.10 CONTINUATION after HEADERS that had ended",
        "6.10 CONTINUATION after CONTINUATION that had ended",
        "6.10 CONTINUATION after DATA",
    ),
    "http2/7": (
        "test_section_6_8_a_client_that_leaves_is_let_go_when_its_calls_are_over",
        "7 RST_STREAM with an unknown code",
    ),
    "http2/8.1": ("test_section_8_1_headers_in_the_middle_of_a_request_break_it",),
    "http2/8.1.2": ("8.2.1 an upper-case name",),
    "http2/8.1.2.1": (
        "8.3 an unknown pseudo-header",
        "8.3 a pseudo-header of responses",
        "test_section_8_1_pseudo_headers_in_trailers_break_it",
        "8.3 a pseudo-header after a regular one",
    ),
    "http2/8.1.2.2": (
        "8.2.2 connection",
        "8.2.2 te of anything else",
    ),
    "http2/8.1.2.3": (
        "8.3.1 an empty :path",
        "8.3.1 no :method",
        "8.3.1 no :scheme",
        "8.3.1 no :path",
        "8.3.1 :method twice",
        "8.3.1 :scheme twice",
        "8.3.1 :path twice",
    ),
    "http2/8.1.2.6": (
        "test_section_8_1_1_data_is_as_long_as_was_declared",
        "test_section_8_1_1_data_is_as_long_as_was_declared",
    ),
    "http2/8.2": ("6.6 PUSH_PROMISE from a client",),
    "hpack/2.3.3": (
        "RFC 7541 2.3.3 an index beyond the tables",
        "RFC 7541 2.3.3 a name beyond the tables",
    ),
    "hpack/4.2": ("RFC 7541 4.2 a table's size at the end",),
    "hpack/5.2": (
        "RFC 7541 5.2 Huffman padding longer than 7 bits",
        "RFC 7541 5.2 Huffman padding of zeros",
        "RFC 7541 5.2 Huffman's end of string",
    ),
    "hpack/6.1": ("RFC 7541 6.1 index 0",),
    "hpack/6.3": ("RFC 7541 6.3 a table larger than was allowed",),
}


def test_each_of_its_cases_has_one_of_ours() -> None:
    tables = (
        connections.ANSWERED,
        connections.BROKEN,
        connections.STREAM_BROKEN,
        requests.ANSWERED,
        requests.RAW,
        requests.MALFORMED,
    )
    known = {*vars(connections), *vars(requests)}.union(*tables)
    named = [case for cases in OURS.values() for case in cases]
    assert [case for case in named if case not in known] == []
    assert len(named) == 147
