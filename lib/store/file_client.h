/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A shard's way to the file store and back, over a port of the workers: an operation on files is a
 * task. READs for which the store has no memory, READs of what another thread is reading, and READs
 * that gave their place among the tasks to another client's are kept here, and asked for again when
 * somebody has let go of memory, when that was read, or at once: whoever waits for them knows
 * nothing of it, and they take no place among the tasks that are out. One lcore only.
 */
#ifndef NJ_STORE_FILE_CLIENT_H
#define NJ_STORE_FILE_CLIENT_H

#include <stdint.h>

#include "sched/ewyk.h"
#include "sched/task_port.h"
#include "store/file_store.h"

/* In the order in which they were refused. */
struct nj__file_waiting {
    struct nj_file_job *first, **last;
    struct nj_file_job **look; /* where the next look is taken */
};

struct nj_file_lane {
    struct nj_task_port way;    /* to the workers */
    struct nj_task_port reader; /* for READs that it may do (file_reader.h), or zeroes */
    struct nj_file_store *store;
    struct nj_task_class by_op[NJ_FILE_N_OPS];
    struct nj__file_waiting displaced;    /* READs that gave their place to another client's */
    struct nj__file_waiting memory, busy; /* by result: NO_MEMORY and BUSY */
    struct nj_file_job *failed;           /* will not be run, and are given back by the next poll */
    bool has_left;                        /* some task, since one was refused */
};

/* `lane` must stay where it is for as long as the port is used. `reader`: NULL, there is none. */
struct nj_file_port nj_file_lane_init(struct nj_file_lane *lane, const struct nj_task_port *way,
                                      const struct nj_task_port *reader,
                                      struct nj_file_store *store);

#endif
