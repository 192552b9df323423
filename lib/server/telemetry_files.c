/* SPDX-License-Identifier: BSD-3-Clause */
/* `/nightjar/files`: what is kept of files, and how often that helped. */
#include <rte_telemetry.h>

#include "server/file_reader.h"
#include "server/server_internal.h"
#include "server/telemetry.h"
#include "wire/dpdk_compat.h"

static void tell_reader(const struct nj_file_reader_stats *r, struct rte_tel_data *d)
{
    static const struct {
        const char *name;
        double share;
    } parts[] = {{"read_ns_p50", 0.5}, {"read_ns_p99", 0.99}, {"read_ns_max", 1}};
    struct nj_histogram took = {0};

    rte_tel_data_add_dict_uint(d, "reads_under_way",
                               atomic_load_explicit(&r->n_under_way, memory_order_relaxed));
    rte_tel_data_add_dict_uint(d, "reads_waiting",
                               atomic_load_explicit(&r->n_waiting, memory_order_relaxed));
    rte_tel_data_add_dict_uint(d, "reads_failed",
                               atomic_load_explicit(&r->n_failed, memory_order_relaxed));
    rte_tel_data_add_dict_uint(d, "reads_put_off",
                               atomic_load_explicit(&r->n_put_off, memory_order_relaxed));
    rte_tel_data_add_dict_uint(d, "direct_bytes",
                               atomic_load_explicit(&r->direct_bytes, memory_order_relaxed));
    nj_histogram_sum(&took, &r->took);
    for (size_t i = 0; i < NJ_ARRAY_LEN(parts); i++)
        rte_tel_data_add_dict_uint(d, parts[i].name, nj_histogram_at(&took, parts[i].share));
}

bool nj__telemetry_files(const struct nj_server *s, const char *params, struct rte_tel_data *d)
{
    if (params)
        return false;
    if (!s->store) /* all is done by handlers */
        return true;
    const struct nj_file_store_stats *st = nj_file_store_stats(s->store);
    const struct {
        const char *name;
        const _Atomic uint64_t *value;
    } shown[] = {
        {"cached_files", &st->cached_files},
        {"cached_bytes", &st->cached_bytes},
        {"hits", &st->hits},
        {"misses", &st->misses},
        {"evictions", &st->evictions},
        {"whole_bytes", &st->whole_bytes},
        {"chunk_bytes", &st->chunk_bytes},
        {"chunk_lent_bytes", &st->chunk_lent_bytes},
        {"chunk_hits", &st->chunk_hits},
        {"chunk_returns", &st->chunk_returns},
        {"reads", &st->reads},
        {"read_bytes", &st->read_bytes},
        {"waits", &st->waits},
        {"waits_for_read", &st->waits_for_read},
        {"reads_ahead", &st->ahead},
        {"ahead_bytes", &st->ahead_bytes},
        {"unused_bytes", &st->unused_bytes},
        {"changed", &st->changed},
        {"listings", &st->listings},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(shown); i++)
        rte_tel_data_add_dict_uint(d, shown[i].name,
                                   atomic_load_explicit(shown[i].value, memory_order_relaxed));
    /* Those that shards had at hand did not come to the store. */
    rte_tel_data_add_dict_uint(d, "shard_hits", nj__server_count(s, NJ_C_file_hits));
    rte_tel_data_add_dict_uint(d, "jobs", nj__server_count(s, NJ_C_file_jobs));
    rte_tel_data_add_dict_uint(d, "busy", nj__server_count(s, NJ_C_file_busy));
    if (s->reader)
        tell_reader(nj_file_reader_stats(s->reader), d);
    return true;
}
