# SPDX-License-Identifier: BSD-3-Clause
"""HTTP/1.0, HTTP/0.9, and other versions in the request line (RFC 9112 2.3, 9.3; RFC 9110 2.5)."""
from tests.http1.case import CHUNKED, FIVE, HOST, SMUGGLED, Group, get, head, post

group = Group("HTTP/1.0")
refused, served = group.refused, group.served

KEEP = b"Connection: keep-alive"
OLD_GET, OLD_POST = b"GET /one HTTP/1.0", b"POST /digest HTTP/1.0"
VERSION, PERSIST, CODING = "9112 2.3", "9112 9.3", "9112 6.1"


def version(text):
    return head(b"GET /one " + text, HOST)


# --- HTTP/1.0 -----------------------------------------------------------------------------------

served("get", get(line=OLD_GET), PERSIST, closes=True)
served("without_host", head(OLD_GET), "9112 3.2", closes=True)
served("keep_alive", get(KEEP, line=OLD_GET), PERSIST)
served("keep_alive_without_host", head(OLD_GET, KEEP), PERSIST)
served("keep_alive_upper_case", get(b"Connection: Keep-Alive", line=OLD_GET), PERSIST)
served("keep_alive_twice", get(KEEP, line=OLD_GET) * 2, PERSIST, 200, 200)
served("keep_alive_and_close", get(b"Connection: keep-alive, close", line=OLD_GET), PERSIST,
       closes=True)
served("close_and_keep_alive", get(b"Connection: close", KEEP, line=OLD_GET), PERSIST, closes=True)
served("keep_alive_field_alone", get(b"Keep-Alive: timeout=5", line=OLD_GET), PERSIST, closes=True)
served("proxy_connection", get(b"Proxy-Connection: keep-alive", line=OLD_GET), "9112 C.2.2",
       closes=True)
served("then_a_request", get(line=OLD_GET) + SMUGGLED, PERSIST, closes=True)
served("keep_alive_then_a_request", get(KEEP, line=OLD_GET) + SMUGGLED, PERSIST, 200, 404)
served("head", get(line=b"HEAD /one HTTP/1.0"), PERSIST, closes=True)
served("head_keep_alive", get(KEEP, line=b"HEAD /one HTTP/1.0"), PERSIST)
served("post", post(FIVE, line=OLD_POST), "9112 6.3", b"hello", closes=True)
served("post_keep_alive", post(FIVE, KEEP, line=OLD_POST), "9112 6.3", b"hello")
served("post_without_length", post(line=OLD_POST, body=SMUGGLED), "9112 6.3", b"", closes=True)
served("expect_is_ignored", post(FIVE, b"Expect: 100-continue", line=OLD_POST), "9110 10.1.1",
       b"hello", closes=True)
served("expect_refused", post(FIVE, KEEP, b"Expect: 100-continue", line=b"POST /one HTTP/1.0"),
       "9110 10.1.1", 405, closes=True)
served("refused_without_expect", post(FIVE, KEEP, line=b"POST /one HTTP/1.0"), PERSIST, 405)
served("absolute_form", get(line=b"GET http://nightjar.test/one HTTP/1.0"), "9112 3.2.2",
       closes=True)
served("absolute_form_without_host", head(b"GET http://nightjar.test/one HTTP/1.0"), "9112 3.2.2",
       closes=True)
served("absent", get(KEEP, line=b"GET /nothing HTTP/1.0"), PERSIST, 404)
served("after_1_1", get() + get(line=OLD_GET), PERSIST, 200, 200, closes=True)
refused("absolute_form_of_https", get(line=b"GET https://nightjar.test/one HTTP/1.0"), "h1_target",
        "9110 7.4", 421)
refused("host_twice", get(HOST, line=OLD_GET), "h1_host", "9112 3.2")
refused("host_invalid", head(OLD_GET, b"Host: a/b"), "h1_host", "9112 3.2")
refused("te", post(CHUNKED, line=OLD_POST, body=b"5\r\nhello\r\n0\r\n\r\n"), "h1_length_conflict",
        CODING)
refused("te_keep_alive", post(CHUNKED, KEEP, line=OLD_POST, body=b"0\r\n\r\n"),
        "h1_length_conflict", CODING)
refused("te_and_length", post(CHUNKED, FIVE, KEEP, line=OLD_POST, body=b"0\r\n\r\n"),
        "h1_length_conflict", CODING)
refused("get_te", get(CHUNKED, line=OLD_GET) + b"0\r\n\r\n", "h1_length_conflict", CODING)
refused("te_unknown", get(b"Transfer-Encoding: x", line=OLD_GET), "h1_length_conflict", CODING)
refused("length_twice", post(FIVE, FIVE, line=OLD_POST), "h1_length", "9112 6.3")
refused("lf_only", OLD_GET + b"\n" + HOST + b"\n\n", "h1_line_end", "9112 2.2")
refused("fold", get(b"X: a\r\n b", line=OLD_GET), "h1_field_value", "9112 5.2")

# --- other versions -----------------------------------------------------------------------------

served("1_2", version(b"HTTP/1.2"), "9110 2.5")
served("1_9", version(b"HTTP/1.9"), "9110 2.5")
refused("1_2_without_host", head(b"GET /one HTTP/1.2"), "h1_host", "9112 3.2")
for case, text in (("2_0", b"HTTP/2.0"), ("0_9", b"HTTP/0.9"), ("3_0", b"HTTP/3.0"),
                   ("9_9", b"HTTP/9.9"), ("2_1", b"HTTP/2.1"), ("0_0", b"HTTP/0.0")):
    refused("version_" + case, version(text), "h1_version", "9110 15.6.6", 505)
for case, text in (
        ("1_10", b"HTTP/1.10"), ("01_1", b"HTTP/01.1"), ("1_01", b"HTTP/1.01"), ("1", b"HTTP/1"),
        ("1_", b"HTTP/1."), ("_1", b"HTTP/.1"), ("comma", b"HTTP/1,1"), ("lower_case", b"http/1.1"),
        ("mixed_case", b"Http/1.1"), ("space", b"HTTP /1.1"), ("space_behind_slash", b"HTTP/ 1.1"),
        ("letter_behind", b"HTTP/1.1x"), ("letters", b"HTTP/a.b"), ("minus", b"HTTP/-1.1"),
        ("plus", b"HTTP/+1.1"), ("hex", b"HTTP/0x1.1"), ("three", b"HTTP/1.1.1"),
        ("backslash", b"HTTP\\1.1"), ("nul", b"HTTP/1.1\0"), ("https", b"HTTPS/1.1"),
        ("icy", b"ICY/1.0"), ("rtsp", b"RTSP/1.0"), ("xttp", b"XTTP/1.1"), ("shttp", b"SHTTP/1.1"),
        ("no_name", b"/1.1"), ("number", b"1.1"), ("obs_text", b"HTTP/1.\xb9"),
        ("full_width", "HTTP/１.１".encode())):
    refused("version_" + case, version(text), "h1_request_line", VERSION)

# --- HTTP/0.9 -----------------------------------------------------------------------------------

for case, raw in (("get", b"GET /one\r\n"), ("get_and_empty_line", b"GET /one\r\n\r\n"),
                  ("get_and_space", b"GET /one \r\n\r\n"), ("get_and_host", b"GET /one\r\n" + HOST +
                                                           b"\r\n\r\n")):
    refused("0_9_" + case, raw, "h1_request_line", VERSION)
refused("0_9_after_1_1", get() + b"GET /one\r\n", "h1_request_line", VERSION, before=(200,))
