/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One connection of an HTTP/2 client (RFC 9113), as a state machine: its input is received bytes,
 * its output bytes to send and completed requests. It has no clock, no socket and no thread.
 *
 * The requests are known in advance, so they are encoded once. Fields common to all requests enter
 * the peer's dynamic table (RFC 7541 2.3.2) with the first request of a connection, a path with its
 * second request. From then on each of them is one octet, as with browsers and h2load. nghttp2
 * decodes the responses.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <nghttp2/nghttp2.h>

#include "base/types.h"

#define H2_PATHS_MAX   1024u
#define H2_FIELDS_MAX  16u
#define H2_STREAMS_MAX 1024u
#define H2_FRAME_BYTES                                                                             \
    16384u                     /* of a payload: the default SETTINGS_MAX_FRAME_SIZE (RFC 9113 4.2) \
                                */
#define H2_BLOCK_BYTES  8192u  /* of all fields of a request */
#define H2_ANSWER_BYTES 65536u /* of a field section in several frames */

enum h2_end {
    H2_DONE,    /* a complete response, with any status */
    H2_RESET,   /* RST_STREAM by the peer, or refused with GOAWAY */
    H2_TIMEOUT, /* cancelled by this client, after a timeout */
    H2_LOST,    /* its connection ended */
    H2_N_ENDS
};

struct h2_stream {
    uint32_t id; /* 0: none */
    uint16_t path, status;
    uint64_t length;     /* of the body, from content-length; UINT64_MAX: no content-length */
    bool asked_all;      /* END_STREAM was sent */
    nj_ns due, first_at; /* due time of the request; time of the first byte of the response, or 0 */
    uint64_t n_body;     /* received bytes */
    uint64_t upload_left;  /* bytes of the request's body that are not sent yet */
    int64_t window;        /* for them */
    uint32_t n_unreported; /* received bytes that are not returned to its window yet */
};

struct h2_conn;

/* Shared by all connections. */
struct h2_plan {
    uint32_t n_paths, streams; /* maximum of open streams on a connection */
    struct {
        const char *text;
        uint32_t n_bytes;
        bool indexed; /* the peer's table has room for it */
    } path[H2_PATHS_MAX];
    uint64_t upload_bytes; /* of each request's body; 0: GET */
    uint32_t window;       /* of a stream, for responses */
    bool is_https;         /* the scheme */

    /* Made by h2_plan_make(). */
    uint8_t method;    /* an index of the static table */
    uint32_t n_common; /* the common fields, when they are in the peer's dynamic table */
    uint32_t n_first, n_plain;
    uint32_t request_max;          /* bytes of the longest request, without its body */
    uint8_t first[H2_BLOCK_BYTES]; /* them, as they enter the table */
    uint8_t plain[H2_BLOCK_BYTES]; /* them, for a peer without one */

    void (*came)(void *user, uint32_t n_bytes); /* of a body */
    void (*ended)(void *user, const struct h2_stream *s, enum h2_end end, nj_ns now);
};

/* Bytes to send. If bytes do not fit, the connection ends, because the peer decides the number of
 * required replies. The caller of a request ensures that request_max bytes are free. */
struct h2_out {
    uint8_t *data;
    uint32_t n_bytes, n_max;
    bool full;
};

struct h2_conn {
    const struct h2_plan *plan;
    void *user;
    nghttp2_hd_inflater *inflater;
    const char *fault; /* the peer's protocol error, or NULL */
    uint32_t next_id, n_open, mask;
    uint32_t streams_max; /* the peer's */
    bool leaving;         /* GOAWAY, or no stream identifiers left: no further requests */
    bool settled;         /* its SETTINGS were received */
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

/* Encode. False: more than H2_BLOCK_BYTES. Each of `fields` is "name: value"; the name in lower
 * case. */
bool h2_plan_make(struct h2_plan *p, const char *authority, const char *const *fields,
                  uint32_t n_fields);

/* `user` is for plan->ended. False without memory. */
bool h2_open(struct h2_conn *c, const struct h2_plan *plan, void *user, struct h2_out *out);
/* The connection has ended: open requests end as H2_LOST. Frees the memory. */
void h2_close(struct h2_conn *c, nj_ns now);

/* Processes received bytes. False: protocol error of the peer, see `fault`; the caller resets the
 * connection. */
bool h2_input(struct h2_conn *c, const uint8_t *data, uint32_t n_bytes, nj_ns now,
              struct h2_out *out);

/* Number of requests that may be sent now. */
uint32_t h2_room(const struct h2_conn *c);
/* Only while h2_room(). */
void h2_ask(struct h2_conn *c, uint32_t path, nj_ns due, struct h2_out *out);
/* Continues the bodies of requests, as far as windows and `out` permit. Returns bytes of bodies. */
uint64_t h2_upload(struct h2_conn *c, struct h2_out *out);
/* Cancels requests that were due before `due`. */
void h2_give_up(struct h2_conn *c, nj_ns due, nj_ns now, struct h2_out *out);
