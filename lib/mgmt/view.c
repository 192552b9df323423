/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums over the shards of a server. */
#include "mgmt/view.h"

#include <rte_mempool.h>

#include "base/relaxed_atomics.h"
#include "log/log_writer.h"
#include "telem/counters_http.h"

uint64_t nj_mgmt_sum_counter(const struct nj_mgmt_view *v, nj_counter which)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < v->n_shards; i++)
        n += nj_counter_read(&v->shard[i]->counters, which);
    /* These are counted beside the shards. */
    if (v->access && which == NJ_C_access_written)
        n += nj_access_log_counts(v->access).n_written;
    if (v->access && which == NJ_C_access_lost)
        n += nj_access_log_counts(v->access).n_lost;
    if (which == NJ_C_log_lost) {
        n += nj_log_writer_n_lost();
        for (uint32_t i = 0; i < v->n_shards; i++)
            n += nj_load_relaxed(&v->lcore_log[i].n_lost);
    }
    return n;
}

uint64_t nj_mgmt_sum_counter_kind(const struct nj_mgmt_view *v, enum nj_counter_kind kind)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < v->n_shards; i++)
        n += nj_counters_sum_of_kind(&v->shard[i]->counters, kind);
    return n;
}

struct nj_mgmt_class_sum nj_mgmt_sum_class(const struct nj_mgmt_view *v, uint32_t slot)
{
    struct nj_mgmt_class_sum sum = {0};

    for (uint32_t i = 0; i < v->n_shards; i++) {
        const struct nj_class_stats *c = nj_shape_class_stats(v->shard[i]->conns.txns.shape, slot);
        sum.requests += nj_load_relaxed(&c->n_requests);
        sum.refused += nj_load_relaxed(&c->n_refused);
        sum.bytes += nj_load_relaxed(&c->n_bytes);
        sum.throttled_ns += nj_load_relaxed(&c->throttled_ns);
        sum.open += nj_load_relaxed(&c->n_open);
        sum.waiting += nj_load_relaxed(&c->n_waiting);
    }
    return sum;
}

struct nj_mgmt_site_sum nj_mgmt_sum_site(const struct nj_mgmt_view *v, uint32_t at)
{
    struct nj_mgmt_site_sum sum = {{0}};

    for (uint32_t i = 0; i < v->n_shards; i++)
        for (unsigned k = 0; k < NJ_ARRAY_LEN(sum.n); k++)
            sum.n[k] += nj_site_count_read(nj_txns_site(&v->shard[i]->conns.txns, at), k);
    return sum;
}

const struct nj_mgmt_port *nj_mgmt_port_of_shard(const struct nj_mgmt_view *v, uint32_t shard)
{
    const struct nj_mgmt_port *p = v->port;

    while (shard >= p->first + p->n_shards)
        p++;
    return p;
}

uint64_t nj_mgmt_mbufs_used(const struct rte_mempool *pool, uint64_t n_ready)
{
    uint64_t n_taken = pool ? rte_mempool_in_use_count(pool) : 0;

    return n_taken > n_ready ? n_taken - n_ready : 0;
}

struct nj_port_stats nj_mgmt_read_port_stats(const struct nj_mgmt_view *v,
                                             const struct nj_mgmt_port *p)
{
    pthread_mutex_lock(v->port_stats_lock);
    struct nj_port_stats stats = *p->stats;
    pthread_mutex_unlock(v->port_stats_lock);
    return stats;
}

const char *nj_mgmt_phase_name(enum nj_run_phase phase)
{
    static const char *const names[] = {
        [NJ_PHASE_START] = "start", [NJ_PHASE_RUN] = "run",     [NJ_PHASE_KEEP] = "keep",
        [NJ_PHASE_TAKE] = "take",   [NJ_PHASE_YIELD] = "yield", [NJ_PHASE_DRAIN] = "drain",
        [NJ_PHASE_ABORT] = "abort", [NJ_PHASE_STOP] = "stop"};

    return names[phase];
}
