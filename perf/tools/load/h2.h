/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HTTP/2 (RFC 9113) for a connection of the load generator.
 *
 * The requests are known in advance, so they are encoded once. Fields common to all requests enter
 * the peer's dynamic table (RFC 7541 2.3.2) with the first request of a connection, a path with its
 * second request. From then on each of them is one octet, as with browsers and h2load. nghttp2
 * decodes the responses.
 */
#pragma once

#include <nghttp2/nghttp2.h>

#include "framing.h"

struct h2_stream {
    struct load_request r;
    uint32_t id;           /* 0: none */
    uint64_t length;       /* of the body, from content-length; UINT64_MAX: no content-length */
    bool asked_all;        /* END_STREAM was sent */
    uint64_t upload_left;  /* bytes of the request's body that are not sent yet */
    int64_t window;        /* for them */
    uint32_t n_unreported; /* received bytes that are not returned to its window yet */
};

struct h2_conn {
    struct load_conn conn; /* `settled`: its SETTINGS were received */
    nghttp2_hd_inflater *inflater;
    uint32_t next_id, mask;
    uint32_t streams_max; /* the peer's */
    bool plain;           /* its table is too small */
    bool plain_told;
    uint8_t n_seen;      /* requests so far, up to 1 */
    uint32_t n_inserted; /* into the peer's table */

    uint8_t head[9]; /* of the current frame */
    uint8_t n_head;
    uint32_t left; /* of its payload */
    uint8_t *part; /* a payload that arrives in pieces, or a field section */
    uint32_t n_part;
    uint32_t block_stream; /* whose field section continues with CONTINUATION; 0: none */
    uint8_t block_flags;

    uint32_t n_unreported; /* received bytes that are not returned to the connection's window yet */
    int64_t window, initial_window;
    uint32_t upload_next; /* slot whose turn it is */
    uint16_t *known;      /* of each path: 0 not requested yet, else 1 + its number in the table */
    struct h2_stream *stream;
};

/* Its functions take the `conn` of a struct h2_conn. */
extern const struct load_framing h2_framing;
