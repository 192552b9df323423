/* SPDX-License-Identifier: BSD-3-Clause */
/* The file cache and its reader. docs/storage.md says what the numbers mean. */
#include <stddef.h>

#include "base/relaxed_atomics.h"
#include "mgmt/metrics_parts.h"

static void add_store(const struct nj_file_store *store, struct nj__metrics *m)
{
#define AT(field) offsetof(struct nj_file_store_stats, field)
    static const struct {
        size_t at;
        struct nj__metric family;
    } shown[] = {
        {AT(cached_files), {"store_cached_files", NJ__METRIC_GAUGE, "files kept in the cache"}},
        {AT(cached_bytes),
         {"store_cached_bytes", NJ__METRIC_GAUGE, "bytes of the cache that whole files take"}},
        {AT(whole_bytes),
         {"store_whole_bytes", NJ__METRIC_GAUGE,
          "memory of whole files, cached or still being sent"}},
        {AT(chunk_bytes),
         {"store_chunk_bytes", NJ__METRIC_GAUGE, "memory of chunks of large files"}},
        {AT(chunk_lent_bytes),
         {"store_chunk_lent_bytes", NJ__METRIC_GAUGE, "memory of chunks that are being sent"}},
        {AT(ahead_bytes),
         {"store_ahead_bytes", NJ__METRIC_GAUGE,
          "memory of chunks that were read ahead and not yet requested"}},
        {AT(hits), {"store_hits", NJ__METRIC_COUNTER, "opens that found the file in the cache"}},
        {AT(misses), {"store_misses", NJ__METRIC_COUNTER, "opens that accessed the file system"}},
        {AT(evictions),
         {"store_evictions", NJ__METRIC_COUNTER, "entries of the cache evicted for others"}},
        {AT(chunk_hits),
         {"store_chunk_hits", NJ__METRIC_COUNTER, "requested chunks that were in memory"}},
        {AT(chunk_returns),
         {"store_chunk_returns", NJ__METRIC_COUNTER, "chunks given back by their last reader"}},
        {AT(reads),
         {"store_reads", NJ__METRIC_COUNTER, "chunks that were read from the file system"}},
        {AT(ahead), {"store_reads_ahead", NJ__METRIC_COUNTER, "chunks that were read ahead"}},
        {AT(read_bytes),
         {"store_read_bytes", NJ__METRIC_COUNTER, "bytes that were read from the file system"}},
        {AT(unused_bytes),
         {"store_unused_bytes", NJ__METRIC_COUNTER,
          "bytes that were read from the file system and evicted before any request"}},
        {AT(waits), {"store_waits", NJ__METRIC_COUNTER, "reads delayed by lack of memory"}},
        {AT(waits_for_read),
         {"store_waits_for_read", NJ__METRIC_COUNTER,
          "reads of chunks that another read was already fetching"}},
        {AT(changed),
         {"store_changed", NJ__METRIC_COUNTER, "reads that found another file than was opened"}},
        {AT(listings), {"store_listings", NJ__METRIC_COUNTER, "folders listed"}},
        {AT(listings_failed),
         {"store_listings_failed", NJ__METRIC_COUNTER,
          "folders not listed: too long, or an I/O error"}},
        {AT(stale_siblings),
         {"store_stale_siblings", NJ__METRIC_COUNTER,
          "precompressed siblings ignored because they are older than their files"}},
    };
#undef AT
    const char *stats = store ? (const char *)nj_file_store_stats(store) : NULL;

    for (size_t i = 0; i < NJ_ARRAY_LEN(shown); i++) {
        nj__metrics_begin(m, &shown[i].family);
        if (stats)
            nj__metrics_add(m, nj_load_relaxed((const _Atomic uint64_t *)(stats + shown[i].at)),
                            NULL);
    }
}

static void add_reader(const struct nj_file_reader *reader, struct nj__metrics *m)
{
    static const struct nj__metric families[] = {
        {"store_reads_under_way", NJ__METRIC_GAUGE, "reads in progress by io_uring"},
        {"store_reads_waiting", NJ__METRIC_GAUGE, "reads that wait for their turn"},
        {"store_reads_failed", NJ__METRIC_COUNTER, "reads by io_uring that failed"},
        {"store_reads_put_off", NJ__METRIC_COUNTER,
         "reads passed to workers for lack of kernel memory"},
        {"store_direct_bytes", NJ__METRIC_COUNTER,
         "bytes that were read from the file system past the page cache"}};
    static const struct nj__metric latency = {
        "store_read_seconds", NJ__METRIC_HISTOGRAM,
        "duration of the read of a chunk by io_uring, without the wait for its turn"};
    const struct nj_file_reader_stats *r = reader ? nj_file_reader_stats(reader) : NULL;
    struct nj__metric_row row = {0};
    struct nj_histogram sum = {0};

    if (r) {
        row = (struct nj__metric_row){
            .value = {nj_load_relaxed(&r->n_under_way), nj_load_relaxed(&r->n_waiting),
                      nj_load_relaxed(&r->n_failed), nj_load_relaxed(&r->n_to_workers),
                      nj_load_relaxed(&r->direct_bytes)}};
        nj_histogram_merge(&sum, &r->latency);
    }
    nj__metrics_add_table(m, families, NJ_ARRAY_LEN(families), &row, r != NULL);
    nj__metrics_add_histogram(m, &latency, r ? &sum : NULL);
}

void nj__metrics_files(const struct nj_mgmt_view *v, struct nj__metrics *m)
{
    add_store(v->store, m);
    add_reader(v->reader, m);
}
