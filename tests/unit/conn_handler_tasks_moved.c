/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Routes that were moved to the workers while these are full: no request is rejected for that, and
 * none gets more of the core's stacks than a route that was not moved. Workers are modelled: they
 * have a limited queue and run tasks on command.
 */
#include <criterion/criterion.h>

#include <nightjar/handler.h>

#include "sched/fair_task_queue.h"
#include "support/handlers_rig.h"
#include "telem/counters.h"

#define STACKS   NJ_FIBERS_DEFAULT
#define OTHER(i) (RIG_PEER_IP + 20 + (i))

static const struct hr_options wide = {.window = 1u << 30, .session_add = 1u << 30};

static struct {
    struct nj_task_queue queue;
    uint32_t n_max;
    bool works; /* then runs all queued tasks */
} pool;

static bool pool_submit(void *ctx, struct nj_task *task)
{
    if (pool.queue.n >= pool.n_max) {
        struct nj_task *other = nj_task_queue_evict_from_longest(&pool.queue, task);
        if (!other)
            return false;
        other->ops->reject(other);
    }
    nj_task_queue_push(&pool.queue, task);
    return true;
}

static void pool_flush(void *ctx)
{
}

static bool pool_withdraw(void *ctx, struct nj_task *task)
{
    nj_task_queue_remove(&pool.queue, task);
    return true;
}

static uint32_t pool_poll(void *ctx, struct nj_task **tasks, uint32_t n)
{
    uint32_t n_home = 0;

    while (pool.works && n_home < n && pool.queue.n > 0) {
        struct nj_task *task = nj_task_queue_pop_client_capped(&pool.queue, UINT32_MAX);
        task->ops->run(task);
        task->run_ns = 200 * NJ_US; /* so it does not return to the core */
        nj_task_queue_done(&pool.queue, task);
        tasks[n_home++] = task;
    }
    return n_home;
}

/* Occupies the core for a given time and echoes the body received. */
static nj_ns hold_ns;

static void compute(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char buf[1000];
    int64_t n;

    hr_here->clock += hold_ns;
    while ((n = nj_request_read(req, buf, sizeof buf)) > 0)
        cr_expect_eq(nj_response_write(resp, buf, (size_t)n), 0);
    if (nj_request_query(req).n_bytes > 0) /* "?stay" */
        nj_sleep(1000 * NJ_SEC);
}

static void wait_long(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_sleep(1000 * NJ_SEC);
}

enum { NON, EITHER, BLOCKING, OS, FOREVER };

static const struct nj_route routes[] = {
    [NON] = {.path = "/non", .type = NJ_NON_BLOCKING, .handle = compute},
    [EITHER] = {.path = "/either", .type = NJ_EITHER, .handle = compute},
    [BLOCKING] = {.path = "/blocking", .type = NJ_BLOCKING, .handle = compute},
    [OS] = {.path = "/os", .type = NJ_OS_BLOCKING, .handle = compute},
    [FOREVER] = {.path = "/wait", .type = NJ_BLOCKING, .handle = wait_long},
};

static struct hr_client *connect_from(struct hr *h, uint32_t ip)
{
    struct hr_client *c = hr_connect_from(h, ip, &wide);
    hr_settle(h);
    return c;
}

/* Limits of the workers' queue and of requests queued for a stack (then there is one stack); 0: the
 * defaults. */
static struct hr *new (uint32_t n_max, uint32_t n_queue_max)
{
    struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));

    pool.n_max = n_max;
    pool.works = false;
    nj_task_queue_init(&pool.queue);
    h->config.conns.ops.workers = (struct nj_worker_ops){.ctx = h,
                                                         .submit = pool_submit,
                                                         .flush = pool_flush,
                                                         .poll = pool_poll,
                                                         .withdraw = pool_withdraw};
    h->config.conns.handlers_queue_max = n_queue_max;
    h->config.conns.fibers_max = n_queue_max ? 1 : 0;
    return h;
}

/* Routes before OS are moved. */
static struct hr *start(uint32_t n_max, uint32_t n_queue_max)
{
    struct hr *h = hr_start(new (n_max, n_queue_max));
    struct hr_client *c = connect_from(h, OTHER(70));

    hold_ns = 300 * NJ_US;
    for (uint32_t i = NON; i < OS; i++) {
        for (int k = 0; k < 20 && hr_class(h, i)->type != NJ_OS_BLOCKING; k++) {
            hr_get(c, routes[i].path);
            hr_settle(h);
        }
        cr_assert_eq(hr_class(h, i)->type, NJ_OS_BLOCKING, "%s", routes[i].path);
        nj_task_class_reset_counters(&h->r->s->conns.handlers.classes[i]);
    }
    hold_ns = 60 * NJ_US; /* enough that they do not return to the core */
    return h;
}

static uint32_t n_in_use(const struct hr *h)
{
    return nj_ewyk_gauges(h->r->s->conns.handlers.ewyk).n_fibers_in_use;
}

/* All requests have ended, except those that wait for ever. */
static void end(struct hr *h)
{
    const struct nj_requester *all = h->r->s->conns.txns.requester;
    uint32_t n = 0;

    pool.works = true;
    hr_settle(h);
    for (uint32_t i = 0; i < NJ_REQUESTERS; i++)
        n += all[i].n_need_stack;
    cr_expect_eq(n, h->r->s->conns.handlers.ewyk ? n_in_use(h) : 0, "%u", n);
    hr_free(h);
}

static uint64_t n_counted(const struct hr *h, uint32_t route)
{
    uint64_t n = 0;
    for (int m = 0; m < NJ_N_MODES; m++)
        n += hr_class(h, route)->n[m];
    return n;
}

/* EWYK 5.28: each is counted once, in the mode it ran. */
Test(conn_handler_tasks_moved, full_when_they_come)
{
    static const enum nj_run_mode mode[] = {NJ_MODE_PC, NJ_MODE_EPC_INLINE, NJ_MODE_EPC_INLINE};
    struct hr *h = start(0, 0);
    struct hr_client *c = connect_from(h, OTHER(0));

    for (uint32_t i = NON; i <= OS; i++) {
        const struct hr_reply *a = hr_reply_of(c, hr_get(c, routes[i].path));
        const struct hr_reply *b = hr_reply_of(c, hr_post(c, routes[i].path, 20));
        hr_settle(h);
        cr_expect_eq(a->status, i == OS ? 503 : 200, "%s: %d", routes[i].path, a->status);
        cr_expect_eq(b->status, i == OS ? 503 : 200, "%s: %d", routes[i].path, b->status);
        cr_expect(i == OS || (b->n_got == 20 && !b->wrong));
        cr_expect_eq(n_counted(h, i), 2, "%s", routes[i].path);
        cr_expect_eq(hr_class(h, i)->n[i == OS ? NJ_MODE_REJECTED : mode[i]], 2);
    }
    cr_expect_eq(rig_count(h->r, NJ_C_task_inline), 6);
    cr_expect_eq(rig_count(h->r, NJ_C_exchange_rejected), 2);
    pool.works = true;
    pool.n_max = 10;
    hr_get(c, "/non");
    hr_settle(h);
    cr_expect_eq(hr_class(h, NON)->n[NJ_MODE_PEC_WORKER], 1, "there is room again");
    end(h);
}

/* The body is complete when the workers are full: it is read on the core. */
Test(conn_handler_tasks_moved, full_when_the_body_is_whole)
{
    enum { N = 40000 };
    struct hr *h = start(3, 0);
    struct hr_client *c = connect_from(h, OTHER(0));

    for (int round = 0; round < 3; round++)
        for (uint32_t i = NON; i < OS; i++) {
            pool.n_max = 3;
            int32_t id = hr_ask(c, "POST", routes[i].path, N, N / 2, NULL, NULL);
            const struct hr_reply *a = hr_reply_of(c, id);
            hr_settle(h);
            cr_expect_eq(a->status, 0);
            pool.n_max = 0;
            hr_send_more(c, id, N);
            hr_settle(h);
            cr_expect(a->status == 200 && a->n_got == N && !a->wrong && a->ended, "%s: %d",
                      routes[i].path, a->status);
        }
    cr_expect_eq(rig_count(h->r, NJ_C_task_inline), 9);
    cr_expect_eq(nj_exchanges_n_open(h->r->s->conns.handlers.exchanges), 0);
    end(h);
}

/* Another client's task displaces one that is queued for a worker. */
Test(conn_handler_tasks_moved, displaced)
{
    enum { PLACES = 30 };
    struct hr *h = start(PLACES, 0);
    struct hr_client *a = connect_from(h, OTHER(0)), *b = connect_from(h, OTHER(1));
    int32_t id[PLACES];

    for (int i = 0; i < PLACES; i++)
        id[i] = hr_get(a, routes[i % OS].path);
    hr_settle(h);
    cr_assert_eq(pool.queue.n, PLACES);
    for (int i = 0; i < PLACES / 2; i++)
        hr_get(b, "/os");
    hr_settle(h);
    cr_expect_eq(pool.queue.n, PLACES);
    for (int i = 0; i < PLACES; i++)
        cr_expect_eq(hr_reply_of(a, id[i])->status, i < PLACES / 2 ? 0 : 200, "%d", i);
    cr_expect_eq(rig_count(h->r, NJ_C_task_inline), PLACES / 2);
    cr_expect_eq(rig_count(h->r, NJ_C_task_displaced), 0, "no request was refused");
    cr_expect_eq(rig_count(h->r, NJ_C_exchange_rejected), 0);
    pool.works = true;
    hr_settle(h);
    for (uint32_t i = NON; i < OS; i++)
        cr_expect_eq(n_counted(h, i), PLACES / 3, "%s", routes[i].path);
    cr_expect_eq(nj_exchanges_n_open(h->r->s->conns.handlers.exchanges), 0);
    end(h);
}

/* EWYK 5.56: a request that returns from the workers gets a stack by the same rules as one that
 * never was there; default sizes. One client requests all stacks by a moved route, at once or
 * gradually. */
static void fair_shares(bool displaced)
{
    struct hr *h = start(displaced ? 228 : 0, 0);
    struct hr_client *a = connect_from(h, OTHER(0)), *b = connect_from(h, OTHER(0));
    struct hr_client *c = connect_from(h, OTHER(1));

    hr_get(c, "/wait"); /* another client connects */
    hr_settle(h);
    for (int i = 0; i < 128; i++)
        hr_get(a, "/blocking?stay");
    for (int i = 0; i < 100; i++)
        hr_get(b, "/blocking?stay");
    hr_settle(h);
    pool.n_max = 0;
    if (displaced) { /* and the workers return one queued task for each new one */
        struct nj_task *task;
        cr_assert_eq(pool.queue.n, 228);
        while ((task = nj_task_queue_first(&pool.queue))) {
            nj_task_queue_remove(&pool.queue, task);
            task->displaced = true;
            task->ops->reject(task);
        }
        hr_settle(h);
    }
    cr_expect_eq(n_in_use(h), STACKS - STACKS / NJ_FIBERS_RESERVE_PART, "%u", n_in_use(h));
    cr_expect_eq(h->r->s->conns.admission.n_waiting, 228 - 191);
    cr_expect_eq(nj_ewyk_gauges(h->r->s->conns.handlers.ewyk).n_waiting, 0,
                 "no client exceeds its share");
    const struct hr_reply *other = hr_reply_of(c, hr_get(c, "/blocking"));
    const struct hr_reply *non = hr_reply_of(b, hr_get(b, "/non"));
    const struct hr_reply *either = hr_reply_of(b, hr_get(b, "/either"));
    hr_settle(h);
    cr_expect_eq(other->status, 200, "%d", other->status);
    cr_expect_eq(non->status, 200);
    cr_expect_eq(either->status, 200);
    cr_expect_eq(hr_class(h, EITHER)->n[NJ_MODE_PIC], 1, "not on a stack of the others");
    hr_run(h, NJ_FIBERS_WAIT_MAX + NJ_SEC);
    cr_expect_eq(rig_count(h->r, NJ_C_stack_timeout), 228 - 191, "they wait like others");
    end(h);
}

Test(conn_handler_tasks_moved, shares_of_stacks)
{
    fair_shares(false);
}

Test(conn_handler_tasks_moved, shares_of_stacks_when_displaced)
{
    fair_shares(true);
}

/* EWYK 5.13, EWYK 5.20, EWYK 5.21, EWYK 5.56: all default stacks are stuck for ever and the workers
 * are full: requests that need neither continue, on the same connection, moved or not. */
Test(conn_handler_tasks_moved, all_stacks_are_stuck)
{
    struct hr *h = start(0, 0);
    struct hr_client *a = connect_from(h, OTHER(0)), *b = connect_from(h, OTHER(0));
    struct hr_client *c = connect_from(h, OTHER(0));

    hr_get(a, "/wait");
    hr_run(h, 2 * NJ_FIBERS_ALONE_NS); /* then it is the only client and may have all */
    for (int i = 1; i < 128; i++)
        hr_get(a, "/wait");
    for (int i = 0; i < 128; i++)
        hr_get(b, "/wait");
    hr_settle(h);
    cr_assert_eq(n_in_use(h), STACKS, "%u", n_in_use(h));
    struct hr_reply *blocking = hr_reply_of(c, hr_get(c, "/blocking"));
    for (uint32_t i = 0; i < 50; i++) {
        const struct hr_reply *non = hr_reply_of(c, hr_get(c, "/non"));
        const struct hr_reply *either = hr_reply_of(c, hr_get(c, "/either"));
        hr_settle(h);
        cr_expect_eq(non->status, 200);
        cr_expect_eq(either->status, 200);
    }
    cr_expect_eq(hr_class(h, EITHER)->n[NJ_MODE_PIC], 50);
    cr_expect_eq(rig_count(h->r, NJ_C_task_inline), 101);
    cr_expect_eq(blocking->status, 0, "it waits for a stack");
    hr_reset(a, 1);
    hr_settle(h);
    cr_expect_eq(blocking->status, 200);
    cr_expect_eq(hr_class(h, BLOCKING)->n[NJ_MODE_PEC_QUEUE], 1);
    end(h);
}

/* The declared type applies fully: BLOCKING requests are rejected when there is no room. */
Test(conn_handler_tasks_moved, no_room_anywhere)
{
    struct hr *h = start(4, 1);
    struct hr_client *a = connect_from(h, OTHER(0)), *b = connect_from(h, OTHER(1));
    const struct hr_reply *r[5];

    hr_get(b, "/wait");
    for (int i = 0; i < 4; i++)
        r[i] = hr_reply_of(a, hr_get(a, "/blocking"));
    hr_settle(h);
    cr_assert_eq(pool.queue.n, 4);
    for (int i = 0; i < 2; i++)
        hr_get(b, "/os"); /* two of a's are displaced and queue for the only stack */
    hr_settle(h);
    cr_expect_eq(h->r->s->conns.admission.n_waiting, 1);
    for (int i = 0; i < 4; i++)
        cr_expect_eq(r[i]->status, i == 3 ? 503 : 0, "%d: %d", i, r[i]->status);
    cr_expect(!strcmp(r[3]->retry_after, "1"));
    cr_expect_eq(rig_count(h->r, NJ_C_task_displaced), 0, "it was not for the workers");
    cr_expect_eq(hr_class(h, BLOCKING)->n[NJ_MODE_REJECTED], 1);
    cr_expect_eq(n_counted(h, BLOCKING), 1);
    end(h);
}

/* It is reset, or its connection ends, before it runs the second time. */
Test(conn_handler_tasks_moved, gone_before_it_begins_again)
{
    struct hr *h = start(10, 0);
    struct hr_client *c = connect_from(h, OTHER(0)), *d = connect_from(h, OTHER(0));
    struct hr_client *all[] = {c, d};
    int32_t id = 0;

    for (int i = 0; i < 4; i++)
        id = hr_get(all[i % 2], i < 2 ? "/blocking" : "/non");
    hr_settle(h);
    cr_assert_eq(pool.queue.n, 4);
    pool.n_max = 0;
    hr_reset(d, id);
    rig_seg(h->r, c->p, c->p->snd_nxt, NJ_TCP_RST, NULL, 0);
    for (struct nj_task *task; (task = nj_task_queue_first(&pool.queue));) {
        nj_task_queue_remove(&pool.queue, task);
        task->displaced = true;
        task->ops->reject(task); /* between two steps: not yet run */
    }
    hr_settle(h);
    cr_expect_eq(rig_count(h->r, NJ_C_task_inline), 4);
    cr_expect_eq(nj_exchanges_n_open(h->r->s->conns.handlers.exchanges), 0);
    cr_expect_eq(n_counted(h, BLOCKING) + n_counted(h, NON), 1, "the one of d that was not reset");
    end(h);
}

/* A port without withdraw() returns a task whose stream has closed. */
Test(conn_handler_tasks_moved, gone_while_it_waits_for_a_worker)
{
    struct hr *h = start(10, 0);
    struct hr_client *c = connect_from(h, OTHER(0));
    int32_t id = hr_get(c, "/non");

    h->r->s->cfg.conns.ops.workers.withdraw = NULL;
    hr_settle(h);
    hr_reset(c, id);
    hr_settle(h);
    struct nj_task *task = nj_task_queue_first(&pool.queue);
    cr_assert_not_null(task);
    nj_task_queue_remove(&pool.queue, task);
    task->displaced = true;
    task->ops->reject(task);
    hr_settle(h);
    cr_expect_eq(rig_count(h->r, NJ_C_task_inline), 0);
    cr_expect_eq(nj_exchanges_n_open(h->r->s->conns.handlers.exchanges), 0);
    end(h);
}

/* When everything runs on workers (for comparison) there is no core to fall back to. */
Test(conn_handler_tasks_moved, all_on_workers)
{
    struct hr *h = new (0, 0);
    h->config.conns.strategy = NJ_RUN_PEC;
    hr_start(h);
    struct hr_client *c = connect_from(h, OTHER(0));
    const struct hr_reply *a = hr_reply_of(c, hr_get(c, "/non"));

    hr_settle(h);
    cr_expect_eq(a->status, 503);
    cr_expect_eq(hr_class(h, NON)->n[NJ_MODE_REJECTED], 1);
    cr_expect_eq(n_counted(h, NON), 1);
    cr_expect_eq(rig_count(h->r, NJ_C_task_inline), 0);
    end(h);
}

/* The server stops: no second run. */
Test(conn_handler_tasks_moved, the_workers_stop)
{
    struct hr *h = start(10, 0);
    struct hr_client *c = connect_from(h, OTHER(0));
    const struct hr_reply *a = hr_reply_of(c, hr_get(c, "/non"));

    hr_settle(h);
    struct nj_task *task = nj_task_queue_first(&pool.queue);
    nj_task_queue_remove(&pool.queue, task);
    task->ops->reject(task);
    hr_settle(h);
    cr_expect_eq(a->status, 503);
    cr_expect_eq(hr_class(h, NON)->n[NJ_MODE_REJECTED], 1);
    end(h);
}
