# SPDX-License-Identifier: BSD-3-Clause
"""Host: missing, repeated, invalid, and beside a target in absolute form (RFC 9112 3.2, RFC 9110
7.2)."""
from tests.http1.case import HOST, SMUGGLED, Group, get, head

group = Group("Host")
refused, served = group.refused, group.served

LINE = b"GET /one HTTP/1.1"
HOSTS, VALUE, ABSOLUTE = "9112 3.2", "9110 7.2", "9112 3.2.2"


def host(value, line=LINE):
    return head(line, b"Host:" + value)


refused("missing", head(LINE), "h1_host", HOSTS)
refused("missing_with_fields", head(LINE, b"X: y", b"X-Forwarded-Host: x"), "h1_host", HOSTS)
refused("twice_equal", get(HOST), "h1_host", HOSTS)
refused("twice_different", get(b"Host: other.test"), "h1_host", HOSTS)
refused("twice_apart", get(b"X: y", b"hOST: other.test"), "h1_host", HOSTS)
refused("twice_empty_first", head(LINE, b"Host:", HOST), "h1_host", HOSTS)
refused("twice_empty_last", get(b"Host:"), "h1_host", HOSTS)
for case, value in (
        ("empty", b""), ("only_spaces", b"   "), ("two", b" a.test b.test"),
        ("list", b" a.test, b.test"), ("user", b" user@nightjar.test"),
        ("user_and_password", b" a:b@nightjar.test"), ("at_first", b" @nightjar.test"),
        ("path", b" nightjar.test/one"), ("query", b" nightjar.test?a"),
        ("fragment", b" nightjar.test#a"), ("url", b" http://nightjar.test"),
        ("backslash", b" nightjar.test\\a"), ("tab", b" night\tjar.test"),
        ("port_of_letters", b" nightjar.test:http"), ("port_and_letter", b" nightjar.test:80x"),
        ("two_ports", b" nightjar.test:80:80"), ("negative_port", b" nightjar.test:-1"),
        ("port_and_space", b" nightjar.test: 80"), ("only_a_port", b" :80"),
        ("open_bracket", b" [2001:db8::1"), ("close_bracket", b" 2001:db8::1]"),
        ("behind_the_bracket", b" [2001:db8::1]x"), ("no_bracket", b" 2001:db8::1"),
        ("empty_brackets", b" []"), ("name_in_brackets", b" [nightjar]"), ("quotes", b' "a"'),
        ("less_than", b" <a>"), ("caret", b" a^b"), ("brace", b" {a}"), ("pipe", b" a|b"),
        ("backtick", b" a`b"), ("percent", b" a%"), ("percent_zz", b" a%zz"),
        ("percent_half", b" a%4"), ("obs_text", b" n\xe9.test"), ("utf8", " näch.test".encode())):
    refused(case, host(value), "h1_host", VALUE)
for case, value in (("nul", b" a\0b"), ("vertical_tab", b" a\x0bb"), ("del", b" a\x7fb"),
                    ("nul_behind", b" nightjar.test\0.other.test")):
    refused(case, host(value), "h1_field_value", "9110 5.5")
refused("lf_then_another", host(b" a.test\nHost: b.test"), "h1_line_end", "9112 2.2")
refused("folded", host(b"\r\n nightjar.test"), "h1_field_value", "9112 5.2")
refused("folded_twice", host(b" nightjar.test\r\n other.test"), "h1_field_value", "9112 5.2")
refused("first_line_is_folded", head(LINE, b" Host: a.test", HOST), "h1_field_value", "9112 2.2")
refused("hides_a_request", get(b"Host: other.test") + SMUGGLED, "h1_host", HOSTS)

for case, value in (
        ("without_space", b"nightjar.test"), ("port", b" nightjar.test:80"),
        ("empty_port", b" nightjar.test:"), ("upper_case", b" NIGHTJAR.TEST"),
        ("ipv4", b" 198.18.0.2"), ("ipv6", b" [2001:db8::2]"), ("ipv6_and_port", b" [::1]:80"),
        ("underscore", b" night_jar.test"), ("sub_delims", b" a!$&'()*+,;=b"),
        ("percent", b" n%69ghtjar.test"), ("dot_at_the_end", b" nightjar.test."),
        ("spaces", b" \t nightjar.test \t "), ("tilde", b" ~a")):
    served("valid_" + case, host(value), VALUE)
served("upper_case_name", head(LINE, b"HOST: nightjar.test"), "9110 5.1")
served("last_of_the_fields", head(LINE, b"X: y", b"Y: z", HOST), "9110 7.2")
served("named_by_connection", get(b"Connection: Host"), "9110 7.6.1")
served("forwarded_beside_it", get(b"X-Forwarded-Host: other.test", b"Forwarded: host=x.test"),
       "9110 7.2")

served("absolute_form_equal", host(b" nightjar.test", b"GET http://nightjar.test/one HTTP/1.1"),
       ABSOLUTE)
served("absolute_form_other", host(b" other.test", b"GET http://nightjar.test/one HTTP/1.1"),
       ABSOLUTE)
served("absolute_form_other_port", host(b" nightjar.test:81",
                                        b"GET http://nightjar.test:80/one HTTP/1.1"), ABSOLUTE)
refused("absolute_form_without", head(b"GET http://nightjar.test/one HTTP/1.1"), "h1_host", HOSTS)
refused("absolute_form_with_two", head(b"GET http://nightjar.test/one HTTP/1.1", HOST, HOST),
        "h1_host", HOSTS)
refused("absolute_form_with_an_invalid_one",
        host(b" a/b", b"GET http://nightjar.test/one HTTP/1.1"), "h1_host", HOSTS)
served("absolute_form_with_an_empty_one", host(b"", b"GET http://nightjar.test/one HTTP/1.1"),
       ABSOLUTE)
served("absolute_form_with_spaces", host(b" \t ", b"GET http://nightjar.test/one HTTP/1.1"),
       ABSOLUTE)
refused("absolute_form_with_two_empty_ones",
        head(b"GET http://nightjar.test/one HTTP/1.1", b"Host:", b"Host:"), "h1_host", HOSTS)
