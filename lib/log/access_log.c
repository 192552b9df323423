/* SPDX-License-Identifier: BSD-3-Clause */
/* The access log: shards pass records over single-producer single-consumer rings to a thread, which
 * formats and writes them. Records return to the pool of their shard. */
#include "log/access_log.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "base/relaxed_atomics.h"
#include "base/compiler.h"
#include "base/pool.h"
#include "base/set_error.h"
#include "log/access_file.h"
#include "log/log.h"
#include "threads/os_clock.h"
#include "threads/service_thread.h"

#define FETCH_BATCH 64u /* written records that a shard takes back at a time */

/* State of one shard's lcore. */
struct port {
    struct nj_service_rings *out;
    struct nj_pool records;
    uint32_t n_unflushed;
    uint64_t n_recycled;        /* records that came back */
    _Atomic uint64_t n_refused; /* requests without a free record; written by the lcore */
} NJ_CACHE_ALIGNED;

/* What nj_access_log_change() wants. */
struct change {
    enum nj_access_format format;
    char path[];
};

struct nj_access_log {
    struct nj_access_log_config config;
    struct nj_service_thread *worker;
    _Atomic bool reopen;
    _Atomic(struct change *) wanted; /* NULL: none */
    /* owned by the thread */
    struct nj_access_file file NJ_CACHE_ALIGNED;
    struct nj_access_time_cache clock;
    struct change *last; /* has the path of `file`; NULL: that of the start */
    int64_t skew_ns;     /* from the shards' UNIX time to the system's */
    struct port ports[];
};

/* --- the thread ---------------------------------------------------------------------------- */

static void set_skew(struct nj_access_log *log)
{
    if (log->config.wall_ns)
        log->skew_ns = (int64_t)nj_os_clock_gettime_ns(CLOCK_REALTIME) -
                       log->config.wall_ns(log->config.wall_ctx);
}

static void write_record(void *ctx, void *record)
{
    struct nj_access_log *log = ctx;
    struct nj_access_record *a = record;
    char *room = nj_access_file_reserve(&log->file, NJ_ACCESS_LINE_BYTES);

    if (!room)
        return;
    a->wall_ns += log->skew_ns;
    size_t n_bytes = nj_access_format_line(log->config.format, a, &log->clock, room);
    nj_access_file_commit(&log->file, n_bytes, nj_os_clock_gettime_ns(CLOCK_MONOTONIC));
}

static void make_change(struct nj_access_log *log, struct change *c, nj_ns now)
{
    log->config.format = c->format;
    nj_access_file_move(&log->file, c->path, now);
    free(log->last);
    log->last = c;
}

static void poll_file(void *ctx)
{
    struct nj_access_log *log = ctx;
    nj_ns now = nj_os_clock_gettime_ns(CLOCK_MONOTONIC);

    struct change *c = atomic_exchange(&log->wanted, NULL);

    set_skew(log);
    if (c)
        make_change(log, c, now);
    if (atomic_exchange_explicit(&log->reopen, false, memory_order_relaxed))
        nj_access_file_reopen(&log->file, now);
    nj_access_file_write_due(&log->file, now);
}

/* Not the thread that closes the log: the file, or a terminal, may block. */
static void close_file(void *ctx)
{
    struct nj_access_log *log = ctx;
    nj_access_file_close(&log->file);
}

/* --- the shards ---------------------------------------------------------------------------- */

static void recycle_records(struct port *p)
{
    void *home[FETCH_BATCH];
    uint32_t n = nj_service_poll(p->out, home, FETCH_BATCH);

    p->n_recycled += n;
    for (uint32_t i = 0; i < n; i++)
        nj_pool_put(&p->records, home[i]);
}

static struct nj_access_record *take(void *ctx)
{
    struct port *p = ctx;

    /* In batches: a poll of the ring fetches a cache line from the thread's core. */
    if (nj_service_n_out(p->out) >= FETCH_BATCH || p->records.n_used == p->records.n_max)
        recycle_records(p);
    struct nj_access_record *a = nj_pool_take_raw(&p->records);
    if (!a) {
        nj_add_single_writer(&p->n_refused, 1);
        return NULL;
    }
    memset(a, 0, offsetof(struct nj_access_record, text));
    return a;
}

static void put(void *ctx, struct nj_access_record *a)
{
    struct port *p = ctx;

    /* The ring has room for all records of the pool. */
    NJ_CHECK(nj_service_submit(p->out, a));
    if (++p->n_unflushed >= NJ_ACCESS_WAKE_RECORDS) {
        nj_service_wake_if_submitted(p->out);
        p->n_unflushed = 0;
    }
}

static void drop(void *ctx, struct nj_access_record *a)
{
    struct port *p = ctx;

    nj_pool_put(&p->records, a);
}

struct nj_access_ops nj_access_log_port(struct nj_access_log *log, uint32_t shard)
{
    NJ_CHECK(shard < log->config.n_shards);
    return (struct nj_access_ops){&log->ports[shard], take, put, drop};
}

/* --- open and close ------------------------------------------------------------------------ */

void nj_access_log_reopen(struct nj_access_log *log)
{
    nj_store_relaxed(&log->reopen, true);
}

int nj_access_log_try(const char *path, char *why, size_t why_bytes)
{
    struct nj_access_file file;
    struct stat st;
    char text[512];

    if (stat(path, &st) == 0 && S_ISFIFO(st.st_mode)) /* its reader would see the end of it */
        return nj_access_file_check(path, text, sizeof text) == 0
                   ? 0
                   : nj_set_error(why, why_bytes, "%s", text);
    if (nj_access_file_open(&file, path, why, why_bytes) != 0)
        return -1;
    nj_access_file_close(&file);
    return 0;
}

bool nj_access_log_change(struct nj_access_log *log, const char *path, enum nj_access_format format)
{
    struct change *c = malloc(sizeof *c + strlen(path) + 1);

    if (!c)
        return false;
    c->format = format;
    memcpy(c->path, path, strlen(path) + 1);
    free(atomic_exchange(&log->wanted, c));
    return true;
}

struct nj_access_counts nj_access_log_counts(const struct nj_access_log *log)
{
    struct nj_access_counts c = {
        .n_written = nj_load_relaxed(&log->file.n_written),
        .n_lost = nj_load_relaxed(&log->file.n_lost),
    };

    for (uint32_t i = 0; i < log->config.n_shards; i++)
        c.n_lost += nj_load_relaxed(&log->ports[i].n_refused);
    return c;
}

/* The same when the thread does not end: what it has not written is lost, in its buffer and in the
 * rings. The lcores have ended. */
static struct nj_access_counts counts_without_end(const struct nj_access_log *log)
{
    struct nj_access_counts c = {.n_written = nj_load_relaxed(&log->file.n_written)};
    uint64_t n_all = 0;

    for (uint32_t i = 0; i < log->config.n_shards; i++) {
        const struct port *p = &log->ports[i];
        n_all += p->n_recycled + nj_service_n_out(p->out) + nj_load_relaxed(&p->n_refused);
    }
    c.n_lost = n_all - c.n_written;
    return c;
}

static void free_memory(struct nj_access_log *log)
{
    for (uint32_t i = 0; i < log->config.n_shards; i++)
        if (log->ports[i].records.mem)
            nj_pool_fini(&log->ports[i].records);
    free(atomic_load(&log->wanted));
    free(log->last);
    free(log);
}

static int start(struct nj_access_log *log, char *why, size_t why_bytes)
{
    const struct nj_access_log_config *c = &log->config;
    const struct nj_service_config worker = {
        .name = "nj-access",
        .n_shards = c->n_shards,
        .jobs_max = c->n_records,
        .affinity = c->affinity,
        .eal = c->eal,
        .tidy_ms = (uint32_t)(NJ_ACCESS_BATCH_NS / NJ_MS),
        .run = write_record,
        .tidy = poll_file,
        .end = close_file,
        .ctx = log,
    };
    bool ok = true;

    for (uint32_t i = 0; i < c->n_shards && ok; i++)
        ok = nj_pool_init(&log->ports[i].records, sizeof(struct nj_access_record), c->n_records);
    int rc = ok ? nj_service_start(&worker, &log->worker) : -ENOMEM;
    for (uint32_t i = 0; rc == 0 && i < c->n_shards; i++)
        log->ports[i].out = nj_service_shard_rings(log->worker, i);
    if (rc != 0)
        snprintf(why, why_bytes, "the writer of the access log does not start: %s", strerror(-rc));
    return rc;
}

int nj_access_log_open(const struct nj_access_log_config *config, struct nj_access_log **out,
                       char *why, size_t why_bytes)
{
    size_t n_bytes = sizeof(struct nj_access_log) + config->n_shards * sizeof(struct port);
    struct nj_access_log *log = aligned_alloc(NJ_CACHE_LINE, n_bytes);

    if (!log) {
        snprintf(why, why_bytes, "not enough memory for the access log");
        return -1;
    }
    memset(log, 0, n_bytes);
    log->config = *config;
    if (log->config.n_records == 0)
        log->config.n_records = NJ_ACCESS_RECORDS;
    set_skew(log);
    if (nj_access_file_open(&log->file, config->path, why, why_bytes) != 0) {
        free_memory(log);
        return -1;
    }
    if (start(log, why, why_bytes) != 0) {
        nj_access_file_close(&log->file);
        free_memory(log);
        return -1;
    }
    *out = log;
    return 0;
}

bool nj_access_log_close(struct nj_access_log *log, uint32_t wait_ms,
                         struct nj_access_counts *counts)
{
    nj_service_begin_stop(log->worker);
    bool ended = nj_service_join(log->worker, wait_ms);

    if (!ended) {
        nj_log(NJ_LEVEL_ERROR, "the access log %s does not answer; leaving without its end",
               strcmp(log->config.path, "-") == 0 ? "on standard output" : log->config.path);
        *counts = counts_without_end(log);
        return false;
    }
    *counts = nj_access_log_counts(log);
    for (uint32_t i = 0; i < log->config.n_shards; i++)
        while (nj_service_n_out(log->ports[i].out) > 0)
            recycle_records(&log->ports[i]);
    nj_service_free(log->worker);
    free_memory(log);
    return true;
}
