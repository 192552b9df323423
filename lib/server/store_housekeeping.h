/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is done with a file store once a second, also when no requests arrive: unused entries are
 * removed, and the names of --root, --upgrade-socket and --management-socket are checked. It may
 * block, so a worker does it.
 */
#pragma once

#include "mgmt/listener_sockets.h"
#include "sched/task.h"
#include "server/root_watch.h"
#include "threads/worker_pool.h"
#include "upgrade/socket_file.h"

struct nj_store_housekeeping {
    struct nj_file_store *store;  /* NULL: there is nothing to do */
    struct nj_worker_ops workers; /* for this task alone */
    struct nj_root_watch root;    /* of the task */
    struct nj_socket_file *upgrade_socket;
    struct nj_mgmt_sockets *management;
    const _Atomic bool *is_yielding; /* another process takes new connections */
    struct nj_task task;
    bool is_submitted;
    nj_ns due_at;
};

/* Submit the task, if it is time and the last one is done. The supervisor, once per tick. */
void nj__store_housekeeping_tick(struct nj_store_housekeeping *h, nj_ns now);
/* Take the task back, if it is done. The supervisor, or after its end the thread that stops the
 * workers. */
void nj__store_housekeeping_reap(struct nj_store_housekeeping *h);
