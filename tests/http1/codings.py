# SPDX-License-Identifier: BSD-3-Clause
"""Transfer-Encoding: unknown and repeated codings, and spellings that hide it from one of two
servers (RFC 9112 6.1, 6.3, 7)."""
from tests.http1.case import CHUNKED, FIVE, SMUGGLED, Group, get, head, post

group = Group("codings")
refused, served = group.refused, group.served

HELLO = b"5\r\nhello\r\n0\r\n\r\n"
END = b"0\r\n\r\n"


def coded(*lines, body=HELLO):
    return post(*lines, body=body)


# --- other codings: 501 before chunked, 400 without it, since the end of the body is unknown ----

UNKNOWN, UNFRAMED = "9112 6.1", "9112 6.3"
for name, value in (
        ("gzip_chunked", b"gzip, chunked"), ("identity_chunked", b"identity, chunked"),
        ("two_codings_and_chunked", b"gzip, br, chunked"), ("quoted_chunked", b'"a", chunked')):
    refused("te_" + name, coded(b"Transfer-Encoding: " + value), "h1_coding", UNKNOWN, 501)
for name, value in (
        ("identity", b"identity"), ("gzip", b"gzip"), ("gzip_identity", b"gzip, identity"),
        ("gzip_chunked_gzip", b"gzip, chunked, gzip"), ("x_before", b"xchunked"),
        ("x_behind", b"chunkedx"), ("cut", b"chunke"), ("quoted", b'"chunked"'),
        ("single_quotes", b"'chunked'"), ("semicolon", b"chunked;"), ("parameter", b"chunked;q=1"),
        ("two_words", b"chunked chunked"), ("colon", b": chunked"), ("cow", b"cow"),
        ("dotless", "chun\u212aed".encode()), ("nbsp_behind", b"chunked\xa0"),
        ("nbsp_before", b"\xa0chunked"), ("next_line", "chunked\x85".encode()),
        ("byte_order_mark", "\ufeffchunked".encode()), ("backslash", b"chunk\\ed")):
    refused("te_" + name, coded(b"Transfer-Encoding: " + value), "h1_coding", UNFRAMED)
refused("te_empty", coded(b"Transfer-Encoding:"), "h1_coding", UNKNOWN)
refused("te_unknown_with_cl", post(b"Transfer-Encoding: x", FIVE), "h1_length_conflict", "9112 6.3")

# --- repeated, or not last ----------------------------------------------------------------------

ONCE = "9112 6.1"
refused("te_twice_in_a_line", coded(b"Transfer-Encoding: chunked, chunked"), "h1_coding", ONCE)
refused("te_twice", coded(CHUNKED, CHUNKED), "h1_coding", ONCE)
refused("te_and_identity", coded(CHUNKED, b"Transfer-Encoding: identity"), "h1_coding", ONCE)
refused("identity_and_te", coded(b"Transfer-Encoding: identity", CHUNKED), "h1_coding", ONCE)
refused("te_then_an_empty_one", coded(CHUNKED, b"Transfer-Encoding:"), "h1_coding", ONCE)
refused("te_not_last", coded(b"Transfer-Encoding: chunked, identity"), "h1_coding", "9112 6.3")
refused("te_list_ends_empty", coded(b"Transfer-Encoding: chunked,"), "h1_coding", ONCE)
refused("te_list_begins_empty", coded(b"Transfer-Encoding: ,chunked"), "h1_coding", ONCE)

# --- bytes that are not part of a value ---------------------------------------------------------

VALUE = "9110 5.5"
for name, value in (
        ("vertical_tab", b" \x0bchunked"), ("form_feed", b" \x0cchunked"),
        ("form_feed_behind", b" chunked\x0c"), ("nul_before", b" \0chunked"),
        ("nul_inside", b" chun\0ked"), ("nul_behind", b" chunked\0"), ("escape", b" \x1bchunked"),
        ("del", b" chunked\x7f"), ("backspace", b" xx\x08\x08chunked")):
    refused("te_" + name, coded(b"Transfer-Encoding:" + value), "h1_field_value", VALUE)
for name, fields in (
        ("te_folded", (b"Transfer-Encoding:\r\n chunked",)),
        ("te_folded_tab", (b"Transfer-Encoding:\r\n\tchunked",)),
        ("te_folded_behind", (b"Transfer-Encoding: chunked\r\n ",)),
        ("te_folded_list", (b"Transfer-Encoding: gzip\r\n , chunked",)),
        ("te_in_a_fold", (b"X: y\r\n Transfer-Encoding: chunked", FIVE))):
    refused(name, coded(*fields), "h1_field_value", "9112 5.2")

# --- names that another server could take for it ------------------------------------------------

NAME = "9112 5.1"
for name, line in (
        ("space", b"Transfer-Encoding : chunked"), ("tab", b"Transfer-Encoding\t: chunked"),
        ("form_feed", b"Transfer-Encoding\x0c: chunked"), ("nul", b"Transfer-Encoding\0: chunked"),
        ("space_inside", b"Transfer Encoding: chunked"), ("dots", b"Transfer\xb7Encoding: chunked"),
        ("hyphen_of_unicode", "Transfer\u2010Encoding: chunked".encode()),
        ("quoted_name", b'"Transfer-Encoding": chunked')):
    refused("te_name_" + name, post(FIVE, line), "h1_field_name", NAME)
refused("te_in_the_first_line_that_is_folded",
        head(b"POST /digest HTTP/1.1", b" Transfer-Encoding: chunked", b"Host: x", FIVE) + HELLO,
        "h1_field_value", "9112 2.2")
refused("te_behind_a_bare_lf", coded(b"X: y\nTransfer-Encoding: chunked"), "h1_line_end",
        "9112 2.2")
refused("te_behind_a_bare_cr", coded(b"X: y\rTransfer-Encoding: chunked"), "h1_line_end",
        "9112 2.2")
refused("te_ends_with_a_bare_lf", coded(b"Transfer-Encoding: chunked\nX: y"), "h1_line_end",
        "9112 2.2")
served("te_underscore", post(b"Transfer_Encoding: chunked", body=SMUGGLED), "9110 5.1", b"", 404)
served("te_underscore_with_cl", post(b"Transfer_Encoding: chunked", FIVE), "9110 5.1", b"hello")
served("te_without_hyphen", post(b"TransferEncoding: chunked", FIVE), "9110 5.1", b"hello")
served("te_with_x", post(b"X-Transfer-Encoding: chunked", FIVE), "9110 5.1", b"hello")
served("content_encoding", post(b"Content-Encoding: chunked", FIVE), "9110 8.4", b"hello")
served("te_field", post(b"TE: chunked", FIVE), "9110 10.1.4", b"hello")
served("named_by_connection", coded(CHUNKED, b"Connection: Transfer-Encoding"), "9110 7.6.1",
       b"hello")

# --- valid --------------------------------------------------------------------------------------

SERVED = "9112 7.1"
served("te", coded(CHUNKED), SERVED, b"hello")
served("te_upper_case", coded(b"TRANSFER-ENCODING: CHUNKED"), "9112 7", b"hello")
served("te_mixed_case", coded(b"tRANSFER-eNCODING: cHuNkEd"), "9112 7", b"hello")
served("te_without_space", coded(b"Transfer-Encoding:chunked"), "9112 5", b"hello")
served("te_tabs", coded(b"Transfer-Encoding:\tchunked\t"), "9112 5", b"hello")
served("te_spaces", coded(b"Transfer-Encoding:   chunked  "), "9112 5", b"hello")
served("te_of_an_empty_body", coded(CHUNKED, body=END), SERVED, b"")
served("te_0_then_a_request", coded(CHUNKED, body=END + SMUGGLED), SERVED, b"", 404)
served("te_of_a_request", coded(CHUNKED, body=b"%x\r\n" % len(SMUGGLED) + SMUGGLED + b"\r\n" + END),
       SERVED, SMUGGLED)
served("get_chunked", get(CHUNKED) + b"%x\r\n" % len(SMUGGLED) + SMUGGLED + b"\r\n" + END,
       "9110 9.3.1", closes=None)
served("head_chunked", get(CHUNKED, line=b"HEAD /one HTTP/1.1") + END, "9110 9.3.2", closes=None)
