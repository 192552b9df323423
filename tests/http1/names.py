# SPDX-License-Identifier: BSD-3-Clause
"""Names of fields, and how many and how long fields are (RFC 9112 5.1, RFC 9110 5.1, 5.4)."""
from tests.http1.case import HOST, Group, get, head

group = Group("field names")
refused, served = group.refused, group.served

NAME = "9112 5.1"
for case, line in (
        ("space_before_colon", b"X : y"), ("tab_before_colon", b"X\t: y"),
        ("spaces_before_colon", b"X   : y"), ("no_colon", b"X"), ("no_colon_but_space", b"X y"),
        ("no_name", b": y"), ("only_a_colon", b":"), ("space_inside", b"X Y: z"),
        ("two_colons_of_a_pseudo_field", b":path: /two"), ("nul", b"X\0: y"), ("soh", b"X\1: y"),
        ("vertical_tab", b"X\x0b: y"), ("form_feed", b"X\x0c: y"), ("escape", b"X\x1b: y"),
        ("del", b"X\x7f: y"), ("obs_text", b"X\xe9: y"), ("utf8", "Ä: y".encode()),
        ("parenthesis", b"X(: y"), ("slash", b"X/Y: z"), ("bracket", b"X[0]: y"),
        ("quotes", b'"X": y'), ("at", b"X@Y: z"), ("comma", b"X,Y: z"), ("semicolon", b"X;Y: z"),
        ("equals", b"X=Y: z"), ("question_mark", b"X?: y"), ("brace", b"{X}: y"),
        ("less_than", b"<X>: y"), ("backslash", b"X\\Y: z"), ("request_line", b"GET / HTTP/1.1")):
    refused(case, get(line), "h1_field_name", NAME)
refused("content_length_with_space", get(b"Content-Length : 5") + b"hello", "h1_field_name", NAME)
refused("host_with_space", head(b"GET /one HTTP/1.1", b"Host : x"), "h1_field_name", NAME)
refused("cyrillic_host", head(b"GET /one HTTP/1.1", "H\u043est: x".encode()), "h1_field_name", NAME)
refused("bad_name_first", head(b"GET /one HTTP/1.1", b"X : y", HOST), "h1_field_name", NAME)
refused("only_a_name_before_the_end", head(b"GET /one HTTP/1.1", HOST, b"X"), "h1_field_name", NAME)

served("all_token_characters", get(b"!#$%&'*+-.^_`|~09azAZ: y"), "9110 5.6.2")
served("digits", get(b"0: y"), "9110 5.6.2")
served("colons_in_the_value", get(b"X:: y:"), "9112 5")
served("no_space_behind_the_colon", get(b"X:y"), "9112 5")
served("same_name_twice", get(b"X: y", b"x: z"), "9110 5.2")
served("name_of_1000_bytes", get(b"x" * 1000 + b": y"), "9110 5.4")
served("value_of_10000_bytes", get(b"X: " + b"y" * 10_000), "9110 5.4")
served("100_fields", get(*(b"x%d: y" % i for i in range(100))), "9110 5.4")

SIZE = "9110 5.4"
refused("many_fields", get(*(b"x%d: y" % i for i in range(200))), "h1_head_full", SIZE, 431)
refused("value_of_40_kib", get(b"X: " + b"y" * 40_960), "h1_head_full", SIZE, 431)
refused("name_of_40_kib", get(b"x" * 40_960 + b": y"), "h1_head_full", SIZE, 431)
refused("fields_of_40_kib", get(*(b"x%d: %s" % (i, b"y" * 990) for i in range(40))),
        "h1_head_full", SIZE, 431)
refused("value_of_300_kib", get(b"X: " + b"y" * 307_200), "h1_head_full", SIZE, 431)
