/* SPDX-License-Identifier: BSD-3-Clause */
#include "sched/task_queue.h"

#include "base/assert.h"
#include "base/attr.h"

static uint32_t place_of(const struct nj_task *task)
{
    uint64_t key = (uintptr_t)task->client / NJ_CACHE_LINE;
    return key * 0x9e3779b97f4a7c15u >> 32 & (NJ_TASK_QUEUE_CLIENTS - 1);
}

static struct nj_task_client *client_of(struct nj_task_queue *q, const struct nj_task *task)
{
    return &q->client[place_of(task)];
}

static void enlist(struct nj_task_queue *q, struct nj_task_client *c)
{
    nj_list_del(&c->node);
    if (!nj_list_empty(&c->tasks))
        nj_list_push_back(c->n_with_workers == 0 ? &q->fresh : &q->turns, &c->node);
}

void nj_task_queue_init(struct nj_task_queue *q)
{
    nj_list_init(&q->fresh);
    nj_list_init(&q->turns);
    q->n = 0;
    for (uint32_t i = 0; i < NJ_TASK_QUEUE_CLIENTS; i++) {
        nj_list_init(&q->client[i].tasks);
        nj_list_init(&q->client[i].node);
        q->client[i].n_with_workers = 0;
    }
}

void nj_task_queue_push(struct nj_task_queue *q, struct nj_task *task)
{
    struct nj_task_client *c = client_of(q, task);
    bool first = nj_list_empty(&c->tasks);

    nj_list_push_back(&c->tasks, &task->node);
    q->n++;
    if (first)
        enlist(q, c);
}

struct nj_task *nj_task_queue_first(const struct nj_task_queue *q)
{
    const struct nj_list *turns = nj_list_empty(&q->fresh) ? &q->turns : &q->fresh;

    if (nj_list_empty(turns))
        return NULL;
    const struct nj_task_client *c = nj_container_of(turns->next, struct nj_task_client, node);
    return nj_container_of(c->tasks.next, struct nj_task, node);
}

struct nj_task *nj_task_queue_pop(struct nj_task_queue *q)
{
    struct nj_task *task = nj_task_queue_first(q);

    if (!task)
        return NULL;
    struct nj_task_client *c = client_of(q, task);
    nj_list_del(&task->node);
    q->n--;
    c->n_with_workers++;
    enlist(q, c);
    return task;
}

void nj_task_queue_home(struct nj_task_queue *q, const struct nj_task *task)
{
    struct nj_task_client *c = client_of(q, task);

    NJ_ASSERT(c->n_with_workers > 0);
    if (--c->n_with_workers == 0)
        enlist(q, c);
}

void nj_task_queue_remove(struct nj_task_queue *q, struct nj_task *task)
{
    struct nj_task_client *c = client_of(q, task);

    NJ_ASSERT(nj_list_linked(&task->node) && q->n > 0);
    nj_list_del(&task->node);
    q->n--;
    if (nj_list_empty(&c->tasks))
        nj_list_del(&c->node);
}
