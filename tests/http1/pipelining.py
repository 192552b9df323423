# SPDX-License-Identifier: BSD-3-Clause
"""A client sends several requests on one connection, or more bytes after its last request (RFC
9112 9.3, 9.6)."""
from tests.http1.case import CHUNKED, FIVE, HOST, SMUGGLED, Group, get, head, post

group = Group("pipelining")
refused, served = group.refused, group.served

PIPELINE, PERSIST, CLOSE, UPGRADE = "9112 9.3.2", "9112 9.3", "9112 9.6", "9110 7.8"
HELLO = post(CHUNKED, body=b"5\r\nhello\r\n0\r\n\r\n")
CLOSING = b"Connection: close"

# --- responses come in order --------------------------------------------------------------------

served("two", get() * 2, PIPELINE, 200, 200)
served("ten", get() * 10, PIPELINE, *(200,) * 10)
served("a_hundred", get() * 100, PIPELINE, *(200,) * 100)
served("statuses", get() + get(line=b"GET /nothing HTTP/1.1") + get(line=b"FLY /one HTTP/1.1") +
       get(), PIPELINE, 200, 404, 501, 200)
served("bodies", post(FIVE) + HELLO + post(b"Content-Length: 0", body=b"") +
       post(FIVE, body=b"12345"), PIPELINE, b"hello", b"hello", b"", b"12345")
served("chunked_then_get", HELLO + get(), PIPELINE, b"hello", 200)
served("get_then_chunked", get() + HELLO, PIPELINE, 200, b"hello")
served("chunked_ten_times", HELLO * 10, PIPELINE, *(b"hello",) * 10)
served("head_then_get", get(line=b"HEAD /one HTTP/1.1") + get(), "9110 9.3.2", 200, 200)
served("heads", get(line=b"HEAD /one HTTP/1.1") * 5, "9110 9.3.2", *(200,) * 5)
served("head_of_an_absent_file", get(line=b"HEAD /nothing HTTP/1.1") + get(), "9110 9.3.2",
       404, 200)
served("not_modified", get(b"If-None-Match: *") + get(), "9110 15.4.5", 304, 200)
served("range", get(b"Range: bytes=0-0") + get(), "9110 14.2", 206, 200)
served("range_that_is_not_there", get(b"Range: bytes=5-") + get(), "9110 15.5.17", 416, 200)
served("precondition_failed", get(b'If-Match: "x"') + get(), "9110 13.1.1", 412, 200)
served("large_file_then_get", get(line=b"GET /200KiB HTTP/1.1") + get(), PIPELINE, 200, 200)
served("bad_path_then_get", get(line=b"GET /%zz HTTP/1.1") + get(), PIPELINE, 400, 200)
served("options", get(line=b"OPTIONS * HTTP/1.1") + get(), "9112 3.2.4", 204, 200)
served("crlf_between", (get() + b"\r\n") * 3, "9112 2.2", 200, 200, 200)
served("keep_alive", get(b"Connection: keep-alive") * 2, PERSIST, 200, 200)
served("absolute_and_origin_form", get(line=b"GET http://other.test/one HTTP/1.1") + get(),
       "9112 3.2", 200, 200)
served("refused_body_then_get", get(b"Content-Length: 47", line=b"PUT /one HTTP/1.1") + SMUGGLED +
       get(), "9112 9.3", 405, 200)

# --- what is behind the last request ------------------------------------------------------------

for case, fields in (
        ("close", (CLOSING,)), ("close_upper_case", (b"Connection: CLOSE",)),
        ("close_in_a_list", (b"Connection: x, close, y",)),
        ("close_and_keep_alive", (b"Connection: close, keep-alive",)),
        ("keep_alive_and_close", (b"Connection: keep-alive, close",)),
        ("close_in_the_second_field", (b"Connection: keep-alive", CLOSING)),
        ("close_twice", (CLOSING, CLOSING)),
        ("close_with_empty_elements", (b"Connection: ,,close,",)),
        ("close_with_spaces", (b"Connection: \t close \t ,x",))):
    served(case, get(*fields) + SMUGGLED, CLOSE, closes=True)
served("close_then_garbage", get(CLOSING) + b"\0\r\n\r\n" + b"x" * 1000, CLOSE, closes=True)
served("close_then_a_body", post(FIVE, CLOSING) + SMUGGLED, CLOSE, b"hello", closes=True)
served("close_of_chunked", post(CHUNKED, CLOSING, body=b"0\r\n\r\n") + SMUGGLED, CLOSE, b"",
       closes=True)
served("close_in_the_middle", get() + get(CLOSING) + get(), CLOSE, 200, 200, closes=True)
served("close_of_head", get(CLOSING, line=b"HEAD /one HTTP/1.1") + SMUGGLED, CLOSE, closes=True)
served("close_of_an_absent_file", get(CLOSING, line=b"GET /nothing HTTP/1.1") + SMUGGLED, CLOSE,
       404, closes=True)
for case, value in (("closed", b"closed"), ("quoted", b'"close"'), ("x_close", b"x-close"),
                    ("close_and_parameter", b"close;x"), ("two_words", b"x close"), ("empty", b"")):
    served("no_close_" + case, get(b"Connection: " + value) + get(), PERSIST, 200, 200)
served("no_close_of_proxy_connection", get(b"Proxy-Connection: close") + get(), "9112 C.2.2", 200,
       200)

# --- an error ends the connection ---------------------------------------------------------------

ERROR = "9112 9.6"
refused("error_then_a_request", head(b"GET /one HTTP/1.1") + SMUGGLED, "h1_host", ERROR)
refused("error_of_the_second", get() + head(b"GET /one HTTP/1.1") + get(), "h1_host", ERROR,
        before=(200,))
refused("error_behind_a_body", post(FIVE) + b"x" + HELLO[:4] + b"\0" + get(), "h1_request_line",
        ERROR, before=(b"hello",))
refused("error_in_the_body_of_the_second", get() + post(CHUNKED, body=b"5\r\nhelloX\r\n") +
        SMUGGLED, "h1_line_end", ERROR, before=(200,))
refused("garbage_behind_a_request", get() + b"\x16\x03\x01\x02\0", "h1_request_line", ERROR,
        before=(200,))
refused("two_errors", head(b"GET /one HTTP/1.1") * 2, "h1_host", ERROR)
refused("preface_of_http_2", get() + b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9), "h1_version",
        "9113 3.4", 505, before=(200,))
refused("body_longer_than_its_length", post(FIVE, body=b"hello\0") + get(), "h1_request_line",
        ERROR, before=(b"hello",))

# --- another protocol is not spoken -------------------------------------------------------------

H2C = (b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABkAAQAAP__")
served("upgrade_to_h2c", get(*H2C) + get(), UPGRADE, 200, 200)
served("upgrade_to_h2c_with_a_body", post(FIVE, *H2C) + get(), UPGRADE, b"hello", 200)
served("upgrade_to_websocket", get(b"Connection: Upgrade", b"Upgrade: websocket",
                                   b"Sec-WebSocket-Version: 13",
                                   b"Sec-WebSocket-Key: bmlnaHRqYXIgbmlnaHRqYQ==") + get(),
       UPGRADE, 200, 200)
served("upgrade_to_tls", get(b"Connection: Upgrade", b"Upgrade: TLS/1.0") + get(), UPGRADE,
       200, 200)
served("connect_then_a_request", head(b"CONNECT nightjar.test:80 HTTP/1.1", HOST) + SMUGGLED,
       "9110 9.3.6", 405, closes=True)
