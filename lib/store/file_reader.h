/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reader: one thread that does the READs of all shards for a store, by io_uring.
 *
 * A READ whose piece is in memory goes home at once, whatever the disk does. The others wait for
 * the disk, where clients take turns (sched/task_queue.h): at most NJ_FILE_READS_MAX are under way,
 * of which one client has at most NJ_FILE_READS_CLIENT_MAX. A READ of a piece that is being read
 * joins that one. Where the disk has nothing else to do, pieces are read that a body is about to
 * ask for (struct nj_file_job.n_ahead).
 *
 * The thread itself never waits for a disk. Where it might, in a file system of another machine, or
 * where a file was changed just before it was opened, READs are tasks of the workers
 * (nj_file_reader_may()). So are those that the system has had no memory for several times: workers
 * may wait until there is some. Files whose last reference it finds put are closed by others
 * (nj_file_store_bury()).
 */
#ifndef NJ_STORE_FILE_READER_H
#define NJ_STORE_FILE_READER_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dpdk/wakeup.h"
#include "http/files/file_ops.h"
#include "sched/task_port.h"
#include "store/file_store.h"
#include "telem/histogram.h"

struct nj_file_reader_config {
    struct nj_file_store *store;
    bool no_direct;            /* always through the page cache */
    uint32_t n_shards;         /* 1..NJ_SHARDS_MAX */
    uint32_t tasks_max;        /* of one shard, from submit to poll */
    const cpu_set_t *affinity; /* NULL: where its creator may run */
    bool eal;                  /* EAL is up: register the thread with it */
    bool no_thread;            /* its creator does what the thread would, nj__file_reader_step() */
    struct nj_waker *wakers;   /* the reader wakes a shard's when a job comes home; NULL: none */
};

struct nj_file_reader;

/* Returns 0, or a negative errno: the kernel has no io_uring, or does not let us. */
int nj_file_reader_start(const struct nj_file_reader_config *config, struct nj_file_reader **out);
/* For one thread. Its tasks are those of struct nj_file_job, of op READ. */
struct nj_task_port nj_file_reader_port(struct nj_file_reader *r, uint32_t shard);
/* May this READ be done here? Any thread. */
bool nj_file_reader_may(const struct nj_file_job *job);

/* No READ is begun any more; waits until those under way have ended. Returns how many have not: the
 * port's polls give back the others; the thread itself counts as one. */
uint32_t nj_file_reader_stop(struct nj_file_reader *r, uint32_t wait_ms);
/* After stop returned 0 and all was polled; without a thread, when no read is under way and all was
 * polled. NULL is fine. */
void nj_file_reader_free(struct nj_file_reader *r);

/* Of one without a thread: what the thread does again and again. False: there was nothing to do; it
 * has to be called when nj__ring_wake() was, or a read has ended. */
bool nj__file_reader_step(struct nj_file_reader *r);

struct nj_file_reader_stats {
    _Atomic uint32_t n_under_way, n_waiting; /* reads; READs that wait for their turn */
    _Atomic uint64_t n_failed;               /* reads that the system could not do */
    _Atomic uint64_t n_put_off;              /* that it had no memory for: a worker's now */
    _Atomic uint64_t direct_bytes;           /* that were read past the page cache */
    struct nj_histogram took;                /* from the begin of a read to its end */
};
/* Any thread. */
const struct nj_file_reader_stats *nj_file_reader_stats(const struct nj_file_reader *r);
/* Is the store's memory registered with the kernel? */
bool nj_file_reader_is_registered(const struct nj_file_reader *r);

#endif
