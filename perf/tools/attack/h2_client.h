/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One connection of HTTP/2 over which a client requests one small file again and again: the parts
 * of RFC 9113 that this needs. Responses may come in any order.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/types.h"

#define H2_OPEN_MAX       64u /* requests without a response; a power of two */
#define H2_MESSAGE_BYTES  256u
#define H2_HEAD_BYTES     9u
#define H2_PATH_BYTES_MAX 64u

struct h2_client {
    uint32_t n_asked;           /* the next stream is 2 n_asked + 1 */
    uint32_t n_open;            /* requests without a response */
    nj_ns sent_at[H2_OPEN_MAX]; /* of a request; 0: none */
    uint8_t head[H2_HEAD_BYTES];
    uint32_t n_head, n_left; /* bytes of the head; bytes of the payload that are to come */
    bool may_have_status;    /* the next byte is the first of a header block */
    bool owes_settings_ack;
};

/* A request is answered: it was sent at `sent_at`. */
typedef void h2_answered(void *ctx, nj_ns sent_at);

/* Writes the preface, SETTINGS and a WINDOW_UPDATE that suffices for 2 GiB of responses. Returns
 * the number of bytes. */
uint32_t h2_begin(struct h2_client *c, uint8_t out[H2_MESSAGE_BYTES]);

bool h2_may_ask(const struct h2_client *c);

/* Writes a request for `path`, of at most H2_PATH_BYTES_MAX bytes. Returns the number of bytes. */
uint32_t h2_ask(struct h2_client *c, uint8_t out[H2_MESSAGE_BYTES], const char *path, nj_ns now);

/* Writes the acknowledgment of SETTINGS, if one is due. Returns the number of bytes. */
uint32_t h2_owed(struct h2_client *c, uint8_t out[H2_MESSAGE_BYTES]);

/* Parses bytes of the server. False: GOAWAY, RST_STREAM, or a response other than 200. */
bool h2_input(struct h2_client *c, const uint8_t *data, uint32_t n, h2_answered *answered,
              void *ctx);
