/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What management of a server reads, and what it may change. The server fills in the view when its
 * shards exist and owns all that it points to; a reader calls no function of the server but the
 * hooks. Any thread may read, while the server keeps what the view points to. Lcores write
 * meanwhile: each value is recent, but not all are of the same moment.
 */
#pragma once

#include <pthread.h>

#include <nightjar/server.h>

#include "config/config_diff.h"
#include "dpdk/lcore_loop.h"
#include "dpdk/port.h"
#include "http/handlers/route_table.h"
#include "log/access_log.h"
#include "log/lcore_log.h"
#include "shape/client_table.h"
#include "shard/shard.h"
#include "site/site_counts.h"
#include "store/file_reader.h"
#include "store/file_store.h"
#include "telem/count.h"
#include "tls/current_context.h"
#include "threads/worker_pool.h"

/* A port, and its shards: n_shards of the view's, from `first` on. */
struct nj_mgmt_port {
    const struct nj_dpdk_port *dev;
    const struct nj_port_stats *stats; /* at most a second old; nj_mgmt_read_port_stats() */
    uint32_t first, n_shards;
};

/* Rates of a class in the last second. Written by the supervisor. */
struct nj_class_rate {
    _Atomic uint64_t requests_per_s, bytes_per_s;
};

/* Reloads of the configuration. Any thread reads what the thread of a reload writes. */
struct nj_mgmt_reloads {
    _Atomic int64_t good_at_s; /* UNIX time of the last one that succeeded, at first of the start */
    _Atomic bool has_failed;   /* the last one: the former configuration is in force */
};

/* Any thread but an lcore may call these. */
struct nj_mgmt_hooks {
    void *ctx;
    /* nj_server_change_limits(): false, with the reason in `why`, if nothing has changed. */
    bool (*change_limits)(void *ctx, const char *change, char *why, size_t why_bytes);
    /* Each lcore resets its counters of handlers in a later step. */
    void (*reset_handler_counters)(void *ctx);
    /* nj_server_reload(): false if nothing has changed, with a line for each error in *errors, for
     * the caller to free(3); NULL: no memory. */
    bool (*reload)(void *ctx, char **errors);
    /* Open the access log again. False: there is none. */
    bool (*reopen_log)(void *ctx);
    /* What nj_server_reload() would change, and what was changed at run time. False: the files have
     * errors. *errors and *restart are lines, for the caller to free(3), or NULL. */
    bool (*diff)(void *ctx, nj_config_change_fn *see, void *of, char **errors, char **restart);
};

struct nj_mgmt_capture;
struct nj_mgmt_trace;
struct nj_mgmt_transfers;

struct nj_mgmt_view {
    const struct nj_tsc_clock *clock;
    uint32_t n_ports, n_shards;
    struct nj_mgmt_port port[NJ_SERVER_PORTS_MAX];
    pthread_mutex_t *port_stats_lock;
    const struct nj_shard *shard[NJ_SHARDS_MAX];
    const struct nj_lcore *lcore;         /* of each shard */
    const struct nj_lcore_log *lcore_log; /* of each shard */
    const struct nj_worker_pool *workers;
    const struct nj_file_store *store;   /* NULL: no files are served */
    const struct nj_file_reader *reader; /* NULL: workers read */
    const struct nj_access_log *access;  /* NULL: none */
    struct nj_policies *policies;        /* to be locked: nj_policies_call_with_current() */
    const struct nj_clients *clients;
    /* The one of all clients that the table has no room for. */
    const struct nj_client *other_clients;
    const struct nj_class_rate *class_rate; /* NJ_CLASSES_MAX, by slot */
    const struct nj_routes *routes;
    uint32_t fibers_max;
    int64_t started_s;                             /* UNIX time */
    const _Atomic nj_ns *supervised_at;            /* the last tick of the supervisor, of
                                                      CLOCK_MONOTONIC; 0: none yet */
    const _Atomic bool *is_stopping, *is_yielding; /* another process takes new connections */
    const _Atomic nj_ns *unpolled;         /* how long each lcore has not polled, at that tick */
    const _Atomic nj_ns *ready_stall;      /* an lcore that has not polled for longer is stuck */
    const struct nj_server_config *config; /* of the start */
    const struct nj_mgmt_reloads *reloads;
    struct nj_tls_current_context *tls;  /* to take a reference; NULL: no TLS */
    struct nj_mgmt_transfers *transfers; /* to be called: mgmt/transfers.h */
    struct nj_mgmt_capture *capture;     /* to be called by the management thread */
    struct nj_mgmt_trace *trace;         /* the same */
    struct nj_mgmt_hooks hooks;
};

/* Sums over all shards, of a counter, with what is counted beside them, and of a kind of counters.
 */
uint64_t nj_mgmt_sum_counter(const struct nj_mgmt_view *v, nj_counter which);
uint64_t nj_mgmt_sum_counter_kind(const struct nj_mgmt_view *v, enum nj_counter_kind kind);

/* Counts of the class in a slot, summed over all shards. */
struct nj_mgmt_class_sum {
    uint64_t requests, refused, bytes, throttled_ns, open, waiting;
};
struct nj_mgmt_class_sum nj_mgmt_sum_class(const struct nj_mgmt_view *v, uint32_t slot);

/* Counts of a site, by their index, summed over all shards. `at`: rules.counts_at. */
struct nj_mgmt_site_sum {
    uint64_t n[NJ_SITE_N_BYTES + 1];
};
struct nj_mgmt_site_sum nj_mgmt_sum_site(const struct nj_mgmt_view *v, uint32_t at);

/* The port of a shard. */
const struct nj_mgmt_port *nj_mgmt_port_of_shard(const struct nj_mgmt_view *v, uint32_t shard);

/* Mbufs of a pool that are in use: not the `n_ready` that an lcore has taken in advance. NULL: 0.
 */
uint64_t nj_mgmt_mbufs_used(const struct rte_mempool *pool, uint64_t n_ready);

/* The last sample of a port of this view. */
struct nj_port_stats nj_mgmt_read_port_stats(const struct nj_mgmt_view *v,
                                             const struct nj_mgmt_port *p);

/* "run", "drain": for metrics and answers. */
const char *nj_mgmt_phase_name(enum nj_run_phase phase);
