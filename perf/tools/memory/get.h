/* SPDX-License-Identifier: BSD-3-Clause */
/* Encodes an HTTP/2 GET and parses its response: the parts of RFC 9113 that one request needs. */
#pragma once

#include <stdint.h>

#define GET_REQUEST_BYTES 256u
#define GET_PATH_MAX      100u

enum get_result { GET_MORE, GET_OK, GET_WRONG };

/* Writes the preface, SETTINGS and the request on stream 1, for the first GET_PATH_MAX bytes of
 * `path`. Returns the number of bytes. */
uint32_t get_request(uint8_t out[GET_REQUEST_BYTES], const char *path);

/* Parses the first `n` bytes from the server. GET_OK: a response with status 200 and the `n_body`
 * bytes of `body`. GET_MORE: the response is incomplete. GET_WRONG: another response, or RST_STREAM
 * or GOAWAY. */
enum get_result get_check_response(const uint8_t *data, uint32_t n, const uint8_t *body,
                                   uint32_t n_body);
