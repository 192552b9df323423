/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/full_tables.h"

#include <rte_mempool.h>

#include "base/relaxed_atomics.h"
#include "conn/conn_tls.h"
#include "conn/send_room.h"
#include "http/handlers/exchange.h"
#include "telem/counters_conn.h"
#include "telem/counters_http.h"
#include "store/file_store.h"
#include "telem/counters_packet.h"

/* `max` 0: there is no such table. */
struct level {
    uint64_t used, full_at, max;
};

/* Without the last n-th part, which is reserved for what is begun, or nearly nothing is left. */
static struct level all_but(uint64_t used, uint64_t max, uint32_t part)
{
    return (struct level){used, max - max / part, max};
}

static uint64_t gauge(const struct nj_mgmt_view *v, uint32_t i, nj_counter which)
{
    return nj_counter_read(&v->shard[i]->counters, which);
}

/* nj_tcp_is_nearly_full(): from there on a new connection replaces another one, or is refused. */
static struct level connections(const struct nj_mgmt_view *v, uint32_t i)
{
    return all_but(gauge(v, i, NJ_C_connections), v->shard[i]->cfg.conns_max, 32);
}

/* Then a new handshake ends the one that has waited longest. */
static struct level handshakes(const struct nj_mgmt_view *v, uint32_t i)
{
    uint32_t max = nj_min_u32(NJ_TLS_HANDSHAKES_MAX, v->shard[i]->cfg.conns_max);

    return all_but(gauge(v, i, NJ_C_tls_handshakes_open), v->tls ? max : 0, 16);
}

/* nj_alloc_is_nearly_full(): then connections are reset. */
static struct level session_memory(const struct nj_mgmt_view *v, uint32_t i)
{
    return all_but(gauge(v, i, NJ_C_h2_bytes), v->shard[i]->conns.session_memory.bytes_max, 4);
}

/* The same. */
static struct level held(const struct nj_mgmt_view *v, uint32_t i)
{
    return all_but(gauge(v, i, NJ_C_rx_held), v->shard[i]->cfg.held_max, 8);
}

static struct level rx_mbufs(const struct nj_mgmt_view *v, uint32_t i)
{
    const struct nj_mgmt_port *p = nj_mgmt_port_of_shard(v, i);
    const struct rte_mempool *pool = p->dev->rx_pool[i - p->first];

    return all_but(nj_mgmt_mbufs_used(pool, 0), pool ? pool->size : 0, 32);
}

/* Then peers that acknowledge nothing are reset. */
static struct level tx_mbufs(const struct nj_mgmt_view *v, uint32_t i)
{
    const struct nj_mgmt_port *p = nj_mgmt_port_of_shard(v, i);
    const struct rte_mempool *pool = p->dev->tx_pool[i - p->first];
    uint32_t max = pool && pool->size > NJ_TX_POOL_LOW ? pool->size : 0;

    return (struct level){nj_mgmt_mbufs_used(pool, gauge(v, i, NJ_C_tx_mbufs_ready)),
                          max - NJ_TX_POOL_LOW, max};
}

static struct level stacks(const struct nj_mgmt_view *v, uint32_t i)
{
    uint32_t n = v->routes ? v->fibers_max : 0;

    return (struct level){nj_load_relaxed(&v->shard[i]->conns.handlers.n_fibers), n, n};
}

static struct level stack_queue(const struct nj_mgmt_view *v, uint32_t i)
{
    return (struct level){nj_load_relaxed(&v->shard[i]->conns.handlers.n_waiting),
                          NJ_HANDLERS_QUEUE_MAX, NJ_HANDLERS_QUEUE_MAX};
}

static struct level route_requests(const struct nj_mgmt_view *v, uint32_t i)
{
    return (struct level){gauge(v, i, NJ_C_exchanges), NJ_EXCHANGES_MAX, NJ_EXCHANGES_MAX};
}

static struct level file_jobs(const struct nj_mgmt_view *v, uint32_t i)
{
    return (struct level){gauge(v, i, NJ_C_file_jobs), NJ_FILE_JOBS_MAX, NJ_FILE_JOBS_MAX};
}

static const struct {
    const char *name;
    struct level (*level)(const struct nj_mgmt_view *v, uint32_t shard);
} tables[] = {
    {"connections", connections},
    {"TLS handshakes", handshakes},
    {"bytes of HTTP sessions", session_memory},
    {"received packets that connections hold", held},
    {"receive mbufs", rx_mbufs},
    {"send mbufs", tx_mbufs},
    {"stacks of handlers", stacks},
    {"requests that wait for a stack", stack_queue},
    {"open requests of routes", route_requests},
    {"operations on files", file_jobs},
};
const uint32_t nj__n_tables = NJ_ARRAY_LEN(tables);

bool nj__table_is_full(const struct nj_mgmt_view *v, uint32_t i, struct nj__full_table *full)
{
    *full = (struct nj__full_table){.name = tables[i].name};
    for (uint32_t k = 0; k < v->n_shards; k++) {
        struct level l = tables[i].level(v, k);
        if (l.max == 0 || l.used < l.full_at || full->n_lcores++ > 0)
            continue;
        full->used = l.used;
        full->max = l.max;
        full->lcore = v->lcore[k].id;
    }
    return full->n_lcores > 0;
}
