/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reader: one thread that performs the READs of all shards for a store, by io_uring(7).
 *
 * A READ whose chunk is in memory completes at once. Other READs enter a queue that is fair between
 * clients (sched/fair_task_queue.h). At most NJ_FILE_READS_MAX reads are in progress, and at most
 * NJ_FILE_READS_CLIENT_MAX of one client. A READ of a chunk that is being filled waits for that
 * fill. Free capacity is used for readahead (struct nj_file_job.n_ahead).
 *
 * The thread never blocks on a disk. READs that might block are tasks of the workers: files on
 * network file systems, files changed just before they were opened
 * (nj_file_reader_job_cannot_block()), and READs that failed repeatedly for lack of kernel memory.
 * The thread closes no files: nj_file_store_free_unreferenced() on other threads does.
 */
#pragma once

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dpdk/wakeup.h"
#include "http/files/file_ops.h"
#include "sched/worker_ops.h"
#include "store/file_store.h"
#include "telem/histogram.h"

struct nj_file_reader_config {
    struct nj_file_store *store;
    bool no_direct;            /* always through the page cache */
    uint32_t n_shards;         /* 1..NJ_SHARDS_MAX */
    uint32_t tasks_max;        /* of one shard, from submit to poll */
    const cpu_set_t *affinity; /* NULL: where its creator may run */
    bool eal;                  /* EAL is up: register the thread with it */
    bool no_thread;            /* no thread: the creator calls nj__file_reader_step() */
    struct nj_wakeup *wakeups; /* of the shards, which wait for returned jobs; NULL: none */
};

struct nj_file_reader;

/* Returns 0 or a negative errno: the kernel lacks io_uring or denies it. */
int nj_file_reader_start(const struct nj_file_reader_config *config, struct nj_file_reader **out);
/* The port of one shard, for one thread. Its tasks are the `task` of a struct nj_file_job with op
 * READ. */
struct nj_worker_ops nj_file_reader_ops_of_shard(struct nj_file_reader *r, uint32_t shard);
/* Can the reader do this READ without blocking? Any thread. */
bool nj_file_reader_job_cannot_block(const struct nj_file_job *job);

/* Stop: start no more READs and wait up to `wait_ms` for those in progress. Polls of the ports
 * return the others. Returns the number of reads still in progress plus one for the thread, or 0.
 */
uint32_t nj_file_reader_stop(struct nj_file_reader *r, uint32_t wait_ms);
/* Call after stop returned 0 (with `no_thread`: no read is in progress) and all ports were polled
 * empty. NULL is allowed. */
void nj_file_reader_free(struct nj_file_reader *r);

/* With `no_thread`: one iteration of the thread's loop. Returns false if it was idle. Call it again
 * after nj__uring_wake() or the end of a read. */
bool nj__file_reader_step(struct nj_file_reader *r);

struct nj_file_reader_stats {
    _Atomic uint32_t n_under_way, n_waiting; /* reads in progress; READs in the queue */
    _Atomic uint64_t n_failed;               /* reads that failed */
    _Atomic uint64_t n_to_workers;           /* passed to workers: no kernel memory */
    _Atomic uint64_t direct_bytes;           /* read by direct I/O */
    struct nj_histogram latency;             /* duration of a read in ns */
};
/* Any thread. */
const struct nj_file_reader_stats *nj_file_reader_stats(const struct nj_file_reader *r);
/* Is the store's memory registered with the kernel? */
bool nj_file_reader_has_fixed_buffers(const struct nj_file_reader *r);
