# SPDX-License-Identifier: BSD-3-Clause
"""The request line: its method, its spaces and its target in each form (RFC 9112 3, 3.2)."""
from tests.http1.case import HOST, SMUGGLED, Group, head

group = Group("target")
refused, served = group.refused, group.served

LINE, TARGET, ABSOLUTE, AUTHORITY, ASTERISK = \
    "9112 3", "9112 3.2", "9112 3.2.2", "9112 3.2.3", "9112 3.2.4"


def line(text):
    return head(text, HOST)


# --- the parts of the line ----------------------------------------------------------------------

for case, text in (
        ("two_spaces_behind_the_method", b"GET  /one HTTP/1.1"),
        ("two_spaces_before_the_version", b"GET /one  HTTP/1.1"),
        ("tab_behind_the_method", b"GET\t/one HTTP/1.1"),
        ("tab_before_the_version", b"GET /one\tHTTP/1.1"),
        ("space_behind_the_version", b"GET /one HTTP/1.1 "),
        ("tab_behind_the_version", b"GET /one HTTP/1.1\t"),
        ("more_behind_the_version", b"GET /one HTTP/1.1 HTTP/1.1"),
        ("space_in_the_target", b"GET /one two HTTP/1.1"), ("no_target", b"GET HTTP/1.1"),
        ("empty_target", b"GET  HTTP/1.1"), ("only_a_method", b"GET"),
        ("method_and_space", b"GET "), ("vertical_tab", b"GET\x0b/one\x0bHTTP/1.1"),
        ("form_feed", b"GET\x0c/one\x0cHTTP/1.1"), ("nbsp", b"GET\xa0/one\xa0HTTP/1.1"),
        ("a_field_instead", HOST), ("a_response_instead", b"HTTP/1.1 200 OK")):
    refused(case, line(text), "h1_request_line", LINE)
for case, method in (
        ("parenthesis", b"GE(T"), ("quotes", b'G"E"T'), ("comma", b"GET,"), ("colon", b"GET:"),
        ("slash", b"GET/"), ("nul", b"GET\0"), ("soh", b"G\1ET"), ("obs_text", b"G\xc9T"),
        ("brackets", b"GE[T]"), ("at", b"G@T")):
    refused("method_with_" + case, line(method + b" /one HTTP/1.1"), "h1_request_line", "9110 9.1")
served("lower_case_method", line(b"get /one HTTP/1.1"), "9110 9.1", 501)
served("unknown_method", line(b"FLY /one HTTP/1.1"), "9110 9.1", 501)
served("method_of_token_characters", line(b"!#$%&'*+-.^_`|~ /one HTTP/1.1"), "9110 9.1", 501)
served("method_of_2000_letters", line(b"M" * 2000 + b" /one HTTP/1.1"), "9112 3", 501)
served("purge", line(b"PURGE /one HTTP/1.1"), "9110 9.1", 501)
served("patch", line(b"PATCH /one HTTP/1.1"), "9110 9.1", 405)
served("trace", line(b"TRACE /one HTTP/1.1"), "9110 9.3.8", 405)

# --- origin form --------------------------------------------------------------------------------

for case, target in (
        ("relative", b"one"), ("dot", b"./one"), ("query_alone", b"?a"), ("fragment", b"/one#a"),
        ("fragment_alone", b"#"), ("fragment_in_the_query", b"/one?a#b"),
        ("soh", b"/o\1ne"), ("nul", b"/one\0"), ("escape", b"/\x1bone"), ("del", b"/one\x7f"),
        ("backspace", b"/onex\x08"), ("vertical_tab", b"/one\x0b"), ("backslash_first", b"\\one"),
        ("name", b"nightjar.test/one")):
    refused("target_" + case, line(b"GET " + target + b" HTTP/1.1"), "h1_target", TARGET)
for case, target in (("percent_zz", b"/%zz"), ("percent_half", b"/%4"), ("percent_nul", b"/%00")):
    served("target_" + case, line(b"GET " + target + b" HTTP/1.1"), "9110 4.2.5", 400)
served("target_percent", line(b"GET /%6fne HTTP/1.1"), TARGET)
served("target_query", line(b"GET /one?a=b&c=/%20 HTTP/1.1"), TARGET)
served("target_query_of_a_url", line(b"GET /one?http://other.test/ HTTP/1.1"), TARGET)
served("target_root", line(b"GET / HTTP/1.1"), TARGET)
served("target_absent", line(b"GET /nothing HTTP/1.1"), TARGET, 404)
served("target_of_4000_bytes", line(b"GET /one?" + b"a" * 4000 + b" HTTP/1.1"), "9112 3")
served("target_of_10000_bytes", line(b"GET /one?" + b"a" * 10_000 + b" HTTP/1.1"), "9112 3", 414)
refused("target_of_40_kib", line(b"GET /" + b"a" * 40_960 + b" HTTP/1.1"), "h1_target_long",
        "9112 3", 414)
refused("target_without_end", b"GET /" + b"a" * 400_000, "h1_target_long", "9112 3", 414)
refused("target_hides_a_request", line(b"GET /one\r\n\r\n" + SMUGGLED), "h1_request_line", LINE)

# --- absolute form ------------------------------------------------------------------------------

for case, target in (("https", b"https://nightjar.test/one"), ("https_upper_case", b"HTTPS://a/"),
                     ("https_without_path", b"https://nightjar.test"),
                     ("https_port", b"https://nightjar.test:80/one")):
    refused("absolute_" + case, line(b"GET " + target + b" HTTP/1.1"), "h1_target", "9110 7.4", 421)
for case, target in (
        ("no_host", b"http:///one"), ("user", b"http://user@nightjar.test/one"),
        ("other_scheme", b"ftp://nightjar.test/one"), ("file", b"file:///etc/passwd"),
        ("one_slash", b"http:/nightjar.test/one"), ("no_slash", b"http:nightjar.test/one"),
        ("no_scheme", b"://nightjar.test/one"), ("fragment", b"http://nightjar.test/one#a"),
        ("port_of_letters", b"http://nightjar.test:a/one"), ("open_bracket", b"http://[::1/one"),
        ("only_a_port", b"http://:80/one"), ("obs_text", b"http://n\xe9.test/one"),
        ("backslash", b"http://nightjar.test\\@other.test/one"),
        ("javascript", b"javascript:alert(1)")):
    refused("absolute_" + case, line(b"GET " + target + b" HTTP/1.1"), "h1_target", ABSOLUTE)
served("absolute", line(b"GET http://nightjar.test/one HTTP/1.1"), ABSOLUTE)
served("absolute_port", line(b"GET http://nightjar.test:80/one HTTP/1.1"), ABSOLUTE)
served("absolute_upper_case", line(b"GET HTTP://NIGHTJAR.TEST/one HTTP/1.1"), ABSOLUTE)
served("absolute_ipv6", line(b"GET http://[2001:db8::2]/one HTTP/1.1"), ABSOLUTE)
served("absolute_without_path", line(b"GET http://nightjar.test HTTP/1.1"), ABSOLUTE)
served("absolute_query_without_path", line(b"GET http://nightjar.test?a HTTP/1.1"), ABSOLUTE)

# --- authority form and asterisk form -----------------------------------------------------------

served("connect", line(b"CONNECT nightjar.test:443 HTTP/1.1"), AUTHORITY, 405, closes=True)
refused("connect_path", line(b"CONNECT /one HTTP/1.1"), "h1_target", AUTHORITY)
refused("connect_without_port", line(b"CONNECT nightjar.test HTTP/1.1"), "h1_target", AUTHORITY)
refused("connect_url", line(b"CONNECT http://nightjar.test/ HTTP/1.1"), "h1_target", AUTHORITY)
refused("authority_form_with_get", line(b"GET nightjar.test:80 HTTP/1.1"), "h1_target", AUTHORITY)
refused("asterisk_with_get", line(b"GET * HTTP/1.1"), "h1_target", ASTERISK)
refused("asterisk_and_more", line(b"OPTIONS *a HTTP/1.1"), "h1_target", ASTERISK)
refused("asterisk_twice", line(b"OPTIONS ** HTTP/1.1"), "h1_target", ASTERISK)
served("asterisk", line(b"OPTIONS * HTTP/1.1"), ASTERISK, 204)
