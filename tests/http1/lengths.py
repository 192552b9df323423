# SPDX-License-Identifier: BSD-3-Clause
"""Content-Length: malformed, repeated, with Transfer-Encoding, and lengths that are not the body's
(RFC 9112 6.2, 6.3; RFC 9110 8.6)."""
from tests.http1.case import CHUNKED, FIVE, SMUGGLED, Group, get, post

group = Group("lengths")
refused, served = group.refused, group.served


def length(value, body=b"hello"):
    return post(b"Content-Length:" + value, body=body)


# --- two framings -------------------------------------------------------------------------------

BOTH = "9112 6.3"
refused("cl_then_te", post(b"Content-Length: 6", CHUNKED, body=b"0\r\n\r\nG"),
        "h1_length_conflict", BOTH)
refused("te_then_cl", post(CHUNKED, b"Content-Length: 6", body=b"0\r\n\r\nG"),
        "h1_length_conflict", BOTH)
refused("te_with_the_right_cl", post(CHUNKED, b"Content-Length: 15",
                                     body=b"5\r\nhello\r\n0\r\n\r\n"),
        "h1_length_conflict", BOTH)
refused("te_cl_hides_a_request", post(b"Content-Length: 4", CHUNKED, body=b"2f\r\n" + SMUGGLED +
                                      b"\r\n0\r\n\r\n"), "h1_length_conflict", BOTH)
refused("cl_te_hides_a_request", post(b"Content-Length: 52", CHUNKED,
                                      body=b"0\r\n\r\n" + SMUGGLED), "h1_length_conflict", BOTH)
refused("cl_0_with_te", post(b"Content-Length: 0", CHUNKED, body=b"0\r\n\r\n"),
        "h1_length_conflict", BOTH)
refused("get_with_both", get(b"Content-Length: 0", CHUNKED) + b"0\r\n\r\n",
        "h1_length_conflict", BOTH)
refused("cl_between_two_te", post(CHUNKED, FIVE, CHUNKED, body=b"0\r\n\r\n"),
        "h1_length_conflict", BOTH)

# --- repeated -----------------------------------------------------------------------------------

TWICE = "9112 6.3"
refused("cl_twice_equal", post(FIVE, FIVE), "h1_length", TWICE)
refused("cl_twice_different", post(FIVE, b"Content-Length: 0"), "h1_length", TWICE)
refused("cl_twice_different_0_first", post(b"Content-Length: 0", FIVE), "h1_length", TWICE)
refused("cl_twice_apart", post(FIVE, b"X: y", b"content-length: 6"), "h1_length", TWICE)
refused("cl_list_equal", length(b" 5, 5"), "h1_length", TWICE)
refused("cl_list_different", length(b" 5, 0"), "h1_length", TWICE)
refused("cl_list_with_an_empty_element", length(b" 5,"), "h1_length", TWICE)
refused("cl_list_that_begins_empty", length(b" ,5"), "h1_length", TWICE)

# --- malformed ----------------------------------------------------------------------------------

DIGITS = "9110 8.6"
for name, value in (
        ("plus", b" +5"), ("minus", b" -5"), ("minus_0", b" -0"), ("hex", b" 0x5"),
        ("octal", b" 0o5"), ("float", b" 5.0"), ("exponent", b" 5e0"), ("underscore", b" 5_0"),
        ("two_numbers", b" 5 5"), ("tab_between", b" 5\t5"), ("empty", b""), ("only_space", b" "),
        ("letters_behind", b" 5abc"), ("letters", b" abc"), ("parameter", b" 5;q=1"),
        ("quoted", b' "5"'), ("comma_for_thousands", b" 1,000"), ("full_width", " ５".encode()),
        ("arabic_digit", " ٥".encode()), ("obs_text_behind", b" 5\xa0"),
        ("2_to_the_64", b" 18446744073709551616"), ("2_to_the_64_plus_5", b" 18446744073709551621"),
        ("2_to_the_32_plus_5_times_2_to_the_64", b" 79228162514264337598183505925"),
        ("many_digits", b" " + b"9" * 300)):
    refused("cl_" + name, length(value), "h1_length", DIGITS)
for name, value in (("nul_behind", b" 5\0"), ("nul_before", b" \x005"), ("vertical_tab", b" 5\x0b"),
                    ("form_feed", b" \x0c5"), ("backspace", b" 15\x08"), ("del", b" 5\x7f")):
    refused("cl_" + name, length(value), "h1_field_value", "9110 5.5")
refused("cl_folded", length(b"\r\n 5"), "h1_field_value", "9112 5.2")
refused("cl_folded_digits", length(b" 1\r\n 5"), "h1_field_value", "9112 5.2")

# --- valid, and what follows --------------------------------------------------------------------

BODY = "9112 6.2"
served("cl_without_space", length(b"5"), "9112 5", b"hello")
served("cl_spaces", length(b" \t 5 \t "), "9112 5", b"hello")
served("cl_zeros", length(b" 0000000005"), DIGITS, b"hello")
served("cl_upper_case", post(b"CONTENT-LENGTH: 5"), "9110 5.1", b"hello")
served("cl_of_a_body_like_a_request", post(b"Content-Length: %d" % len(SMUGGLED), body=SMUGGLED),
       BODY, SMUGGLED)
served("cl_0_then_a_request", length(b" 0", SMUGGLED), BODY, b"", 404)
served("no_length_then_a_request", post(body=SMUGGLED), "9112 6.3", b"", 404)
served("cl_too_short", length(b" 5", b"helloX"), BODY, b"hello", 501, closes=True)  # XGET
served("get_with_a_body", get(b"Content-Length: %d" % len(SMUGGLED)) + SMUGGLED, "9110 9.3.1")
served("head_with_a_body", get(b"Content-Length: %d" % len(SMUGGLED), line=b"HEAD /one HTTP/1.1") +
       SMUGGLED, "9110 9.3.2")
served("underscore_is_another_name", post(b"Content_Length: %d" % len(SMUGGLED), body=SMUGGLED),
       "9112 6.3", b"", 404)
served("another_name_with_the_same_begin", post(b"Content-Length-X: 5", body=SMUGGLED),
       "9112 6.3", b"", 404)
