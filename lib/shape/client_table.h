/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Table of clients, common to all lcores, since RSS spreads the connections of a client.
 *
 * The table has a fixed size and no locks: each field is atomic. An entry stays while it is
 * referenced; of the others the one unused for longest is recycled. It is the only place where
 * usage and limits of an address or network are kept.
 *
 * A client has one entry for its connections, and one per class for its requests, with the limits
 * and caps of that class.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/types.h"
#include "shape/gcra.h"
#include "shape/request_policy.h"

struct nj_clients;

struct nj_client {
    _Atomic uint64_t key; /* 0: free */
    _Atomic uint32_t n_refs;
    _Atomic uint32_t n_conns, n_streams;
    _Atomic uint32_t n_lcores;     /* lcores with demand for this client */
    _Atomic uint64_t requests_tat; /* theoretical arrival time (GCRA) of
                                      requests, ns */
    struct nj_gcra rate_gcra;      /* of bytes */
    _Atomic uint64_t n_bytes, throttled_ns, n_requests, n_refused; /* for telemetry */
    _Atomic uint64_t used_at;
    struct nj_addr addr; /* first address of this client, for telemetry: nj_client_addr() */
} NJ_CACHE_ALIGNED;

/* Returns NULL when memory is refused. `n_max` is rounded up to a power of two. */
struct nj_clients *nj_clients_new(uint32_t n_max);
void nj_clients_free(struct nj_clients *t);

/* Returns the client of this key, referenced until nj_client_put(). Any lcore. Returns NULL when
 * all slots are in use; the caller then uses nj_clients_overflow_client(), which all such clients
 * share: limits of bytes hold, caps do not. */
struct nj_client *nj_client_take(struct nj_clients *t, uint64_t key, const struct nj_addr *addr,
                                 nj_ns now);
struct nj_client *nj_clients_overflow_client(struct nj_clients *t);
void nj_client_put(struct nj_client *c, nj_ns now);

/* Counts one more connection or request if the caps allow it. Each success (true, SERVE) has to be
 * undone by the matching end call. LATER: refused; *retry_after_s is when another try may succeed.
 * Any lcore. */
bool nj_client_conn_begin(struct nj_client *c, const struct nj_client_caps *caps);
void nj_client_conn_end(struct nj_client *c);
enum nj_action nj_client_request_begin(struct nj_client *c, const struct nj_client_caps *caps,
                                       nj_ns now, uint32_t *retry_after_s);
void nj_client_request_end(struct nj_client *c);

/* For telemetry, any thread: writes the `n` largest clients to `out` and returns how many. They are
 * not referenced: a slot may be recycled while it is read. */
enum nj_clients_by { NJ_CLIENTS_BY_BYTES, NJ_CLIENTS_BY_STREAMS, NJ_CLIENTS_BY_CONNECTIONS };
uint32_t nj_clients_top(const struct nj_clients *t, enum nj_clients_by by,
                        const struct nj_client **out, uint32_t n);
struct nj_addr nj_client_addr(const struct nj_client *c);
