# SPDX-License-Identifier: BSD-3-Clause
"""Line ends: bare CR, bare LF, folds, empty lines, and controls in lines (RFC 9112 2.2, 5.2)."""
from tests.http1.case import FIVE, HOST, SMUGGLED, Group, get, head, post

group = Group("line ends")
refused, served = group.refused, group.served

BARE, FOLD, EMPTY, VALUE = "9112 2.2", "9112 5.2", "9112 2.2", "9110 5.5"
LINE = b"GET /one HTTP/1.1"

# --- bare CR and LF -----------------------------------------------------------------------------

for case, raw in (
        ("lf_only", LINE + b"\n" + HOST + b"\n\n"),
        ("lf_behind_the_request_line", LINE + b"\n" + HOST + b"\r\n\r\n"),
        ("lf_behind_a_field", LINE + b"\r\n" + HOST + b"\n\r\n"),
        ("lf_as_the_empty_line", LINE + b"\r\n" + HOST + b"\r\n\n"),
        ("lf_twice_behind_a_field", LINE + b"\r\n" + HOST + b"\n\n"),
        ("cr_only", LINE + b"\r" + HOST + b"\r\r"),
        ("cr_behind_the_request_line", LINE + b"\r" + HOST + b"\r\n\r\n"),
        ("cr_behind_a_field", LINE + b"\r\n" + HOST + b"\rX: y\r\n\r\n"),
        ("cr_as_the_empty_line", LINE + b"\r\n" + HOST + b"\r\n\rX"),
        ("cr_cr_lf_behind_the_request_line", LINE + b"\r\r\n" + HOST + b"\r\n\r\n"),
        ("cr_cr_lf_behind_a_field", LINE + b"\r\n" + HOST + b"\r\r\n\r\n"),
        ("cr_cr_lf_as_the_empty_line", LINE + b"\r\n" + HOST + b"\r\n\r\r\n"),
        ("lf_cr", LINE + b"\n\r" + HOST + b"\n\r\n\r"),
        ("lf_in_a_value", get(b"X: a\nY: b")),
        ("lf_lf_in_a_value", get(b"X: a\n\n" + SMUGGLED)),
        ("cr_in_a_value", get(b"X: a\rY: b")),
        ("cr_at_the_begin_of_a_value", get(b"X: \ry")),
        ("cr_at_the_end_of_a_value", get(b"X: y\r")),
        ("lf_at_the_end_of_the_last_value", get(b"X: y\n")),
        ("cr_hides_a_request", get(b"X: a\r\r" + SMUGGLED))):
    refused(case, raw, "h1_line_end", BARE)
for case, raw in (
        ("cr_in_the_request_line", head(b"GET /one\r HTTP/1.1", HOST)),
        ("lf_in_the_request_line", head(b"GET /one\n HTTP/1.1", HOST)),
        ("cr_as_space", head(b"GET\r/one\rHTTP/1.1", HOST)),
        ("lf_as_space", head(b"GET\n/one\nHTTP/1.1", HOST)),
        ("cr_in_a_name", get(b"X\rY: z")), ("lf_in_a_name", get(b"X\nY: z")),
        ("cr_then_a_field", get(b"\rX: y")), ("lf_then_a_field", get(b"\nX: y"))):
    refused(case, raw, "h1_line_end", BARE)
refused("crlf_in_the_request_line", head(b"GET /one\r\n HTTP/1.1", HOST),
        "h1_request_line", BARE)

# --- empty lines before a request. First bytes of a connection tell the protocol, so that most of
# these follow a request -------------------------------------------------------------------------

served("crlf_before_a_request", get() + b"\r\n", EMPTY)
served("crlf_behind_a_body", post(FIVE, body=b"hello\r\n"), EMPTY, b"hello")
refused("two_crlf_before_a_request", get() + b"\r\n\r\n", "h1_request_line", EMPTY, before=(200,))
refused("many_crlf_before_a_request", get() + b"\r\n" * 100, "h1_request_line", EMPTY,
        before=(200,))
refused("lf_before_a_request", get() + b"\n", "h1_line_end", EMPTY, before=(200,))
refused("cr_before_a_request", get() + b"\r", "h1_line_end", EMPTY, before=(200,))
refused("cr_cr_lf_before_a_request", get() + b"\r\r\n", "h1_line_end", EMPTY, before=(200,))
refused("space_before_a_request", get() + b" ", "h1_request_line", "9112 3", before=(200,))
refused("nul_before_a_request", get() + b"\0", "h1_request_line", "9112 3", before=(200,))
refused("blank_line_before_a_request", get() + b" \r\n", "h1_request_line", "9112 3", before=(200,))

# --- folds --------------------------------------------------------------------------------------

for case, fields in (
        ("fold", (b"X: a\r\n b",)), ("fold_tab", (b"X: a\r\n\tb",)),
        ("fold_of_nothing", (b"X: a\r\n ",)), ("fold_of_an_empty_value", (b"X:\r\n a",)),
        ("fold_like_a_field", (b"X: a\r\n Y: b",)), ("fold_twice", (b"X: a\r\n b\r\n c",)),
        ("fold_before_the_end", (b"X: a\r\n \r\n ",)),
        ("fold_of_host", (b"X: y", b" " + HOST))):
    refused(case, get(*fields), "h1_field_value", FOLD)
refused("space_before_the_first_field", head(LINE, b" " + HOST), "h1_field_value", BARE)
refused("space_before_the_empty_line", LINE + b"\r\n" + HOST + b"\r\n \r\n\r\n", "h1_field_value",
        FOLD)
refused("empty_line_before_host", head(LINE, b"", HOST), "h1_host", "9112 3.2")

# --- controls -----------------------------------------------------------------------------------

for case, byte in (
        ("nul", b"\0"), ("soh", b"\1"), ("backspace", b"\x08"), ("vertical_tab", b"\x0b"),
        ("form_feed", b"\x0c"), ("escape", b"\x1b"), ("unit_separator", b"\x1f"), ("del", b"\x7f")):
    refused(case + "_in_a_value", get(b"X: a" + byte + b"b"), "h1_field_value", VALUE)
served("tab_in_a_value", get(b"X: a\tb"), VALUE)
served("obs_text_in_a_value", get(b"X: a\x85\xa0\xff\xe2\x80\xa8b"), VALUE)
served("spaces_around_a_value", get(b"X: \t a \t "), "9112 5")
served("empty_value", get(b"X:", b"Y: "), "9112 5")
