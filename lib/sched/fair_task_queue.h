/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queue of one lcore's tasks that wait for a worker, fair between clients.
 *
 * Tasks of one client are served in order of arrival. Clients without a task at a worker come
 * before clients with one. Within each of these two groups clients take turns, one task each. So a
 * client's first task waits for at most one task of each other client without a task at a worker,
 * however many tasks are queued.
 *
 * One lcore only. Nothing is allocated. Operations are O(1) unless stated otherwise.
 */
#pragma once

#include "sched/task.h"

/* Buckets of clients, by a hash of task->client; clients in one bucket share a turn. A quarter of
 * NJ_TASKS_OUT_MAX, 12 KiB for each lcore. */
#define NJ_TASK_QUEUE_CLIENTS 256u

/* nj_task_queue_move_to_client() examines at most this many tasks. */
#define NJ_TASK_QUEUE_REASSIGN_MAX 32u

struct nj_task_client {
    struct nj_list tasks; /* waiting tasks, by struct nj_task.node */
    struct nj_list node;  /* in the list `unserved` or `turns`, while tasks wait */
    uint32_t n_with_workers;
    uint32_t n; /* of `tasks` */
};

struct nj_task_queue {
    struct nj_list unserved; /* clients with waiting tasks and none at a worker */
    struct nj_list turns;    /* ... and some at a worker */
    uint32_t n;              /* waiting tasks */
    uint32_t n_clients;      /* in both lists */
    struct nj_task_client client[NJ_TASK_QUEUE_CLIENTS];
};

void nj_task_queue_init(struct nj_task_queue *q);
void nj_task_queue_push(struct nj_task_queue *q, struct nj_task *task);
/* The next task, which stays in the queue. NULL: the queue is empty. */
struct nj_task *nj_task_queue_first(const struct nj_task_queue *q);
/* The next task that may be taken, which stays in the queue: the first one of a client for which
 * `may` is true. `n` is the number of tasks of the client at workers. NULL: there is none.
 * O(clients whose first task may not). */
struct nj_task *nj_task_queue_find(const struct nj_task_queue *q,
                                   bool (*may)(void *ctx, const struct nj_task *task, uint32_t n),
                                   void *ctx);
/* Removes the next task of a client with fewer than `n` tasks at workers, for a worker. The caller
 * calls nj_task_queue_done() when it completes. NULL: there is none. O(clients with `n` or more).
 */
struct nj_task *nj_task_queue_pop_client_capped(struct nj_task_queue *q, uint32_t n);
/* Removes this waiting task, in the same way. */
void nj_task_queue_take(struct nj_task_queue *q, struct nj_task *task);
void nj_task_queue_done(struct nj_task_queue *q, const struct nj_task *task);
/* Makes room for `task` in a full queue: removes the last task of the client with the most tasks,
 * sets its `displaced` and returns it; the caller rejects it. NULL: the client of `task` already
 * has its fair share, the queue's length divided by the number of clients. O(clients). */
struct nj_task *nj_task_queue_evict_from_longest(struct nj_task_queue *q,
                                                 const struct nj_task *task);
/* Moves a waiting task to the end of another client's tasks, if it runs earlier there. True: moved.
 * A client with more than NJ_TASK_QUEUE_REASSIGN_MAX tasks gets none. */
bool nj_task_queue_move_to_client(struct nj_task_queue *q, struct nj_task *task,
                                  const void *client);
/* Removes a waiting task, not for a worker. */
void nj_task_queue_remove(struct nj_task_queue *q, struct nj_task *task);
