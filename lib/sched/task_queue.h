/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tasks of one lcore that wait for a worker, fair between clients.
 *
 * The tasks of one client are served in the order in which they came. Between clients, those that
 * have no task with a worker come first, then those that have some; clients of each of these two
 * groups take turns, one task each. So a client's first task waits for at most one task of each
 * other client that has nothing with a worker either, whatever the others have queued.
 *
 * One lcore's. Nothing is allocated, and all operations but displacing are O(1).
 */
#ifndef NJ_SCHED_TASK_QUEUE_H
#define NJ_SCHED_TASK_QUEUE_H

#include "sched/task.h"

/* Clients are told apart by a hash of task->client; two in one place share one turn. With as many
 * places as a quarter of NJ_TASKS_OUT_MAX, 12 KiB for each lcore. */
#define NJ_TASK_QUEUE_CLIENTS 256u

/* A join looks at so many tasks. Of those who have more waiting, few miss one more turn. */
#define NJ_TASK_QUEUE_JOIN 32u

struct nj_task_client {
    struct nj_list tasks; /* struct nj_task.node, that wait */
    struct nj_list node;  /* of the queue's fresh or turns, while some wait */
    uint32_t n_with_workers;
    uint32_t n; /* of `tasks` */
};

struct nj_task_queue {
    struct nj_list fresh; /* clients that have tasks here and none with a worker */
    struct nj_list turns; /* ... and some with a worker */
    uint32_t n;           /* tasks that wait */
    uint32_t n_clients;   /* of fresh and turns */
    struct nj_task_client client[NJ_TASK_QUEUE_CLIENTS];
};

void nj_task_queue_init(struct nj_task_queue *q);
void nj_task_queue_push(struct nj_task_queue *q, struct nj_task *task);
/* The task whose turn it is; it stays in the queue. NULL: none waits. */
struct nj_task *nj_task_queue_first(const struct nj_task_queue *q);
/* The first leaves the queue and goes to a worker; nj_task_queue_home() when it is back. */
struct nj_task *nj_task_queue_pop(struct nj_task_queue *q);
/* The same, but of a client that has less than `n` with workers. NULL: there is none. O(clients)
 * that have as many or more. */
struct nj_task *nj_task_queue_pop_below(struct nj_task_queue *q, uint32_t n);
void nj_task_queue_home(struct nj_task_queue *q, const struct nj_task *task);
/* No more may wait, and this one is to: the task that leaves the queue for it, the last of the
 * client with most, whose displaced is set; the caller rejects it. NULL: its own client has its
 * part of the queue, that is all places divided by the clients that have some. O(clients) for one.
 */
struct nj_task *nj_task_queue_displace(struct nj_task_queue *q, const struct nj_task *task);
/* Another client wants this task, too. True: it waits, would come earlier as the last of that
 * client's tasks, and now is. Whoever has more than NJ_TASK_QUEUE_JOIN tasks gets none. */
bool nj_task_queue_join(struct nj_task_queue *q, struct nj_task *task, const void *client);
/* A task that waits leaves the queue without going to a worker. */
void nj_task_queue_remove(struct nj_task_queue *q, struct nj_task *task);

#endif
