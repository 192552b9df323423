/* SPDX-License-Identifier: BSD-3-Clause */
/* nj_call_on_worker(): a handler on a stack lets a worker do a part of its work. Workers are
 * modelled, except in the last tests. */
#include <criterion/criterion.h>
#include <sched.h>
#include <semaphore.h>

#include <nightjar/handler.h>

#include "support/handlers_rig.h"
#include "telem/counters.h"
#include "threads/worker_pool.h"

#define OTHER(i) (RIG_PEER_IP + 20 + (i))
#define TASKS    64u

/* A task waits, is taken by a worker (and then runs, unless it was cancelled before), and is
 * returned. */
static struct {
    struct nj_task *task[TASKS];
    uint32_t n;
    bool is_full, takes, returns, ran;
} pool;

static bool pool_submit(void *ctx, struct nj_task *task)
{
    (void)ctx;
    if (pool.is_full || pool.n == TASKS)
        return false;
    atomic_store(&task->cancelled, false);
    pool.task[pool.n++] = task;
    return true;
}

static void pool_flush(void *ctx)
{
    (void)ctx;
}

static void pool_remove(struct nj_task *task)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < pool.n; i++)
        if (pool.task[i] != task)
            pool.task[n++] = pool.task[i];
    cr_assert_eq(n + 1, pool.n);
    pool.n = n;
}

static bool pool_withdraw(void *ctx, struct nj_task *task)
{
    (void)ctx;
    if (pool.takes) {
        atomic_store(&task->cancelled, true);
        return false;
    }
    pool_remove(task);
    return true;
}

static void run_taken(void)
{
    pthread_t thread;

    for (uint32_t i = 0; i < pool.n; i++) {
        pool.task[i]->run_ns = 0;
        if (atomic_load(&pool.task[i]->cancelled))
            continue;
        NJ_CHECK(pthread_create(&thread, NULL, hr_worker, pool.task[i]) == 0);
        pthread_join(thread, NULL);
    }
    pool.ran = true;
}

static uint32_t pool_poll(void *ctx, struct nj_task **tasks, uint32_t n)
{
    uint32_t n_home = 0;

    (void)ctx;
    if (!pool.takes || !pool.returns)
        return 0;
    if (!pool.ran)
        run_taken();
    while (n_home < n && pool.n > 0) {
        tasks[n_home++] = pool.task[0];
        pool_remove(pool.task[0]);
    }
    pool.ran = false;
    return n_home;
}

/* ---- handlers ---- */

static int rc;             /* of the last call */
static uint32_t n_called;  /* calls of on_worker() */
static pthread_t lcore;    /* the thread of the shard */
static bool was_elsewhere; /* ... and none of them was on it */

static void on_worker(void *arg)
{
    n_called++;
    was_elsewhere &= !pthread_equal(pthread_self(), lcore);
    cr_expect(!nj_must_not_block());
    hr_here->clock += 10 * NJ_MS;
    if (arg)
        ++*(uint32_t *)arg;
}

static void respond(struct nj_response *resp)
{
    char line[16];

    snprintf(line, sizeof line, "%d", rc);
    nj_response_write(resp, line, strlen(line));
}

static void calls(struct nj_request *req, struct nj_response *resp, void *arg)
{
    uint32_t n = 0;

    (void)req, (void)arg;
    rc = nj_call_on_worker(on_worker, &n);
    cr_expect_eq(n, rc == 0);
    respond(resp);
}

/* A stream that has ended, and the handler goes on. */
static void calls_late(struct nj_request *req, struct nj_response *resp, void *arg)
{
    (void)req, (void)arg;
    nj_sleep(1000 * NJ_SEC);
    rc = nj_call_on_worker(on_worker, NULL);
    respond(resp);
}

static void on_timer(struct nj_request *req, struct nj_response *resp, void *arg)
{
    calls(req, resp, arg);
    nj_response_end(resp);
}

static void defers(struct nj_request *req, struct nj_response *resp, void *arg)
{
    (void)req;
    nj_response_defer(resp);
    nj_response_on_timer(resp, NJ_MS, on_timer, arg);
}

struct piece {
    const uint8_t *bytes;
    int64_t n;
    uint64_t *at;
    bool *wrong;
};

static void check_piece(void *arg)
{
    const struct piece *p = arg;

    hr_here->clock += NJ_MS;
    for (int64_t i = 0; i < p->n; i++)
        *p->wrong |= p->bytes[i] != rig_byte((*p->at)++);
}

/* An upload: pieces are read on the lcore, and used on workers. */
static void uploads(struct nj_request *req, struct nj_response *resp, void *arg)
{
    uint8_t bytes[1000];
    bool wrong = false;
    uint64_t at = 0;
    struct piece p = {.bytes = bytes, .at = &at, .wrong = &wrong};
    char line[32];

    (void)arg;
    while ((p.n = nj_request_read(req, bytes, sizeof bytes)) > 0)
        cr_expect_eq(nj_call_on_worker(check_piece, &p), 0);
    snprintf(line, sizeof line, "%s %u", wrong ? "wrong" : "right", (unsigned)at);
    nj_response_write(resp, line, strlen(line));
}

/* As uploads(), without the clock, which belongs to the test's thread. */
static void check_quietly(void *arg)
{
    const struct piece *p = arg;

    for (int64_t i = 0; i < p->n; i++)
        *p->wrong |= p->bytes[i] != rig_byte((*p->at)++);
}

static void uploads_quietly(struct nj_request *req, struct nj_response *resp, void *arg)
{
    uint8_t bytes[1000];
    bool wrong = false;
    uint64_t at = 0;
    struct piece p = {.bytes = bytes, .at = &at, .wrong = &wrong};

    (void)arg;
    while ((p.n = nj_request_read(req, bytes, sizeof bytes)) > 0)
        if (nj_call_on_worker(check_quietly, &p) != 0)
            return;
    nj_response_write(resp, wrong ? "wrong" : "right", 5);
}

static sem_t began, may_end;

static void blocks(void *arg)
{
    (void)arg;
    sem_post(&began);
    while (sem_wait(&may_end) != 0)
        ;
}

static void calls_blocks(struct nj_request *req, struct nj_response *resp, void *arg)
{
    (void)req, (void)resp, (void)arg;
    rc = nj_call_on_worker(blocks, NULL);
}

enum { CALLS, LATE, NON, EITHER, DEFERS, OS, UPLOADS, QUIET, BLOCKS };

static const struct nj_route routes[] = {
    [CALLS] = {.path = "/calls", .type = NJ_BLOCKING, .handle = calls},
    [LATE] = {.path = "/late", .type = NJ_BLOCKING, .handle = calls_late},
    [NON] = {.path = "/non", .type = NJ_NON_BLOCKING, .handle = calls},
    [EITHER] = {.path = "/either", .type = NJ_EITHER, .handle = calls},
    [DEFERS] = {.path = "/defers", .type = NJ_NON_BLOCKING, .handle = defers},
    [OS] = {.path = "/os", .type = NJ_OS_BLOCKING, .handle = calls},
    [UPLOADS] = {.path = "/uploads", .type = NJ_BLOCKING, .handle = uploads},
    [QUIET] = {.path = "/quiet", .type = NJ_BLOCKING, .handle = uploads_quietly},
    [BLOCKS] = {.path = "/blocks", .type = NJ_BLOCKING, .handle = calls_blocks},
};

/* The shard is not started yet. */
static struct hr *new (enum nj_run strategy)
{
    struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));

    memset(&pool, 0, sizeof pool);
    pool.takes = pool.returns = true;
    rc = 1;
    n_called = 0;
    lcore = pthread_self();
    was_elsewhere = true;
    h->config.conns.strategy = strategy;
    h->config.conns.ops.workers = (struct nj_worker_ops){.ctx = h,
                                                         .submit = pool_submit,
                                                         .flush = pool_flush,
                                                         .poll = pool_poll,
                                                         .withdraw = pool_withdraw};
    return h;
}

static struct hr *start(enum nj_run strategy)
{
    return hr_start(new (strategy));
}

static const struct hr_reply *get(struct hr *h, struct hr_client *c, const char *path)
{
    const struct hr_reply *a = hr_reply_of(c, hr_get(c, path));

    hr_settle(h);
    return a;
}

/* The handler continues on its lcore, and the time of the call is not its own. */
Test(http_worker_call, is_called)
{
    struct hr *h = start(NJ_RUN_EWYK);
    struct hr_client *c = hr_connect(h);

    for (uint32_t i = 1; i <= 30; i++) {
        cr_expect_str_eq(get(h, c, "/calls")->body, "0");
        cr_expect_eq(n_called, i);
    }
    cr_expect(was_elsewhere);
    cr_expect_eq(hr_class(h, CALLS)->type, NJ_BLOCKING);
    cr_expect(hr_class(h, CALLS)->pinned);
    cr_expect_eq(hr_class(h, CALLS)->longest_ns, 0);
    cr_expect_eq(hr_class(h, CALLS)->n[NJ_MODE_EPC_PARKED], 30);
    cr_expect_eq(hr_class(h, CALLS)->n[NJ_MODE_PEC_WORKER], 0, "the request was not there");
    cr_expect_str_eq(get(h, c, "/either")->body, "0");
    hr_free(h);
}

Test(http_worker_call, pieces_of_a_body)
{
    enum { N = 300000 };
    struct hr *h = start(NJ_RUN_EWYK);
    struct hr_client *c = hr_connect(h);
    const struct hr_reply *a = hr_reply_of(c, hr_post(c, "/uploads", N));

    hr_settle(h);
    cr_expect_str_eq(a->body, "right 300000");
    cr_expect_eq(hr_class(h, UPLOADS)->longest_ns, 0);
    hr_free(h);
}

Test(http_worker_call, must_not_wait)
{
    struct hr *h = start(NJ_RUN_EWYK);
    struct hr_client *c = hr_connect(h);

    get(h, c, "/non");
    cr_expect_eq(rc, NJ_ERR_WOULD_BLOCK);
    get(h, c, "/defers");
    rc = 1;
    hr_run(h, 10 * NJ_MS);
    cr_expect_eq(rc, NJ_ERR_WOULD_BLOCK);
    cr_expect_eq(n_called, 0);
    hr_free(h);
}

/* On a worker it calls the function itself. */
Test(http_worker_call, on_a_worker)
{
    static const enum nj_run strategy[] = {NJ_RUN_EWYK, NJ_RUN_PEC};

    for (size_t i = 0; i < NJ_ARRAY_LEN(strategy); i++) {
        struct hr *h = start(strategy[i]);
        struct hr_client *c = hr_connect(h);
        cr_expect_str_eq(get(h, c, "/os")->body, "0");
        cr_expect_eq(n_called, 1);
        if (strategy[i] == NJ_RUN_PEC)
            cr_expect_str_eq(get(h, c, "/calls")->body, "0");
        cr_expect(was_elsewhere);
        hr_free(h);
    }
}

/* With everything inline there is no stack to wait on. */
Test(http_worker_call, all_inline)
{
    struct hr *h = start(NJ_RUN_PC);
    struct hr_client *c = hr_connect(h);

    cr_expect_str_eq(get(h, c, "/calls")->body, "0");
    cr_expect_eq(n_called, 1);
    get(h, c, "/non");
    cr_expect_eq(rc, NJ_ERR_WOULD_BLOCK);
    hr_free(h);
}

Test(http_worker_call, the_workers_are_full)
{
    struct hr *h = start(NJ_RUN_EWYK);
    struct hr_client *c = hr_connect(h);

    pool.is_full = true;
    get(h, c, "/calls");
    cr_expect_eq(rc, NJ_ERR_MEMORY);
    pool.is_full = false;
    pool.takes = false;
    get(h, c, "/calls");
    cr_assert_eq(pool.n, 1);
    struct nj_task *task = pool.task[0];
    cr_expect_not_null(task->client);
    cr_expect_eq(task->class_of, hr_class(h, CALLS));
    pool_remove(task);
    task->displaced = true; /* for another client's */
    rc = 1;
    task->ops->reject(task);
    hr_settle(h);
    cr_expect_eq(rc, NJ_ERR_MEMORY);
    cr_expect_eq(n_called, 0);
    cr_expect_str_eq(get(h, c, "/non")->body, "-1");
    hr_free(h);
}

/* The stream ends before a worker has it, when it has it and has not begun, and while it runs. */
Test(http_worker_call, the_client_leaves)
{
    enum { IN_QUEUE, TAKEN, IN_RUN, N };

    for (int when = IN_QUEUE; when < N; when++) {
        struct hr *h = start(NJ_RUN_EWYK);
        struct hr_client *c = hr_connect(h);
        pool.takes = pool.returns = false;
        int32_t id = hr_get(c, "/calls");
        hr_settle(h);
        cr_assert_eq(pool.n, 1);
        pool.takes = when != IN_QUEUE;
        if (when == IN_RUN)
            run_taken();
        hr_reset(c, id);
        rc = 1;
        hr_settle(h);
        cr_expect_eq(rc, when == IN_QUEUE ? NJ_ERR_CANCELLED : 1, "%d: %d", when, rc);
        cr_expect_eq(pool.n, when != IN_QUEUE, "%d", when);
        pool.returns = true;
        hr_settle(h);
        cr_expect_eq(rc, when == IN_RUN ? 0 : NJ_ERR_CANCELLED, "%d: %d", when, rc);
        cr_expect_eq(n_called, when == IN_RUN, "%d", when);
        cr_expect_eq(nj_exchanges_n_calls(h->r->s->conns.handlers.exchanges), 0);
        cr_expect_eq(nj_exchanges_n_open(h->r->s->conns.handlers.exchanges), 0);
        hr_free(h);
    }
}

/* The stream has ended before the call. */
Test(http_worker_call, the_client_left_before)
{
    struct hr *h = start(NJ_RUN_EWYK);
    struct hr_client *c = hr_connect(h);
    int32_t id = hr_get(c, "/late");

    hr_settle(h);
    hr_reset(c, id);
    hr_settle(h);
    cr_expect_eq(rc, NJ_ERR_CANCELLED);
    cr_expect_eq(n_called, 0);
    cr_expect_eq(pool.n, 0);
    hr_free(h);
}

/* ---- real workers ---- */

static struct nj_worker_pool *start_real(struct hr **h, uint32_t n_workers)
{
    struct nj_worker_pool *w = NULL;
    const struct nj_worker_pool_config c = {
        .n_shards = 1, .kind = {[NJ_WORKER_HANDLERS] = {.n_max = n_workers, .tasks_max = 1000}}};

    cr_assert_eq(nj_worker_pool_start(&c, &w), 0);
    *h = new (NJ_RUN_EWYK);
    (*h)->config.conns.ops.workers = nj_worker_pool_ops(w, 0, NJ_WORKER_HANDLERS);
    hr_start(*h);
    return w;
}

/* As the server does. */
static void end_real(struct hr *h, struct nj_worker_pool *w)
{
    nj_conns_end(&h->r->s->conns);
    cr_expect_eq(nj_worker_pool_stop(w, 60000), 0);
    hr_free(h);
    nj_worker_pool_free(w);
}

/* Bodies of several clients at once. */
Test(http_worker_call, real_workers)
{
    enum { CLIENTS = 4, EACH = 5, BODY = 40000 };
    struct hr *h;
    struct nj_worker_pool *w = start_real(&h, 3);
    const struct hr_reply *a[CLIENTS * EACH];
    uint32_t n = 0, n_right = 0;

    for (uint32_t i = 0; i < CLIENTS; i++) {
        struct hr_client *c = hr_connect_from(h, OTHER(i), &(struct hr_options){0});
        hr_settle(h);
        for (uint32_t k = 0; k < EACH; k++)
            a[n++] = hr_reply_of(c, hr_post(c, "/quiet", BODY));
    }
    while (n_right < n) {
        hr_settle(h);
        sched_yield();
        n_right = 0;
        for (uint32_t i = 0; i < n; i++)
            n_right += !strcmp(a[i]->body, "right");
    }
    end_real(h, w);
}

static void *let_it_end(void *arg)
{
    (void)arg;
    while (sem_wait(&began) != 0)
        ;
    sem_post(&may_end);
    return NULL;
}

/* The server ends while a worker has the call: the handler returns before the shard is freed. */
Test(http_worker_call, the_server_ends)
{
    struct hr *h;
    struct nj_worker_pool *w = start_real(&h, 1);
    struct hr_client *c = hr_connect(h);
    const char *route;
    pthread_t thread;

    cr_assert_eq(sem_init(&began, 0, 0) + sem_init(&may_end, 0, 0), 0);
    hr_get(c, "/blocks");
    hr_settle(h);
    cr_assert_eq(pthread_create(&thread, NULL, let_it_end, NULL), 0);
    nj_conns_end(&h->r->s->conns);
    cr_expect_eq(nj_conns_stuck_fibers(&h->r->s->conns, &route), 0);
    cr_expect(rc == 0 || rc == NJ_ERR_CANCELLED, "%d", rc);
    sem_post(&began); /* in case it never ran */
    pthread_join(thread, NULL);
    end_real(h, w);
}
