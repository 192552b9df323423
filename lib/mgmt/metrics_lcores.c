/* SPDX-License-Identifier: BSD-3-Clause */
/* What each lcore does and holds. */
#include <rte_mempool.h>

#include "mgmt/metrics_parts.h"
#include "telem/counters.h"

#define NUMBER_BYTES 12

/* An EAL's lcore id as text. */
struct lcore_text {
    char id[NUMBER_BYTES];
};

static void add_infos(const struct nj_mgmt_view *v, struct nj__metrics *m,
                      const struct lcore_text *text)
{
    static const struct nj__metric family = {"lcore", NJ__METRIC_INFO,
                                             "lcores, with their CPU, NUMA node and port"};

    nj__metrics_begin(m, &family);
    for (uint32_t i = 0; i < v->n_shards; i++) {
        char cpu[NUMBER_BYTES], node[NUMBER_BYTES], port[NUMBER_BYTES];
        const struct nj__metric_label labels[] = {
            {"lcore", text[i].id}, {"cpu", cpu}, {"node", node}, {"port", port}, {0}};
        snprintf(cpu, sizeof cpu, "%u", v->lcore[i].cpu);
        snprintf(node, sizeof node, "%d", v->lcore[i].node);
        snprintf(port, sizeof port, "%u", nj_mgmt_port_of_shard(v, i)->dev->id);
        nj__metrics_add(m, 1, labels);
    }
}

/* A counter of cycles, by whether they found work, in the same order. */
static void add_times(const struct nj_mgmt_view *v, struct nj__metrics *m,
                      const struct lcore_text *text)
{
    static const struct nj__metric families[] = {
        {"lcore_seconds", NJ__METRIC_COUNTER, "time of an lcore in steps with and without work"},
        {"lcore_steps", NJ__METRIC_COUNTER, "steps of an lcore with and without work"}};
    static const struct {
        const char *name;
        nj_counter cycles, steps;
    } states[] = {{"busy", NJ_C_cycles_busy, NJ_C_loops_busy},
                  {"idle", NJ_C_cycles_idle, NJ_C_loops_idle}};
    struct nj__metric_row row[2 * NJ_SHARDS_MAX];
    size_t n = 0;

    for (uint32_t i = 0; i < v->n_shards; i++) {
        const struct nj_counters *c = &v->shard[i]->counters;
        for (size_t k = 0; k < NJ_ARRAY_LEN(states); k++)
            row[n++] = (struct nj__metric_row){
                {{"lcore", text[i].id}, {"state", states[k].name}},
                {nj_tsc_clock_duration(v->clock, nj_counter_read(c, states[k].cycles)),
                 nj_counter_read(c, states[k].steps)}};
    }
    nj__metrics_add_table(m, families, NJ_ARRAY_LEN(families), row, n);
}

/* Used mbufs of a pool, its size, and the ratio of the two. `n_ready`: taken from the pool in
 * advance, and not in use. */
static void put_pool(const struct rte_mempool *mp, uint64_t n_ready, uint64_t value[3])
{
    value[0] = value[1] = value[2] = NJ__METRIC_NONE;
    if (!mp)
        return;
    value[0] = nj_mgmt_mbufs_used(mp, n_ready);
    value[1] = mp->size;
    value[2] = value[0] * 1000000000 / mp->size;
}

static void add_amounts(const struct nj_mgmt_view *v, struct nj__metrics *m,
                        const struct lcore_text *text)
{
    static const struct nj__metric families[] = {
        {"lcore_rx_mbufs", NJ__METRIC_GAUGE, "receive mbufs of an lcore that are in use"},
        {"lcore_rx_mbufs_limit", NJ__METRIC_GAUGE, "receive mbufs of an lcore"},
        {"lcore_rx_mbufs_ratio", NJ__METRIC_GAUGE,
         "receive mbufs of an lcore that are in use, of all that it has"},
        {"lcore_tx_mbufs", NJ__METRIC_GAUGE, "send mbufs of an lcore that are in use"},
        {"lcore_tx_mbufs_limit", NJ__METRIC_GAUGE, "send mbufs of an lcore"},
        {"lcore_tx_mbufs_ratio", NJ__METRIC_GAUGE,
         "send mbufs of an lcore that are in use, of all that it has"},
        {"lcore_connections", NJ__METRIC_GAUGE,
         "TCP connections of an lcore without those in TIME-WAIT"},
        {"lcore_tx_queued", NJ__METRIC_GAUGE,
         "packets of an lcore built and not yet accepted by the device"},
        {"lcore_requests", NJ__METRIC_COUNTER, "requests of an lcore with a complete head"},
        {"lcore_rx_packets", NJ__METRIC_COUNTER, "packets that an lcore received from the device"},
        {"lcore_tx_packets", NJ__METRIC_COUNTER, "packets of an lcore accepted by the device"},
        {"lcore_rx_bytes", NJ__METRIC_COUNTER, "bytes that an lcore received from the device"},
        {"lcore_tx_bytes", NJ__METRIC_COUNTER, "bytes of an lcore accepted by the device"},
        {"lcore_rx_drops", NJ__METRIC_COUNTER, "packets received and dropped by an lcore"},
        {"lcore_tx_drops", NJ__METRIC_COUNTER, "packets built and not sent by an lcore"},
    };
    static const nj_counter shown[] = {NJ_C_connections, NJ_C_tx_queued,  NJ_C_requests,
                                       NJ_C_rx_packets,  NJ_C_tx_packets, NJ_C_rx_bytes,
                                       NJ_C_tx_bytes};
    struct nj__metric_row row[NJ_SHARDS_MAX];

    for (uint32_t i = 0; i < v->n_shards; i++) {
        const struct nj_counters *c = &v->shard[i]->counters;
        const struct nj_mgmt_port *p = nj_mgmt_port_of_shard(v, i);
        uint64_t *value = row[i].value;
        row[i] = (struct nj__metric_row){.label = {{"lcore", text[i].id}}};
        put_pool(p->dev->rx_pool[i - p->first], 0, value);
        put_pool(p->dev->tx_pool[i - p->first], nj_counter_read(c, NJ_C_tx_mbufs_ready), value + 3);
        value += 6;
        for (size_t k = 0; k < NJ_ARRAY_LEN(shown); k++)
            *value++ = nj_counter_read(c, shown[k]);
        *value++ = nj_counters_sum_of_kind(c, NJ_KIND_RX_DROP);
        *value++ = nj_counters_sum_of_kind(c, NJ_KIND_TX_DROP);
    }
    nj__metrics_add_table(m, families, NJ_ARRAY_LEN(families), row, v->n_shards);
}

void nj__metrics_lcores(const struct nj_mgmt_view *v, struct nj__metrics *m)
{
    struct lcore_text text[NJ_SHARDS_MAX];

    for (uint32_t i = 0; i < v->n_shards; i++)
        snprintf(text[i].id, sizeof text[i].id, "%u", v->lcore[i].id);
    add_infos(v, m, text);
    add_times(v, m, text);
    add_amounts(v, m, text);
}
