/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The access log: a thread writes the records of all shards to a file, one line each.
 *
 * Each shard has a bounded pool of records and a pair of single-producer single-consumer rings to
 * the thread (service_thread.h), with room for all records. So passing a record never fails or
 * blocks. If the thread falls behind or the file fails, requests get no line and are counted as
 * lost. When the server is idle, lines written plus lost equal the completed requests. The thread
 * polls twenty times a second, and is woken after NJ_ACCESS_WAKE_RECORDS records of a shard.
 */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/access_format.h"
#include "telem/access_log_record.h"

/* Records of a shard: open requests and lines not written yet. 832 bytes each, 52 MiB of address
 * space in total, touched on use; plus 512 KiB for each ring. */
#define NJ_ACCESS_RECORDS      65535u
/* Records that wake the thread: 213 KB, small enough to be still in a CPU cache. */
#define NJ_ACCESS_WAKE_RECORDS 256u
/* Maximum wait at the close for a file system, or a terminal, that does not respond. The rest of
 * NJ_OUTPUT_WAIT_MS is left for the log. */
#define NJ_ACCESS_STOP_MS      1500u

struct nj_access_log_config {
    const char *path; /* "-": standard output. Owned by the caller */
    enum nj_access_format format;
    uint32_t n_shards;
    uint32_t n_records;        /* of each shard; 0: NJ_ACCESS_RECORDS */
    const cpu_set_t *affinity; /* of the thread; NULL: the creator's */
    bool eal;                  /* see nj_service_config */
    /* The current UNIX time by the shards' clock, which ignores later corrections of the system's
     * clock. The difference is added to each line. NULL: no correction. */
    int64_t (*wall_ns)(void *ctx);
    void *wall_ctx;
};

struct nj_access_log;

/* Returns 0, or -1 and a message in `why`. Precondition: SIGPIPE is ignored. */
int nj_access_log_open(const struct nj_access_log_config *config, struct nj_access_log **out,
                       char *why, size_t why_bytes);

/* The port of shard `shard`. Only its lcore may call take and put, or one thread after the lcore
 * has ended. take() returns records that are zero except for their text. */
struct nj_access_ops nj_access_log_port(struct nj_access_log *log, uint32_t shard);

/* Reopen the file after a rename, asynchronously. Any thread; async-signal-safe. Without this call
 * the log reopens the file within two seconds of the rename. */
void nj_access_log_reopen(struct nj_access_log *log);

/* Can lines be written to this file? Makes it, if it does not exist. Returns 0, or -1 and a message
 * in `why`. */
int nj_access_log_try(const char *path, char *why, size_t why_bytes);
/* Write further lines to that file, in that format; asynchronously. If the file cannot be opened,
 * lines go to the former one. Any thread. False: there is no memory. */
bool nj_access_log_change(struct nj_access_log *log, const char *path,
                          enum nj_access_format format);

/* Lines written, and requests without a line: no free record, or the line was lost. Any thread. */
struct nj_access_counts {
    uint64_t n_written, n_lost;
};
struct nj_access_counts nj_access_log_counts(const struct nj_access_log *log);

/* Write the rest and free all. Precondition: all records were put. Stores the final counts. Returns
 * false if the file did not respond within `wait_ms`: the thread and its memory are leaked, since
 * the process is about to exit. Then the counts are as if the thread wrote no more lines. */
bool nj_access_log_close(struct nj_access_log *log, uint32_t wait_ms,
                         struct nj_access_counts *counts);
