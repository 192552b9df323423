# SPDX-License-Identifier: BSD-3-Clause
"""Chunk sizes, extensions, ends of chunks, and trailers (RFC 9112 7.1)."""
from tests.http1.case import SMUGGLED, Group, chunked

group = Group("chunks")

END = b"0\r\n\r\n"
SIZE, DATA, EXTENSION, TRAILER = "9112 7.1", "9112 7.1", "9112 7.1.1", "9112 7.1.2"


def refused(name, body, clause, counter="h1_chunk"):
    group.refused(name, chunked(body), counter, clause)


def served(name, body, clause, *answers):
    group.served(name, chunked(body), clause, *answers)


# --- sizes --------------------------------------------------------------------------------------

for case, size in (
        ("plus", b"+5"), ("minus", b"-5"), ("minus_0", b"-0"), ("prefix", b"0x5"),
        ("prefix_upper_case", b"0X5"), ("space_before", b" 5"), ("tab_before", b"\t5"),
        ("no_digit", b"g"), ("digit_and_letter", b"5g"), ("underscore", b"0_5"),
        ("suffix", b"5h"), ("point", b"5.0"), ("comma", b"5,5"), ("two", b"5 5"), ("nul", b"5\0"),
        ("nul_before", b"\x005"), ("form_feed", b"5\x0c"), ("vertical_tab", b"\x0b5"),
        ("full_width", "５".encode()), ("17_digits", b"0" * 16 + b"5"),
        ("2_to_the_63", b"8000000000000000"), ("2_to_the_64_minus_1", b"ffffffffffffffff"),
        ("2_to_the_64", b"10000000000000000"), ("2_to_the_64_plus_5", b"10000000000000005"),
        ("many_zeros", b"0" * 400), ("quoted", b'"5"')):
    refused("size_" + case, size + b"\r\nhello\r\n" + END, SIZE)
for case, size in (("empty", b""), ("space_behind", b"5 "), ("spaces_behind", b"5      "),
                   ("tab_behind", b"5\t"), ("cr", b"5\r")):
    refused("size_" + case, size + b"\r\nhello\r\n" + END, SIZE, "h1_line_end")
for case, end in (("lf", b"\n"), ("cr", b"\r"), ("lf_cr", b"\n\r"), ("cr_cr_lf", b"\r\r\n")):
    refused("size_ends_with_" + case, b"5" + end + b"hello\r\n" + END, "9112 2.2", "h1_line_end")
served("size_upper_case", b"A\r\n0123456789\r\n" + END, SIZE, b"0123456789")
served("size_lower_case", b"a\r\n0123456789\r\n" + END, SIZE, b"0123456789")
served("size_leading_zeros", b"0005\r\nhello\r\n" + END, SIZE, b"hello")
served("size_of_16_digits", b"0" * 15 + b"5\r\nhello\r\n" + END, SIZE, b"hello")
served("many_chunks", b"1\r\nx\r\n" * 300 + END, SIZE, b"x" * 300)

# --- ends of chunks -----------------------------------------------------------------------------

for case, end in (
        ("lf", b"\n"), ("cr", b"\r"), ("nothing", b""), ("two_bytes", b"XX"), ("lf_cr", b"\n\r"),
        ("cr_and_a_byte", b"\rX"), ("a_byte_and_lf", b"X\n"), ("space", b" \r\n"),
        ("cr_cr_lf", b"\r\r\n"), ("a_byte_more", b"X\r\n"), ("two_line_ends", b"\r\n\r\n")):
    refused("data_ends_with_" + case, b"5\r\nhello" + end + END, DATA, "h1_line_end")
refused("size_too_small", b"4\r\nhello\r\n" + END, DATA, "h1_line_end")
refused("size_too_large", b"6\r\nhello\r\n" + END, DATA, "h1_line_end")
refused("last_chunk_hides_a_request", b"5\r\nhello\r\n0\n\r\n" + SMUGGLED, "9112 2.2",
        "h1_line_end")
served("last_chunk_of_many_zeros", b"5\r\nhello\r\n000\r\n\r\n", SIZE, b"hello")
served("last_chunk_then_a_request", b"5\r\nhello\r\n" + END + SMUGGLED, SIZE, b"hello", 404)

# --- extensions ---------------------------------------------------------------------------------

for case, extension in (
        ("lf", b";a\nb"), ("lf_hides_a_size", b";\n5"), ("cr", b";a\rb"), ("nothing", b";"),
        ("no_value", b";a="), ("open_quote", b';a="b'), ("quoted_lf", b';a="b\nc"'),
        ("quoted_cr", b';a="b\rc"'), ("quoted_crlf", b';a="b\r\nc"'),
        ("quoted_pair_lf", b';a="\\\n"')):
    refused("extension_" + case, b"5" + extension + b"\r\nhello\r\n" + END, EXTENSION,
            "h1_line_end")
for case, extension in (
        ("nul", b";a\0b"), ("nothing_twice", b";;a"), ("no_name", b";=b"),
        ("quoted_nul", b';a="\0"'),
        ("behind_a_quote", b';a="b"c'), ("quoted_name", b';"a"'), ("no_token", b";a=b/c"),
        ("obs_text", b";a=\xe9"), ("form_feed", b";a\x0c"), ("without_semicolon", b" a"),
        ("equals", b"=a"), ("space_inside", b";a b")):
    refused("extension_" + case, b"5" + extension + b"\r\nhello\r\n" + END, EXTENSION)
refused("extension_of_2000_bytes", b"5;" + b"a" * 2000 + b"\r\nhello\r\n" + END, EXTENSION)
refused("extensions_of_2000_bytes", (b"1;" + b"a" * 100 + b"\r\nx\r\n") * 20 + END, EXTENSION)
refused("extension_of_the_last_chunk_with_lf", b"0;a\nb\r\n\r\n", EXTENSION, "h1_line_end")
for case, extension in (
        ("name", b";a"), ("value", b";a=b"), ("quoted", b';a="b c"'), ("two", b";a=b;c=d"),
        ("quoted_pair", b';a="\\""'), ("quoted_semicolon", b';a=";"'), ("empty_quotes", b';a=""')):
    served("extension_with_" + case, b"5" + extension + b"\r\nhello\r\n" + END, EXTENSION, b"hello")
served("extension_of_the_last_chunk", b"5\r\nhello\r\n0;a=b\r\n\r\n", EXTENSION, b"hello")

# --- trailers -----------------------------------------------------------------------------------

for case, trailer, counter in (
        ("request_line", SMUGGLED[:-2], "h1_field_name"), ("no_colon", b"x\r\n", "h1_field_name"),
        ("space_before_colon", b"X : y\r\n", "h1_field_name"),
        ("no_name", b": y\r\n", "h1_field_name"),
        ("fold", b"X: y\r\n z\r\n", "h1_field_value"), ("nul", b"X: \0\r\n", "h1_field_value"),
        ("first_fold", b" X: y\r\n", "h1_field_value"), ("lf", b"X: y\n", "h1_line_end"),
        ("cr", b"X: y\rz\r\n", "h1_line_end"), ("lf_alone", b"\n", "h1_line_end"),
        ("cr_alone", b"\r", "h1_line_end")):
    refused("trailer_" + case, b"5\r\nhello\r\n0\r\n" + trailer + b"\r\n", TRAILER, counter)
group.refused("trailer_of_64_kib", chunked(
    b"0\r\n" + b"".join(b"x%d: %s\r\n" % (i, b"y" * 1000) for i in range(64)) + b"\r\n"),
    "h1_head_full", TRAILER, 431)
for case, trailer in (("a_field", b"X: y\r\n"), ("content_length", b"Content-Length: 50\r\n"),
                      ("transfer_encoding", b"Transfer-Encoding: chunked\r\n"),
                      ("host", b"Host: other.test\r\n"), ("two_fields", b"X: y\r\nX: z\r\n")):
    served("trailer_with_" + case, b"5\r\nhello\r\n0\r\n" + trailer + b"\r\n", "9110 6.5.1",
           b"hello")
