/* SPDX-License-Identifier: BSD-3-Clause */
/* Durations: the histograms of the shards that are in nanoseconds, and the cycles per stage.
 *
 * Histograms in cycles are not written: their buckets would differ from machine to machine. */
#include <stddef.h>

#include "base/relaxed_atomics.h"
#include "mgmt/metrics_parts.h"

static void add_stages(const struct nj_mgmt_view *v, struct nj__metrics *m)
{
    static const struct nj__metric families[] = {
        {"stage_seconds", NJ__METRIC_COUNTER,
         "time of lcores by stage, in the steps that were measured"}};
    struct nj__metric_row row[NJ_N_STAGES];

    for (unsigned k = 0; k < NJ_N_STAGES; k++) {
        uint64_t cycles = 0;
        for (uint32_t i = 0; i < v->n_shards; i++)
            cycles += nj_load_relaxed(&v->shard[i]->stages.spent[k]);
        row[k] = (struct nj__metric_row){{{"stage", nj_stage_name[k]}},
                                         {nj_tsc_clock_duration(v->clock, cycles)}};
    }
    nj__metrics_add_table(m, families, NJ_ARRAY_LEN(families), row, NJ_N_STAGES);
}

void nj__metrics_latency(const struct nj_mgmt_view *v, struct nj__metrics *m)
{
    static const struct {
        size_t at;
        struct nj__metric family;
    } shown[] = {
        {offsetof(struct nj_shard, conns.txns.ttfb),
         {"first_byte_seconds", NJ__METRIC_HISTOGRAM,
          "time from a request to the first byte of its response"}},
        {offsetof(struct nj_shard, conns.txns.total),
         {"request_seconds", NJ__METRIC_HISTOGRAM,
          "time from a request to the last byte of its response"}},
        {offsetof(struct nj_shard, conns.txns.throttled),
         {"throttled_seconds", NJ__METRIC_HISTOGRAM,
          "time that responses waited for credit, of those that waited"}},
        {offsetof(struct nj_shard, conns.tls_handshake_ns),
         {"tls_handshake_seconds", NJ__METRIC_HISTOGRAM,
          "time from the first bytes of a client to the end of its TLS handshake, of those that "
          "succeed"}},
        {offsetof(struct nj_shard, conns.tls_task_ns),
         {"tls_task_seconds", NJ__METRIC_HISTOGRAM,
          "CPU time of a worker per flight of a client in a TLS handshake"}},
    };

    for (size_t k = 0; k < NJ_ARRAY_LEN(shown); k++) {
        struct nj_histogram sum = {0};
        for (uint32_t i = 0; i < v->n_shards; i++) {
            const char *shard = (const char *)v->shard[i];
            nj_histogram_merge(&sum, (const struct nj_histogram *)(shard + shown[k].at));
        }
        nj__metrics_add_histogram(m, &shown[k].family, &sum);
    }
    add_stages(v, m);
}
