/* SPDX-License-Identifier: BSD-3-Clause */
/* Protocol detection: HTTP/2, HTTP/1.x or garbage, from as few bytes as possible. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The client connection preface of RFC 9113 3.4. */
#define NJ_H2_PREFACE       "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define NJ_H2_PREFACE_BYTES 24u

/* The result is known after this many bytes at the latest. */
#define NJ_SNIFF_BYTES 16u

enum nj_sniff { NJ_SNIFF_MORE, NJ_SNIFF_H2, NJ_SNIFF_HTTP1, NJ_SNIFF_GARBAGE };

/* Examines the first `n_bytes` of a connection. HTTP/2 is detected by "PRI ". HTTP/1.x: if
 * `speaks_http1`, whatever may begin a request or the empty line before it (RFC 9112 2.2), so that
 * the parser of requests answers; else a method that is known, and a space. MORE: call again with
 * more bytes. */
enum nj_sniff nj_sniff(const uint8_t *data, size_t n_bytes, bool speaks_http1);
