/* SPDX-License-Identifier: BSD-3-Clause */
/* A record of the access log, filled by an lcore and written by the log thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/request_head.h"
#include "base/types.h"

/* Longer texts are truncated and marked `cut`. */
#define NJ_ACCESS_TEXT_BYTES 704u

struct nj_access_record {
    int64_t wall_ns;       /* UNIX time of the request's arrival */
    struct nj_addr remote; /* of the connection: the source of a PROXY header, else `peer` */
    struct nj_addr peer;   /* of TCP */
    struct nj_addr client; /* of the request: that which a trusted proxy names, else `remote` */
    uint16_t rport;
    uint16_t status;    /* 0: none was sent */
    uint32_t stream_id; /* of HTTP/2; of HTTP/1: number of the request in its connection, from 1 */
    uint32_t shard;
    uint64_t conn;     /* number of the connection, unique within its shard */
    uint64_t n_bytes;  /* sent bytes of the body */
    nj_ns ttfb, total; /* from the request's head to the first byte of the body (without a body: to
                          the response's head), and to the end */
    nj_ns throttled;   /* part of these times spent waiting for credit */
    bool complete;     /* the last byte was sent */
    uint8_t version;   /* enum nj_http_version */
    uint8_t scheme;    /* enum nj_scheme: that which a trusted proxy names, else of the request */
    char class_of[32];
    const char *tls_suite; /* a constant; NULL: cleartext */
    /* method, path, authority, referer, user-agent, subject of the client's certificate,
     * consecutively in text[] */
    uint16_t n_method, n_path, n_authority, n_referer, n_agent, n_subject;
    bool cut;
    char text[NJ_ACCESS_TEXT_BYTES];
};

/* Operations of the log for one shard. It owns the records and never waits. */
struct nj_access_ops {
    void *ctx;
    /* A record for the duration of a request; NULL: none is free, which is counted as
     * access_lost. */
    struct nj_access_record *(*take)(void *ctx);
    /* The record is complete: write it. */
    void (*put)(void *ctx, struct nj_access_record *a);
    /* It is not to be written. */
    void (*drop)(void *ctx, struct nj_access_record *a);
};
