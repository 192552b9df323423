/* SPDX-License-Identifier: BSD-3-Clause */
/* A record of the access log, filled by an lcore and written by the log thread. */
#ifndef NJ_TELEM_ACCESS_H
#define NJ_TELEM_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/types.h"

/* Longer texts are truncated and marked `cut`. */
#define NJ_ACCESS_TEXT_BYTES 704u

struct nj_access_record {
    int64_t wall_ns; /* UNIX time at which the request came */
    struct nj_addr remote;
    uint16_t rport;
    uint16_t status; /* 0: none was sent */
    uint32_t stream_id, shard;
    uint64_t conn;     /* a number for each connection of its shard */
    uint64_t n_bytes;  /* of the body, that left */
    nj_ns ttfb, total; /* from the request's head to the first byte of the body, to the end; ttfb
                        * of a response without a body: to its head */
    nj_ns throttled;   /* of these, waiting for credit */
    bool complete;     /* the last byte left */
    char class_of[32];
    /* method, path, authority, referer, user-agent, one behind the other in text[] */
    uint16_t n_method, n_path, n_authority, n_referer, n_agent;
    bool cut;
    char text[NJ_ACCESS_TEXT_BYTES];
};

/* Records belong to the port. Never waits. */
struct nj_access_ops {
    void *ctx;
    /* A record to fill in, for as long as its request takes; NULL: none is free, and the port has
     * counted that (access_lost). */
    struct nj_access_record *(*take)(void *ctx);
    /* It is complete: write it. */
    void (*put)(void *ctx, struct nj_access_record *a);
};

#endif
