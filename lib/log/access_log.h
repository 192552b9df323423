/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The access log: records of the shards become lines of a file, on a thread of its own.
 *
 * Each shard has a bounded pool of records, and a pair of single-producer single-consumer rings
 * with the thread (service_thread.h), which hold all of them. So giving a record away never fails
 * and never waits; when the thread can't follow, or the file takes nothing, requests go without a
 * line and are counted: lines written and lost together are the requests that are over, when all is
 * quiet. The thread looks for records twenty times a second, or when a shard has given it
 * NJ_ACCESS_WAKE of them.
 */
#ifndef NJ_LOG_ACCESS_LOG_H
#define NJ_LOG_ACCESS_LOG_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/access_format.h"
#include "telem/access.h"

/* Of a shard: requests that are open, and those whose line is not written yet. 832 bytes of address
 * space each, 52 MiB together, touched as they are used; and 512 KiB for each ring. */
#define NJ_ACCESS_RECORDS 65535u
/* Records that wake the thread: 213 KB, so that they are still in the cache of somebody. */
#define NJ_ACCESS_WAKE    256u
/* At the end, a file that does not answer gets this long. */
#define NJ_ACCESS_STOP_MS 3000u

struct nj_access_log_config {
    const char *path; /* "-": standard output. The caller's */
    enum nj_access_format format;
    uint32_t n_shards;
    uint32_t n_records;        /* of each shard; 0: NJ_ACCESS_RECORDS */
    const cpu_set_t *affinity; /* of the thread; NULL: as its creator */
    bool eal;                  /* see nj_worker_config */
    /* The UNIX time now as shards have it in their records: they count from their start, while the
     * system's clock is corrected. What differs is added to each line. NULL: nothing does. */
    int64_t (*wall_ns)(void *ctx);
    void *wall_ctx;
};

struct nj_access_log;

/* 0; or -1, with what is wrong and what to do in `why`. SIGPIPE has to be ignored. */
int nj_access_log_open(const struct nj_access_log_config *config, struct nj_access_log **out,
                       char *why, size_t why_bytes);

/* For shard `shard`; take and put are for its lcore alone, or for any one thread when that has
 * ended. Records of take() are zero but for their text. */
struct nj_access_port nj_access_log_port(struct nj_access_log *log, uint32_t shard);

/* Open the file anew, since it was renamed. Any thread, also a signal handler; it is done within a
 * moment. Without being asked the log does so within two seconds after the rename. */
void nj_access_log_reopen(struct nj_access_log *log);

/* Lines written, and requests that have none: those that got no record, and those whose line was
 * lost on its way to the file. Any thread. */
struct nj_access_counts {
    uint64_t n_written, n_lost;
};
struct nj_access_counts nj_access_log_counts(const struct nj_access_log *log);

/* Write what is left, and end; all records have been put. Counts of the end go to `counts`. False:
 * the file did not answer within NJ_ACCESS_STOP_MS; then the thread is left behind with all it
 * uses, for the process is about to end. */
bool nj_access_log_close(struct nj_access_log *log, struct nj_access_counts *counts);

#endif
