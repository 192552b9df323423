# SPDX-License-Identifier: BSD-3-Clause
"""Expect and interim responses (RFC 9110 10.1.1, 15.2): bodies that are sent at once, or only after
the response 100 (Continue), and expectations that hide the end of a request."""
from tests.http1.case import CHUNKED, FIVE, HOST, SMUGGLED, Group, chunked, get, head, post

group = Group("1xx")
refused, served = group.refused, group.served

CONTINUE = b"Expect: 100-continue"
EXPECT, VALUE = "9110 10.1.1", "9110 10.1.1"
HELLO = b"5\r\nhello\r\n0\r\n\r\n"
ABSENT, WRONG = b"POST /nothing HTTP/1.1", b"POST /one HTTP/1.1"

# --- the body is sent at once -------------------------------------------------------------------

served("early_body", post(CONTINUE, FIVE), EXPECT, b"hello")
served("early_body_upper_case", post(b"EXPECT: 100-CONTINUE", FIVE), EXPECT, b"hello")
served("early_body_with_spaces", post(b"Expect: \t100-continue ", FIVE), EXPECT, b"hello")
served("early_body_without_space", post(b"Expect:100-continue", FIVE), EXPECT, b"hello")
served("early_chunks", chunked(HELLO, CONTINUE), EXPECT, b"hello")
served("early_body_like_a_request", post(CONTINUE, b"Content-Length: %d" % len(SMUGGLED),
                                         body=SMUGGLED), EXPECT, SMUGGLED)
served("early_body_then_a_request", post(CONTINUE, FIVE) + SMUGGLED, EXPECT, b"hello", 404)
served("early_bodies", post(CONTINUE, FIVE) * 3, EXPECT, b"hello", b"hello", b"hello")
served("early_body_closes", post(CONTINUE, FIVE, b"Connection: close") + SMUGGLED, EXPECT, b"hello",
       closes=True)
served("length_0", post(CONTINUE, b"Content-Length: 0", body=b""), EXPECT, b"")
served("length_0_then_a_request", post(CONTINUE, b"Content-Length: 0", body=SMUGGLED), EXPECT, b"",
       404)
served("no_length_then_a_request", post(CONTINUE, body=SMUGGLED), EXPECT, b"", 404)
served("empty_chunked_body", chunked(b"0\r\n\r\n", CONTINUE), EXPECT, b"")
served("get", get(CONTINUE), EXPECT)
served("get_then_a_request", get(CONTINUE) + SMUGGLED, EXPECT, 200, 404)
served("head", get(CONTINUE, line=b"HEAD /one HTTP/1.1") + get(), EXPECT, 200, 200)
served("get_with_a_body", get(CONTINUE, b"Content-Length: %d" % len(SMUGGLED)) + SMUGGLED, EXPECT,
       closes=None)
served("other_name", post(b"X-Expect: x", FIVE), EXPECT, b"hello")
served("100_in_another_field", post(b"X: 100-continue", FIVE), EXPECT, b"hello")

# --- the request is refused while its body is on the way: the connection ends -------------------

FINAL = "9110 10.1.1"
served("absent", post(CONTINUE, FIVE, line=ABSENT), FINAL, 405, closes=True)
served("method_not_allowed", post(CONTINUE, FIVE, line=WRONG), FINAL, 405, closes=True)
served("body_like_a_request_refused", post(CONTINUE, b"Content-Length: %d" % len(SMUGGLED),
                                           line=WRONG, body=SMUGGLED), FINAL, 405, closes=True)
served("chunked_body_refused", post(CONTINUE, CHUNKED, line=WRONG, body=HELLO), FINAL, 405,
       closes=True)
served("refused_without_expect", post(FIVE, line=WRONG), "9112 9.3", 405)
served("refused_without_a_body", post(CONTINUE, b"Content-Length: 0", line=WRONG, body=b""), FINAL,
       405)

# --- other expectations: 417 --------------------------------------------------------------------

UNKNOWN = "9110 10.1.1"
for case, fields in (
        ("unknown", (b"Expect: more",)), ("list", (b"Expect: 100-continue, more",)),
        ("list_unknown_first", (b"Expect: more, 100-continue",)),
        ("second_field", (CONTINUE, b"Expect: more")), ("first_field", (b"Expect: more", CONTINUE)),
        ("parameter", (b"Expect: 100-continue;a=b",)), ("value", (b"Expect: 100-continue=1",)),
        ("word_before", (b"Expect: y 100-continue",)),
        ("word_behind", (b"Expect: 100-continue y",)),
        ("100", (b"Expect: 100",)), ("200_ok", (b"Expect: 200-ok",)),
        ("quoted", (b'Expect: "100-continue"',)),
        ("underscore", (b"Expect: 100_continue",)), ("space", (b"Expect: 100 continue",)),
        ("obs_text", (b"Expect: 100-continue\xa0",))):
    refused("expect_" + case, post(*fields, FIVE), "request_expectation", UNKNOWN, 417)
refused("expect_unknown_without_a_body", get(b"Expect: more"), "request_expectation", UNKNOWN, 417)
refused("expect_unknown_chunked", chunked(HELLO, b"Expect: more"), "request_expectation", UNKNOWN,
        417)
served("expect_twice", post(CONTINUE, CONTINUE, FIVE), EXPECT, b"hello")
served("expect_twice_in_a_list", post(b"Expect: 100-continue, 100-continue", FIVE), EXPECT,
       b"hello")
for case, value in (("first", b",100-continue"), ("last", b"100-continue,"), ("alone", b","),
                    ("many", b" , ,\t100-continue,, ,")):
    served("expect_empty_element_" + case, post(b"Expect: " + value, FIVE), "9110 5.6.1.2",
           b"hello")
refused("expect_unknown_behind_empty_ones", post(b"Expect: ,,more", FIVE), "request_expectation",
        UNKNOWN, 417)

# --- Expect beside errors -----------------------------------------------------------------------

for case, line in (("space", b"Expect : 100-continue"), ("tab", b"Expect\t: 100-continue")):
    refused("name_and_" + case, post(line, FIVE), "h1_field_name", "9112 5.1")
refused("folded", post(b"Expect:\r\n 100-continue", FIVE), "h1_field_value", "9112 5.2")
refused("nul", post(b"Expect: 100-continue\0", FIVE), "h1_field_value", "9110 5.5")
refused("bare_lf", post(b"Expect: 100-continue\nX: y", FIVE), "h1_line_end", "9112 2.2")
refused("two_framings", post(CONTINUE, CHUNKED, FIVE, body=HELLO), "h1_length_conflict", "9112 6.3")
refused("two_lengths", post(CONTINUE, FIVE, FIVE), "h1_length", "9112 6.3")
refused("unknown_coding", post(CONTINUE, b"Transfer-Encoding: x"), "h1_coding", "9112 6.3")
refused("bad_chunk", chunked(b"x\r\n", CONTINUE), "h1_chunk", "9112 7.1")
refused("no_host", head(b"POST /digest HTTP/1.1", CONTINUE, FIVE) + b"hello", "h1_host", "9112 3.2")

# --- interim responses are not requests ---------------------------------------------------------

for case, raw in (
        ("100", b"HTTP/1.1 100 Continue\r\n\r\n"),
        ("101", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n"),
        ("103", b"HTTP/1.1 103 Early Hints\r\n" + HOST + b"\r\n\r\n"),
        ("200", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")):
    refused("response_" + case, raw, "h1_request_line", "9112 3")
    refused("response_behind_a_request_" + case, get() + raw, "h1_request_line", "9112 3",
            before=(200,))
