/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One connection of an HTTP/2 client (RFC 9113), as a machine: bytes in, bytes out, requests that
 * end. It has no clock, no socket and no thread.
 *
 * What is asked is known beforehand, so requests are encoded once: fields that all have in common
 * enter the peer's dynamic table (RFC 7541 2.3.2) with the first request of a connection, a path
 * with its second request, and from then on each is one octet, as browsers and h2load have it.
 * nghttp2 decodes what comes back.
 */
#ifndef NJ_PERF_LOAD_H2_H
#define NJ_PERF_LOAD_H2_H

#include <stdbool.h>
#include <stdint.h>

#include <nghttp2/nghttp2.h>

#include "base/types.h"

#define H2_PATHS_MAX    1024u
#define H2_FIELDS_MAX   16u
#define H2_STREAMS_MAX  1024u
#define H2_FRAME_BYTES  16384u /* of a payload: what a peer may send us unasked (RFC 9113 4.2) */
#define H2_BLOCK_BYTES  8192u  /* of all fields of a request */
#define H2_ANSWER_BYTES 65536u /* of a field section that comes in several frames */

enum h2_end {
    H2_DONE,    /* a whole response, whatever its status */
    H2_RESET,   /* RST_STREAM by the peer, or refused with GOAWAY */
    H2_TIMEOUT, /* given up by us */
    H2_LOST,    /* its connection ended */
    H2_N_ENDS
};

struct h2_stream {
    uint32_t id; /* 0: none */
    uint16_t path, status;
    uint64_t length;       /* that content-length promises, of the body; UINT64_MAX: nothing */
    bool asked_all;        /* END_STREAM is out */
    nj_ns due, first_at;   /* when it was to be asked; when its first byte came, or 0 */
    uint64_t n_body;       /* bytes that came */
    uint64_t upload_left;  /* bytes of the request's body that are still to go */
    int64_t window;        /* for them */
    uint32_t n_unreported; /* bytes that came and are not given back to its window */
};

struct h2_conn;

/* The same for all connections. */
struct h2_plan {
    uint32_t n_paths, streams; /* at most so many open at once on a connection */
    struct {
        const char *text;
        uint32_t n_bytes;
        bool indexed; /* the peer's table has room for it */
    } path[H2_PATHS_MAX];
    uint64_t upload_bytes; /* of each request's body; 0: GET */
    uint32_t window;       /* of a stream, for what comes */

    /* Made by h2_plan_make(). */
    uint8_t method;    /* an index of the static table */
    uint32_t n_common; /* fields all requests have, by now in the peer's dynamic table */
    uint32_t n_first, n_plain;
    uint32_t request_max;          /* bytes of the longest request, without its body */
    uint8_t first[H2_BLOCK_BYTES]; /* them, as they enter the table */
    uint8_t plain[H2_BLOCK_BYTES]; /* them, for a peer without one */

    void (*came)(void *user, uint32_t n_bytes); /* of a body */
    void (*ended)(void *user, const struct h2_stream *s, enum h2_end end, nj_ns now);
};

/* Bytes to be sent. What does not fit is the end of the connection: peers decide what we answer. Of
 * requests, whoever asks sees to it that there are request_max bytes left. */
struct h2_out {
    uint8_t *data;
    uint32_t n_bytes, n_max;
    bool full;
};

struct h2_conn {
    const struct h2_plan *plan;
    void *user;
    nghttp2_hd_inflater *inflater;
    const char *fault; /* what the peer did wrong, or NULL */
    uint32_t next_id, n_open, mask;
    uint32_t streams_max; /* the peer's */
    bool leaving;         /* GOAWAY, or out of numbers: nothing may be asked */
    bool settled;         /* its SETTINGS came */
    bool plain;           /* its table is too small */
    bool plain_told;
    uint8_t n_seen;      /* requests so far, up to 1 */
    uint32_t n_inserted; /* into the peer's table */

    uint8_t head[9]; /* of the frame that comes */
    uint8_t n_head;
    uint32_t left; /* of its payload */
    uint8_t *part; /* a payload that does not come in one piece, or a field section */
    uint32_t n_part;
    uint32_t block_stream; /* whose field section goes on with CONTINUATION; 0: none */
    uint8_t block_flags;

    uint32_t n_unreported; /* bytes that came and are not given back to the connection's window */
    int64_t window, initial_window;
    uint32_t upload_next; /* slot whose turn it is */
    uint16_t *known;      /* of each path: 0 not asked yet, else 1 + its number in the table */
    struct h2_stream *stream;
};

/* Encode. False: more than H2_BLOCK_BYTES. Each of `fields` is "name: value"; the name in lower
 * case. */
bool h2_plan_make(struct h2_plan *p, const char *authority, const char *const *fields,
                  uint32_t n_fields);

/* `user` is for plan->ended. False when memory is refused. */
bool h2_open(struct h2_conn *c, const struct h2_plan *plan, void *user, struct h2_out *out);
/* Its connection has ended: what was asked ends as H2_LOST. Frees what it has. */
void h2_close(struct h2_conn *c, nj_ns now);

/* Bytes came. False: the peer broke the protocol, see `fault`; the connection is to be reset. */
bool h2_input(struct h2_conn *c, const uint8_t *data, uint32_t n_bytes, nj_ns now,
              struct h2_out *out);

/* So many requests may be asked now. */
uint32_t h2_room(const struct h2_conn *c);
/* Only while h2_room(). */
void h2_ask(struct h2_conn *c, uint32_t path, nj_ns due, struct h2_out *out);
/* Bodies of requests go on, as far as windows allow and `out` has room. Returns bytes of bodies. */
uint64_t h2_upload(struct h2_conn *c, struct h2_out *out);
/* Give up what was to be asked before `due`. */
void h2_give_up(struct h2_conn *c, nj_ns due, nj_ns now, struct h2_out *out);

#endif
