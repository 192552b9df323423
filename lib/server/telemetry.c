/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/telemetry.h"

#include <pthread.h>
#include <stdio.h>

#include <rte_mempool.h>
#include <rte_telemetry.h>

#include "server/server_internal.h"

/* The callbacks of rte_telemetry have no context argument, and run on threads of its own: the lock
 * keeps the server from going away under one. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct nj_server *attached;

static int stats(const char *cmd, const char *params, struct rte_tel_data *d)
{
    (void)cmd;
    (void)params;
    rte_tel_data_start_dict(d);
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; attached && i < NJ_N_COUNTERS; i++)
        rte_tel_data_add_dict_u64(d, nj_counter_info[i].name,
                                  nj__server_count(attached, (enum nj_counter)i));
    pthread_mutex_unlock(&lock);
    return 0;
}

static unsigned in_use(const struct rte_mempool *mp)
{
    return mp ? rte_mempool_in_use_count(mp) : 0;
}

static struct rte_tel_data *shard_dict(const struct nj_server *s, uint32_t i)
{
    static const enum nj_counter shown[] = {
        NJ_C_cycles_busy,    NJ_C_cycles_idle,   NJ_C_loops_busy,     NJ_C_loops_idle,
        NJ_C_rx_packets,     NJ_C_rx_steered_in, NJ_C_rx_steered_out, NJ_C_steer_misplaced,
        NJ_C_tx_packets,     NJ_C_requests,      NJ_C_connections,    NJ_C_time_wait,
        NJ_C_h2_connections, NJ_C_h2_bytes,      NJ_C_file_jobs,      NJ_C_tx_queued,
    };
    static const char *const steering[] = {
        [NJ_STEER_NONE] = "none", [NJ_STEER_MISS] = "rss", [NJ_STEER_ALWAYS] = "toeplitz"};
    struct rte_tel_data *d = rte_tel_data_alloc();
    if (!d)
        return NULL;
    const struct nj_counters *c = &s->shard[i]->counters;

    rte_tel_data_start_dict(d);
    rte_tel_data_add_dict_u64(d, "lcore", s->lcore[i].id);
    rte_tel_data_add_dict_string(d, "steering", steering[s->port.steering]);
    for (size_t k = 0; k < NJ_ARRAY_LEN(shown); k++)
        rte_tel_data_add_dict_u64(d, nj_counter_info[shown[k]].name, nj_counter_read(c, shown[k]));
    rte_tel_data_add_dict_u64(d, "rx_drops", nj_counters_sum(c, NJ_KIND_RX_DROP));
    rte_tel_data_add_dict_u64(d, "tx_drops", nj_counters_sum(c, NJ_KIND_TX_DROP));
    rte_tel_data_add_dict_u64(d, "rx_mbufs_used", in_use(s->port.rx_pool[i]));
    rte_tel_data_add_dict_u64(d, "tx_mbufs_used", in_use(s->port.tx_pool[i]));
    return d;
}

static void add_shards(const struct nj_server *s, struct rte_tel_data *d)
{
    char name[16];

    rte_tel_data_add_dict_string(d, "device", s->port.name);
    rte_tel_data_add_dict_string(d, "spread", s->port.spread);
    for (uint32_t i = 0; i < s->n_shards; i++) {
        struct rte_tel_data *one = shard_dict(s, i);
        snprintf(name, sizeof name, "shard%u", i);
        if (one)
            rte_tel_data_add_dict_container(d, name, one, 0);
    }
}

static int shards(const char *cmd, const char *params, struct rte_tel_data *d)
{
    (void)cmd;
    (void)params;
    rte_tel_data_start_dict(d);
    pthread_mutex_lock(&lock);
    if (attached)
        add_shards(attached, d);
    pthread_mutex_unlock(&lock);
    return 0;
}

void nj_telemetry_attach(const struct nj_server *server)
{
    pthread_mutex_lock(&lock);
    bool first = server && !attached;
    attached = server;
    pthread_mutex_unlock(&lock);
    if (!first)
        return;
    rte_telemetry_register_cmd("/nightjar/stats", stats,
                               "Every counter of nightjar, summed over the shards. No parameters.");
    rte_telemetry_register_cmd("/nightjar/shards", shards,
                               "What each shard does and holds. No parameters.");
}
