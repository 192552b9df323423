/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everybody who has something open here, for all lcores together, since RSS scatters what one
 * client opens. A table of fixed size without locks: each field is an atomic, a client stays while
 * somebody holds it, and the longest unused makes room. What one address or network costs us and
 * may have is written here and nowhere else.
 *
 * A client has one entry for its connections, and one for its requests in each class it uses, with
 * the limits and caps of that class.
 */
#ifndef NJ_SHAPE_CLIENT_TABLE_H
#define NJ_SHAPE_CLIENT_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/types.h"
#include "shape/gcra.h"
#include "shape/request_class.h"

struct nj_clients;

struct nj_client {
    _Atomic uint64_t key; /* 0: free */
    _Atomic uint32_t n_refs;
    _Atomic uint32_t n_conns, n_streams;
    _Atomic uint32_t n_lcores;                                     /* that want to send to it */
    _Atomic uint64_t requests_tat;                                 /* GCRA of requests, ns */
    struct nj_gate gate;                                           /* of bytes */
    _Atomic uint64_t n_bytes, throttled_ns, n_requests, n_refused; /* for people */
    _Atomic uint64_t used_at;
    struct nj_addr addr; /* that came first, for people: nj_client_addr() */
} NJ_CACHE_ALIGNED;

/* NULL when memory is refused. `n_max` is rounded up to a power of two. */
struct nj_clients *nj_clients_new(uint32_t n_max);
void nj_clients_free(struct nj_clients *t);

/* The client of this key, held until nj_client_put(). Any lcore. NULL: all places are held; then
 * the caller uses nj_clients_rest(), which all such clients share, so that limits of bytes hold
 * anyway; caps don't. */
struct nj_client *nj_client_take(struct nj_clients *t, uint64_t key, const struct nj_addr *addr,
                                 nj_ns now);
struct nj_client *nj_clients_rest(struct nj_clients *t);
void nj_client_put(struct nj_client *c, nj_ns now);

/* One more connection or request, if the caps let it; each true one (SERVE) is undone by its
 * counterpart. A request is SERVEd, or LATER with the seconds after which another try has a chance.
 * Any lcore. */
bool nj_client_conn_begin(struct nj_client *c, const struct nj_client_caps *caps);
void nj_client_conn_end(struct nj_client *c);
enum nj_action nj_client_request_begin(struct nj_client *c, const struct nj_client_caps *caps,
                                       nj_ns now, uint32_t *retry_after_s);
void nj_client_request_end(struct nj_client *c);

/* For telemetry, any thread: up to `n` clients into `out`, those first that have most of what is
 * asked. They are not held: a place may change its owner while it is read, word by word. */
enum nj_clients_by { NJ_CLIENTS_BY_BYTES, NJ_CLIENTS_BY_STREAMS, NJ_CLIENTS_BY_CONNECTIONS };
uint32_t nj_clients_top(struct nj_clients *t, enum nj_clients_by by, const struct nj_client **out,
                        uint32_t n);
struct nj_addr nj_client_addr(const struct nj_client *c);

#endif
