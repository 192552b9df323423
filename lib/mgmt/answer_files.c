/* SPDX-License-Identifier: BSD-3-Clause */
/* `files`: counters of the file store and its reader. */

#include "base/relaxed_atomics.h"
#include "mgmt/answers.h"
#include "mgmt/answer_parts.h"
#include "store/file_reader.h"
#include "telem/counters_http.h"

static void add_reader_stats(const struct nj_file_reader_stats *r, struct nj__doc d)
{
    static const struct {
        const char *name;
        double share;
    } parts[] = {{"read_ns_p50", 0.5}, {"read_ns_p99", 0.99}, {"read_ns_max", 1}};
    struct nj_histogram latency = {0};

    nj__doc_uint(d, "reads_under_way", nj_load_relaxed(&r->n_under_way));
    nj__doc_uint(d, "reads_waiting", nj_load_relaxed(&r->n_waiting));
    nj__doc_uint(d, "reads_failed", nj_load_relaxed(&r->n_failed));
    nj__doc_uint(d, "reads_put_off", nj_load_relaxed(&r->n_to_workers));
    nj__doc_uint(d, "direct_bytes", nj_load_relaxed(&r->direct_bytes));
    nj_histogram_merge(&latency, &r->latency);
    for (size_t i = 0; i < NJ_ARRAY_LEN(parts); i++)
        nj__doc_uint(d, parts[i].name, nj_histogram_quantile(&latency, parts[i].share));
}

bool nj__answer_files(const struct nj_mgmt_view *v, const char *params, struct nj__doc d)
{
    if (params)
        return false;
    if (!v->store) /* all routes are handlers */
        return true;
    const struct nj_file_store_stats *st = nj_file_store_stats(v->store);
    const struct nj__answer_row rows[] = {
        {"cached_files", st->cached_files},
        {"cached_bytes", st->cached_bytes},
        {"hits", st->hits},
        {"misses", st->misses},
        {"evictions", st->evictions},
        {"whole_bytes", st->whole_bytes},
        {"chunk_bytes", st->chunk_bytes},
        {"chunk_lent_bytes", st->chunk_lent_bytes},
        {"chunk_hits", st->chunk_hits},
        {"chunk_returns", st->chunk_returns},
        {"reads", st->reads},
        {"read_bytes", st->read_bytes},
        {"waits", st->waits},
        {"waits_for_read", st->waits_for_read},
        {"reads_ahead", st->ahead},
        {"ahead_bytes", st->ahead_bytes},
        {"unused_bytes", st->unused_bytes},
        {"changed", st->changed},
        {"listings", st->listings},
        {"listings_failed", st->listings_failed},
        {"stale_siblings", st->stale_siblings},
        /* Requests answered from a shard's own cache do not reach the store. */
        {"shard_hits", nj_mgmt_sum_counter(v, NJ_C_file_hits)},
        {"jobs", nj_mgmt_sum_counter(v, NJ_C_file_jobs)},
        {"busy", nj_mgmt_sum_counter(v, NJ_C_file_busy)},
    };
    nj__answer_add_numbers(d, rows, NJ_ARRAY_LEN(rows));
    if (v->reader)
        add_reader_stats(nj_file_reader_stats(v->reader), d);
    return true;
}
