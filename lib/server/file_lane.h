/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A shard's way to the file store and back, over a worker. READs for which the store has no memory
 * are kept here, and asked for again when somebody has let go of some: whoever waits for them knows
 * nothing of it, and they take no place among the jobs that are out. One lcore only.
 */
#ifndef NJ_SERVER_FILE_LANE_H
#define NJ_SERVER_FILE_LANE_H

#include <stdint.h>

#include "server/file_store.h"
#include "server/worker.h"

struct nj_file_lane {
    struct nj_file_port way; /* to the worker */
    struct nj_file_store *store;
    struct nj_file_job *first, **last; /* waiting, in the order in which they were refused */
    struct nj_file_job **look;         /* is the one here still waited for? */
};

/* `lane` must stay where it is for as long as the port is used. */
struct nj_file_port nj_file_lane_init(struct nj_file_lane *lane, const struct nj_file_port *way,
                                      struct nj_file_store *store);

#endif
