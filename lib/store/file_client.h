/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A shard's client of the file store: submits file jobs as tasks to the workers and the reader, and
 * collects their results. READs that fail with NO_MEMORY or BUSY, or that were displaced from the
 * task queue by another client, are parked here and resubmitted: when memory was returned, when the
 * awaited fill has ended, or at once. The body that waits for a READ is not told, and parked READs
 * occupy no task slot. One lcore only.
 */
#pragma once

#include "sched/ewyk_fiber_scheduler.h"
#include "sched/worker_ops.h"
#include "store/file_store.h"

/* A FIFO list of parked READs. */
struct nj__file_job_list {
    struct nj_file_job *first, **last;
    struct nj_file_job **look; /* where the next scan continues */
};

struct nj_file_client {
    struct nj_worker_ops workers; /* to the workers */
    struct nj_worker_ops reader;  /* for READs by the reader (file_reader.h); zeroed: none */
    struct nj_file_store *store;
    struct nj_task_class by_op[NJ_FILE_N_OPS];
    struct nj__file_job_list displaced;    /* READs displaced by another client */
    struct nj__file_job_list memory, busy; /* by result: NO_MEMORY and BUSY */
    struct nj_file_job *failed;            /* rejected jobs; the next poll returns them */
    bool has_completed; /* a task has left the queue since a submit was refused */
};

/* The struct must not move while the returned port is used. `reader` NULL: none. */
struct nj_file_ops nj_file_client_init(struct nj_file_client *fc,
                                       const struct nj_worker_ops *workers,
                                       const struct nj_worker_ops *reader,
                                       struct nj_file_store *store);
