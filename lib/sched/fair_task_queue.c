/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue of tasks with round robin between clients, as in fair queueing with one task as the
 * quantum. Clients are buckets of a fixed hash table.
 */
#include "sched/fair_task_queue.h"

#include "base/assert.h"
#include "base/compiler.h"

static struct nj_task_client *find_client(struct nj_task_queue *q, const void *client)
{
    uint64_t key = (uintptr_t)client;
    return &q->client[key * 0x9e3779b97f4a7c15u >> 32 & (NJ_TASK_QUEUE_CLIENTS - 1)];
}

static struct nj_task_client *client_of(struct nj_task_queue *q, const struct nj_task *task)
{
    return find_client(q, task->client);
}

static void requeue_client(struct nj_task_queue *q, struct nj_task_client *c)
{
    nj_list_del(&c->node);
    if (c->n > 0)
        nj_list_push_back(c->n_with_workers == 0 ? &q->unserved : &q->turns, &c->node);
}

void nj_task_queue_init(struct nj_task_queue *q)
{
    nj_list_init(&q->unserved);
    nj_list_init(&q->turns);
    q->n = q->n_clients = 0;
    for (uint32_t i = 0; i < NJ_TASK_QUEUE_CLIENTS; i++) {
        nj_list_init(&q->client[i].tasks);
        nj_list_init(&q->client[i].node);
        q->client[i].n_with_workers = q->client[i].n = 0;
    }
}

void nj_task_queue_push(struct nj_task_queue *q, struct nj_task *task)
{
    struct nj_task_client *c = client_of(q, task);

    nj_list_push_back(&c->tasks, &task->node);
    q->n++;
    if (c->n++ > 0)
        return;
    q->n_clients++;
    requeue_client(q, c);
}

/* Removes the task from the queue. */
static void take(struct nj_task_queue *q, struct nj_task_client *c, struct nj_task *task)
{
    nj_list_del(&task->node);
    q->n--;
    if (--c->n == 0)
        q->n_clients--;
}

struct nj_task *nj_task_queue_first(const struct nj_task_queue *q)
{
    const struct nj_list *turns = nj_list_empty(&q->unserved) ? &q->turns : &q->unserved;

    if (nj_list_empty(turns))
        return NULL;
    const struct nj_task_client *c = nj_container_of(turns->next, struct nj_task_client, node);
    return nj_container_of(c->tasks.next, struct nj_task, node);
}

void nj_task_queue_take(struct nj_task_queue *q, struct nj_task *task)
{
    struct nj_task_client *c = client_of(q, task);

    take(q, c, task);
    c->n_with_workers++;
    requeue_client(q, c);
}

static struct nj_task *find_in(const struct nj_list *clients,
                               bool (*may)(void *ctx, const struct nj_task *task, uint32_t n),
                               void *ctx)
{
    for (const struct nj_list *l = clients->next; l != clients; l = l->next) {
        const struct nj_task_client *c = nj_container_of(l, struct nj_task_client, node);
        struct nj_task *task = nj_container_of(c->tasks.next, struct nj_task, node);
        if (may(ctx, task, c->n_with_workers))
            return task;
    }
    return NULL;
}

struct nj_task *nj_task_queue_find(const struct nj_task_queue *q,
                                   bool (*may)(void *ctx, const struct nj_task *task, uint32_t n),
                                   void *ctx)
{
    struct nj_task *task = find_in(&q->unserved, may, ctx);
    return task ? task : find_in(&q->turns, may, ctx);
}

static bool is_below_cap(void *cap, const struct nj_task *task, uint32_t n)
{
    (void)task;
    return n < *(const uint32_t *)cap;
}

struct nj_task *nj_task_queue_pop_client_capped(struct nj_task_queue *q, uint32_t n)
{
    struct nj_task *task = nj_task_queue_find(q, is_below_cap, &n);

    if (task)
        nj_task_queue_take(q, task);
    return task;
}

void nj_task_queue_done(struct nj_task_queue *q, const struct nj_task *task)
{
    struct nj_task_client *c = client_of(q, task);

    NJ_ASSERT(c->n_with_workers > 0);
    if (--c->n_with_workers == 0)
        requeue_client(q, c);
}

void nj_task_queue_remove(struct nj_task_queue *q, struct nj_task *task)
{
    struct nj_task_client *c = client_of(q, task);

    NJ_ASSERT(nj_list_linked(&task->node) && q->n > 0);
    take(q, c, task);
    if (c->n == 0)
        nj_list_del(&c->node);
}

/* The number of tasks of its client before this one; counting ends above `most`. */
static uint32_t count_before(const struct nj_task_client *c, const struct nj_task *task,
                             uint32_t most)
{
    uint32_t n = 0;

    for (const struct nj_list *at = task->node.prev; at != &c->tasks && n <= most; at = at->prev)
        n++;
    return n;
}

bool nj_task_queue_move_to_client(struct nj_task_queue *q, struct nj_task *task, const void *client)
{
    const struct nj_task_client *from = client_of(q, task), *to = find_client(q, client);

    if (!nj_list_linked(&task->node) || from == to || to->n > NJ_TASK_QUEUE_REASSIGN_MAX)
        return false;
    uint32_t n = count_before(from, task, to->n);
    bool is_fresh = to->n_with_workers == 0 && from->n_with_workers > 0;
    if (n < to->n || (n == to->n && !is_fresh))
        return false;
    nj_task_queue_remove(q, task);
    task->client = client;
    nj_task_queue_push(q, task);
    return true;
}

static struct nj_task_client *longest_queue(struct nj_task_client *most, struct nj_list *clients)
{
    for (struct nj_list *at = clients->next; at != clients; at = at->next) {
        struct nj_task_client *c = nj_container_of(at, struct nj_task_client, node);
        if (!most || c->n > most->n)
            most = c;
    }
    return most;
}

struct nj_task *nj_task_queue_evict_from_longest(struct nj_task_queue *q,
                                                 const struct nj_task *task)
{
    const struct nj_task_client *c = client_of(q, task);

    if (q->n == 0 || c->n >= q->n / (q->n_clients + (c->n == 0)))
        return NULL;
    const struct nj_task_client *most = longest_queue(longest_queue(NULL, &q->unserved), &q->turns);
    struct nj_task *last = nj_container_of(most->tasks.prev, struct nj_task, node);
    nj_task_queue_remove(q, last);
    last->displaced = true;
    return last;
}
