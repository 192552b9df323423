/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of HTTP/2 (RFC 9113) that a client of one request needs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define HTTP_OUT_BYTES 128u

/* Writes the preface and SETTINGS, and a GET of / on stream 1 if `request`. Returns the bytes. */
uint32_t http_begin(uint8_t out[HTTP_OUT_BYTES], bool request, bool tls);

/* Parser of the frames of a server. All zero: at the beginning. */
struct http_in {
    uint32_t n_head, n_skip; /* bytes of a header that are known; bytes of payload to skip */
    uint8_t head[9];
    bool settings, response, failed; /* SETTINGS; the end of stream 1; GOAWAY or RST_STREAM */
};
void http_input(struct http_in *h, const uint8_t *p, uint32_t n);
