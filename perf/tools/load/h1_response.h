/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A parser of HTTP/1.1 responses (RFC 9112), for bytes that arrive in pieces of any size. It is
 * strict: what a server must not send is a fault, because the load generator also tests servers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define H1_LINE_BYTES 8192u /* of a line, with its end */

enum h1_state {
    H1_STATUS_LINE,
    H1_FIELD_LINE,
    H1_LENGTH,     /* a body of `left` more bytes */
    H1_UNTIL_END,  /* a body that the end of the connection ends */
    H1_CHUNK_SIZE, /* the line before a chunk */
    H1_CHUNK,      /* `left` more bytes of it */
    H1_CHUNK_END,  /* the empty line behind its bytes */
    H1_TRAILER_LINE,
    H1_COMPLETE,
};

enum h1_event {
    H1_MORE, /* all bytes are consumed */
    H1_HEAD, /* the head of the final response is complete: `status`, `close` */
    H1_BODY, /* bytes of the body */
    H1_OVER, /* the response is complete; h1_response_begin() before the next one */
    H1_WRONG /* see `fault` */
};

struct h1_response {
    enum h1_state state;
    const char *fault;
    uint16_t status;
    bool close; /* no response follows on this connection (9.3) */

    bool is_head, is_1_0, keeps_alive, has_length, is_chunked;
    uint64_t left;
    uint32_t n_head; /* bytes of the head or of the trailers so far */
    uint32_t n_line; /* bytes of a line that arrives in pieces, */
    char *line;      /* in a buffer of H1_LINE_BYTES, or NULL */
};

/* Begins a response to a HEAD request, or to another one. `r` is zeros or has had a response. */
void h1_response_begin(struct h1_response *r, bool is_head);
/* Consumes bytes up to the next event: *data and *n_bytes advance. *n_body: the bytes of H1_BODY.
 * After H1_WRONG no more calls. */
enum h1_event h1_response_take(struct h1_response *r, const uint8_t **data, uint32_t *n_bytes,
                               uint32_t *n_body);
void h1_response_free(struct h1_response *r);
