/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One connection of a client, as a state machine in one of two framings, HTTP/2 (h2.h) or HTTP/1.1
 * (h1.h): its input is received bytes, its output bytes to send and completed requests. It has no
 * clock, no socket and no thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/types.h"

#define LOAD_PATHS_MAX   1024u
#define LOAD_FIELDS_MAX  16u
#define LOAD_STREAMS_MAX 1024u
#define LOAD_BLOCK_BYTES 8192u  /* of all fields of a request */
#define LOAD_HEAD_BYTES  65536u /* of a response's fields, if they do not arrive at once */

enum load_end {
    LOAD_DONE,    /* a complete response, with any status */
    LOAD_RESET,   /* RST_STREAM by the peer, or refused with GOAWAY */
    LOAD_TIMEOUT, /* cancelled by this client, after a timeout */
    LOAD_LOST,    /* its connection ended */
    LOAD_N_ENDS
};

/* A request, and its response. */
struct load_request {
    nj_ns due, first_at; /* due time of the request; time of the first byte of the response, or 0 */
    uint64_t n_body;     /* received bytes */
    uint16_t status;     /* 0: not known yet */
};

/* Shared by all connections. */
struct load_plan {
    const struct load_framing *framing;
    uint32_t n_paths, streams; /* maximum of requests in flight on a connection */
    struct {
        const char *text;
        uint32_t n_bytes;
        bool indexed; /* HTTP/2: the peer's table has room for it */
    } path[LOAD_PATHS_MAX];
    uint64_t upload_bytes; /* of each request's body; 0: GET */
    uint32_t window;       /* HTTP/2: of a stream, for responses */
    bool is_https;         /* the scheme */

    /* Made by make(). */
    uint32_t request_max; /* bytes of the longest request, without its body */
    union {
        struct {
            uint8_t method;    /* an index of the static table */
            uint32_t n_common; /* the common fields, when they are in the peer's dynamic table */
            uint32_t n_first, n_plain;
            uint8_t first[LOAD_BLOCK_BYTES]; /* them, as they enter the table */
            uint8_t plain[LOAD_BLOCK_BYTES]; /* them, for a peer without one */
        } h2;
        struct {
            uint32_t n_rest;
            char rest[LOAD_BLOCK_BYTES]; /* what follows the path in the head of a request */
        } h1;
    };

    void (*came)(void *user, uint32_t n_bytes); /* of a body */
    void (*ended)(void *user, const struct load_request *r, enum load_end end, nj_ns now);
};

/* Bytes to send. If bytes do not fit, the connection ends, because the peer decides the number of
 * required replies. The caller of a request ensures that request_max bytes are free. */
struct load_out {
    uint8_t *data;
    uint32_t n_bytes, n_max;
    bool full;
};

/* What the two framings' connections begin with. */
struct load_conn {
    const struct load_plan *plan; /* NULL: not open */
    void *user;
    const char *fault; /* the peer's protocol error, or NULL */
    uint32_t n_open;   /* requests in flight */
    bool leaving;      /* no further requests: the peer said so, or no identifiers are left */
    bool settled;      /* the peer speaks this protocol */
};

struct load_framing {
    const char *alpn;   /* RFC 7301 */
    const char *stream; /* what `streams` counts, for the report */

    /* Encodes. False: more than LOAD_BLOCK_BYTES. Each of `fields` is "name: value"; the name in
     * lower case. */
    bool (*make)(struct load_plan *p, const char *authority, const char *const *fields,
                 uint32_t n_fields);
    /* `user` is for came() and ended(). False without memory. */
    bool (*open)(struct load_conn *c, const struct load_plan *plan, void *user,
                 struct load_out *out);
    /* The connection has ended: open requests end as LOAD_LOST. Frees the memory. A connection of
     * zeros may be closed, too. */
    void (*close)(struct load_conn *c, nj_ns now);
    /* Processes received bytes. False: protocol error of the peer, see `fault`; the caller resets
     * the connection. */
    bool (*input)(struct load_conn *c, const uint8_t *data, uint32_t n_bytes, nj_ns now,
                  struct load_out *out);
    /* The peer sends nothing more, which it said in TLS, too. This may complete a response. */
    void (*finish)(struct load_conn *c, nj_ns now);
    /* Number of requests that may be sent now. */
    uint32_t (*room)(const struct load_conn *c);
    /* Only while room(). */
    void (*ask)(struct load_conn *c, uint32_t path, nj_ns due, struct load_out *out);
    /* Continues the bodies of requests, as far as windows and `out` permit. Returns bytes of
     * bodies. */
    uint64_t (*upload)(struct load_conn *c, struct load_out *out);
    /* Cancels requests that were due before `due`. False: the connection cannot continue without
     * them; the caller resets it. */
    bool (*give_up)(struct load_conn *c, nj_ns due, nj_ns now, struct load_out *out);
};
