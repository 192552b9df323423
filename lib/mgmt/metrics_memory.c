/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of connections, of all shards. */
#include "base/relaxed_atomics.h"
#include "mgmt/metrics_parts.h"

static void add_pools(const struct nj_mgmt_view *v, struct nj__metrics *m)
{
    static const struct nj__metric families[] = {
        {"pool_objects", NJ__METRIC_GAUGE, "objects of connections in use, by their type"},
        {"pool_objects_high", NJ__METRIC_GAUGE,
         "sum of the highest numbers of objects that shards have used since the start"},
        {"pool_objects_limit", NJ__METRIC_GAUGE, "objects that there can be"},
        {"pool_object_size_bytes", NJ__METRIC_GAUGE, "memory of one object"}};
    struct nj__metric_row row[NJ_SHARD_POOLS];

    for (uint32_t k = 0; k < NJ_SHARD_POOLS; k++) {
        uint64_t n_used = 0, n_high = 0, n_max = 0, size = 0;
        for (uint32_t i = 0; i < v->n_shards; i++) {
            const struct nj_pool_gauge *g = &v->shard[i]->pool_gauge[k];
            const struct nj_pool *p = nj_shard_pool_by_index(v->shard[i], k);
            n_used += nj_load_relaxed(&g->n_used);
            n_high += nj_load_relaxed(&g->n_high);
            n_max += p->n_max;
            size = p->obj_bytes;
        }
        row[k] = (struct nj__metric_row){{{"pool", nj_shard_pool_name(k)}},
                                         {n_used, n_high, n_max, size}};
    }
    nj__metrics_add_table(m, families, NJ_ARRAY_LEN(families), row, NJ_SHARD_POOLS);
}

void nj__metrics_memory(const struct nj_mgmt_view *v, struct nj__metrics *m)
{
    static const struct nj__metric families[] = {
        {"flow_table_bytes", NJ__METRIC_GAUGE, "memory of the tables that find connections"},
        {"session_limit_bytes", NJ__METRIC_GAUGE,
         "limit of the bytes that sessions of HTTP/2 and HTTP/1.x hold (h2_bytes)"}};
    struct nj__metric_row all = {0};

    add_pools(v, m);
    for (uint32_t i = 0; i < v->n_shards; i++) {
        all.value[0] += nj_shard_flow_table_bytes(v->shard[i]);
        all.value[1] += v->shard[i]->conns.session_memory.bytes_max;
    }
    nj__metrics_add_table(m, families, NJ_ARRAY_LEN(families), &all, 1);
}
