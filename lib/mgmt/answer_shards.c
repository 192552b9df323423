/* SPDX-License-Identifier: BSD-3-Clause */
/* `stats`, `shards`, `port`, `stages`, `memory`: what shards and ports count. */
#include <stdio.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_mempool.h>
#include <rte_telemetry.h>

#include "base/relaxed_atomics.h"
#include "mgmt/answers.h"
#include "mgmt/answer_parts.h"
#include "telem/counters.h"

/* An answer of telemetry holds 16 KiB. With more shards, /nightjar/shards is a short list. */
#define SHARDS_IN_FULL 12u

static const struct {
    const char *former;
    nj_counter counter;
} counter_aliases[] = {
#define NJ_COUNTER_ALIAS(former, name) {#former, NJ_C_##name},
#include "telem/counter_aliases.def"
#undef NJ_COUNTER_ALIAS
};
_Static_assert(
    NJ_N_COUNTERS + NJ_ARRAY_LEN(counter_aliases) / 2 <= RTE_TEL_MAX_DICT_ENTRIES,
    "an answer of telemetry has all counters, and room for the former names that are in use");

/* The former names that telemetry has room for: those of counters above 0 first. */
static void add_former_names(const struct nj_mgmt_view *v, struct nj__doc d)
{
    uint32_t room = RTE_TEL_MAX_DICT_ENTRIES - NJ_N_COUNTERS;

    for (unsigned zeros = 0; zeros < 2; zeros++) {
        for (size_t i = 0; i < NJ_ARRAY_LEN(counter_aliases) && room > 0; i++) {
            uint64_t sum = nj_mgmt_sum_counter(v, counter_aliases[i].counter);
            if ((sum == 0) != zeros)
                continue;
            nj__doc_uint(d, counter_aliases[i].former, sum);
            room--;
        }
    }
}

bool nj__answer_stats(const struct nj_mgmt_view *v, const char *params, struct nj__doc d)
{
    for (nj_counter i = 0; i < NJ_COUNTERS_MAX; i++)
        if (nj_counter_info[i].name)
            nj__doc_uint(d, nj_counter_info[i].name, nj_mgmt_sum_counter(v, i));
    if (nj__doc_is_telemetry(d))
        add_former_names(v, d);
    return true;
}

/* Overview of a shard. */
static void add_shard_summary(const struct nj_mgmt_view *v, uint32_t i, struct nj__doc d)
{
    static const nj_counter shown[] = {NJ_C_cycles_busy, NJ_C_cycles_idle, NJ_C_rx_packets,
                                       NJ_C_tx_packets,  NJ_C_requests,    NJ_C_connections};
    const struct nj_counters *c = &v->shard[i]->counters;

    nj__doc_uint(d, "lcore", v->lcore[i].id);
    nj__answer_add_counters(v, i, i + 1, shown, NJ_ARRAY_LEN(shown), d);
    nj__doc_uint(d, "rx_drops", nj_counters_sum_of_kind(c, NJ_KIND_RX_DROP));
    nj__doc_uint(d, "tx_drops", nj_counters_sum_of_kind(c, NJ_KIND_TX_DROP));
}

/* Details of a shard: steering, cycles, packets, drops by reason, memory in use. */
static void add_shard_details(const struct nj_mgmt_view *v, uint32_t i, struct nj__doc d)
{
    static const char *const steering[] = {
        [NJ_STEER_NONE] = "none", [NJ_STEER_ON_MISS] = "rss", [NJ_STEER_ALWAYS] = "toeplitz"};
    static const nj_counter shown[] = {
        NJ_C_loops_busy,      NJ_C_loops_idle, NJ_C_rx_steered_in,  NJ_C_rx_steered_out,
        NJ_C_steer_misplaced, NJ_C_time_wait,  NJ_C_h2_connections, NJ_C_h2_bytes,
        NJ_C_file_jobs,       NJ_C_exchanges,  NJ_C_tx_queued,      NJ_C_tls_handshakes_open,
    };
    const struct nj_counters *c = &v->shard[i]->counters;
    const struct nj_mgmt_port *p = nj_mgmt_port_of_shard(v, i);
    uint32_t queue = i - p->first;

    nj__doc_uint(d, "port", p->dev->id);
    nj__doc_text(d, "steering", steering[p->dev->steering]);
    nj__answer_add_counters(v, i, i + 1, shown, NJ_ARRAY_LEN(shown), d);
    nj__doc_uint(d, "rx_mbufs_used", nj_mgmt_mbufs_used(p->dev->rx_pool[queue], 0));
    nj__doc_uint(
        d, "tx_mbufs_used",
        nj_mgmt_mbufs_used(p->dev->tx_pool[queue], nj_counter_read(c, NJ_C_tx_mbufs_ready)));
    struct nj__doc drops = nj__doc_is_telemetry(d) ? d : nj__doc_dict(d, "drops");
    for (nj_counter k = 0; k < NJ_COUNTERS_MAX; k++) {
        bool drop = nj_counter_info[k].kind == NJ_KIND_RX_DROP ||
                    nj_counter_info[k].kind == NJ_KIND_TX_DROP;
        if (drop && nj_counter_read(c, k) > 0)
            nj__answer_add_counters(v, i, i + 1, &k, 1, drops);
    }
}

static void add_port(const struct nj_mgmt_view *v, const struct nj_mgmt_port *p, struct nj__doc d)
{
    struct nj_port_stats stats = nj_mgmt_read_port_stats(v, p);
    char mac[RTE_ETHER_ADDR_FMT_SIZE];
    const struct nj__answer_row rows[] = {
        {"mtu", p->dev->mtu},
        {"rx_queues", p->dev->n_rxq},
        {"tx_queues", p->dev->n_txq},
        {"rx_ring", p->dev->n_rxd},
        {"tx_ring", p->dev->n_txd},
        {"link_mbps", stats.mbps},
        {"rx_missed", stats.rx_missed},
        {"rx_nombuf", stats.rx_nombuf},
        {"rx_errors", stats.rx_errors},
        {"tx_errors", stats.tx_errors},
        {"tx_packets", stats.tx_packets},
        {"tx_given", stats.tx_given},
    };

    rte_ether_format_addr(mac, sizeof mac, &p->dev->mac);
    nj__doc_text(d, "device", p->dev->name);
    nj__doc_text(d, "driver", p->dev->driver);
    nj__doc_text(d, "mac", mac);
    nj__doc_text(d, "spread", p->dev->spread);
    nj__doc_text(d, "offloads", p->dev->offloads);
    nj__doc_text(d, "link", stats.link_up ? "up" : "down");
    nj__doc_int(d, "numa_node", p->dev->node);
    nj__answer_add_numbers(d, rows, NJ_ARRAY_LEN(rows)); /* a device may lack a count */
}

/* The only port; with several ports the one given by its DPDK number, or all. */
bool nj__answer_port(const struct nj_mgmt_view *v, const char *params, struct nj__doc d)
{
    struct nj__doc list = nj__doc_list(d, "ports", "port");
    char *end = NULL;
    unsigned long id = params ? strtoul(params, &end, 10) : 0;

    if (params && (end == params || *end != '\0'))
        return false;
    for (uint32_t k = 0; k < v->n_ports; k++) {
        const struct nj_mgmt_port *p = &v->port[k];
        if (params ? p->dev->id == id : v->n_ports == 1) {
            add_port(v, p, nj__doc_only_item(list, p->dev->id));
            return true;
        }
        if (!params)
            add_port(v, p, nj__doc_item(list, p->dev->id));
    }
    return !params;
}

static void add_shards(const struct nj_mgmt_view *v, struct nj__doc d)
{
    if (nj__doc_is_telemetry(d) && v->n_ports == 1) { /* `port` lists them, too */
        const struct nj_mgmt_port *p = &v->port[0];
        struct nj_port_stats stats = nj_mgmt_read_port_stats(v, p);
        nj__doc_text(d, "device", p->dev->name);
        nj__doc_text(d, "spread", p->dev->spread);
        nj__doc_text(d, "offloads", p->dev->offloads);
        nj__doc_text(d, "link", stats.link_up ? "up" : "down");
        nj__doc_uint(d, "rx_missed", stats.rx_missed);
        nj__doc_uint(d, "rx_nombuf", stats.rx_nombuf);
    }
    struct nj__doc list = nj__doc_list(d, "shards", "shard");
    for (uint32_t i = 0; i < v->n_shards; i++) {
        struct nj__doc one = nj__doc_item(list, i);
        add_shard_summary(v, i, one);
        if (v->n_shards <= SHARDS_IN_FULL || !nj__doc_is_telemetry(d))
            add_shard_details(v, i, one);
    }
}

bool nj__answer_shards(const struct nj_mgmt_view *v, const char *params, struct nj__doc d)
{
    uint32_t from, to;

    if (!nj__answer_parse_shards(v, params, &from, &to))
        return false;
    if (params) {
        struct nj__doc one = nj__doc_only_item(nj__doc_list(d, "shards", "shard"), from);
        add_shard_summary(v, from, one);
        add_shard_details(v, from, one);
    } else {
        add_shards(v, d);
    }
    return true;
}

/* The cycles of each stage, of the measured steps only, beside counters of all steps. */
bool nj__answer_stages(const struct nj_mgmt_view *v, const char *params, struct nj__doc d)
{
    static const nj_counter besides[] = {NJ_C_cycles_busy, NJ_C_cycles_idle, NJ_C_loops_busy,
                                         NJ_C_requests,    NJ_C_rx_packets,  NJ_C_tx_packets};
    uint64_t spent[NJ_N_STAGES] = {0}, n_measured = 0;
    uint32_t from, to;

    if (!nj__answer_parse_shards(v, params, &from, &to))
        return false;
    for (uint32_t i = from; i < to; i++) {
        const struct nj_stages *of = &v->shard[i]->stages;
        for (unsigned k = 0; k < NJ_N_STAGES; k++)
            spent[k] += nj_load_relaxed(&of->spent[k]);
        n_measured += nj_load_relaxed(&of->n_measured);
    }
    for (unsigned k = 0; k < NJ_N_STAGES; k++)
        nj__doc_uint(d, nj_stage_name[k], spent[k]);
    nj__doc_uint(d, "steps_measured", n_measured);
    nj__answer_add_counters(v, from, to, besides, NJ_ARRAY_LEN(besides), d);
    nj__doc_uint(d, "tsc_hz", rte_get_tsc_hz());
    return true;
}

static void add_pool(const struct nj_mgmt_view *v, uint32_t from, uint32_t to, uint32_t pool,
                     struct nj__doc d, struct nj__doc list)
{
    const char *name = nj_shard_pool_name(pool);
    uint64_t n_used = 0, n_high = 0, n_max = 0;
    char key[32];

    for (uint32_t i = from; i < to; i++) {
        const struct nj_pool_gauge *g = &v->shard[i]->pool_gauge[pool];
        n_used += nj_load_relaxed(&g->n_used);
        n_high += nj_load_relaxed(&g->n_high);
        n_max += nj_shard_pool_by_index(v->shard[i], pool)->n_max;
    }
    const struct nj__answer_row row[] = {
        {"bytes", nj_shard_pool_by_index(v->shard[from], pool)->obj_bytes},
        {"used", n_used},
        {"high", n_high},
        {"max", n_max},
    };
    if (!nj__doc_is_telemetry(d)) {
        nj__answer_add_numbers(nj__doc_named_item(list, name), row, NJ_ARRAY_LEN(row));
        return;
    }
    for (size_t k = 0; k < NJ_ARRAY_LEN(row); k++) { /* one dictionary for all pools */
        snprintf(key, sizeof key, "%s_%s", name, row[k].name);
        nj__doc_uint(d, key, row[k].value);
    }
}

bool nj__answer_memory(const struct nj_mgmt_view *v, const char *params, struct nj__doc d)
{
    uint32_t from, to;
    uint64_t flow_bytes = 0;

    if (!nj__answer_parse_shards(v, params, &from, &to))
        return false;
    struct nj__doc list = nj__doc_list(d, "pools", "");
    for (uint32_t i = 0; i < NJ_SHARD_POOLS; i++)
        add_pool(v, from, to, i, d, list);
    for (uint32_t i = from; i < to; i++)
        flow_bytes += nj_shard_flow_table_bytes(v->shard[i]);
    nj__doc_uint(d, "flow_table_bytes", flow_bytes);
    return true;
}
