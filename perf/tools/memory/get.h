/* SPDX-License-Identifier: BSD-3-Clause */
/* One HTTP/2 GET, encoded and read by hand: as much of RFC 9113 as one request needs. */
#ifndef NJ_PERF_MEMORY_GET_H
#define NJ_PERF_MEMORY_GET_H

#include <stdint.h>

#define GET_REQUEST_BYTES 256u
#define GET_PATH_MAX      100u

enum get_result { GET_MORE, GET_OK, GET_WRONG };

/* Preface, SETTINGS and the request of stream 1. Returns its bytes; `path` is at most GET_PATH_MAX
 * long. */
uint32_t get_request(uint8_t out[GET_REQUEST_BYTES], const char *path);

/* What `n` bytes from the server come to: status 200 and the `n_body` bytes of `body` on stream 1,
 * or not yet, or something else. */
enum get_result get_answer(const uint8_t *data, uint32_t n, const uint8_t *body, uint32_t n_body);

#endif
