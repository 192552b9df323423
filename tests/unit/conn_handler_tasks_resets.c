/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that are reset while queued for or running on a worker: a client that requests and
 * resets must not get more work done than one that waits (CVE-2023-44487). Workers are modelled:
 * each runs one task at a time, which takes a time per route in virtual time.
 */
#include <criterion/criterion.h>

#include <nightjar/handler.h>

#include "h2/h2_internal.h"
#include "sched/fair_task_queue.h"
#include "support/handlers_rig.h"
#include "telem/counters.h"

#define WORKERS   4
#define TASK_NS   (100 * NJ_MS)
#define ATTACKER  (RIG_PEER_IP + 50)
#define PER_ROUND 100u

static struct {
    struct nj_task_queue queue;
    struct {
        struct nj_task *task;
        nj_ns ends;
    } worker[WORKERS];
    uint32_t n_tasks, n_most, n_ran;
} pool;

static bool pool_submit(void *ctx, struct nj_task *task)
{
    if (pool.n_tasks >= NJ_TASKS_OUT_MAX) {
        struct nj_task *other = nj_task_queue_evict_from_longest(&pool.queue, task);
        if (!other)
            return false;
        other->ops->reject(other);
        pool.n_tasks--;
    }
    atomic_store(&task->cancelled, false);
    nj_task_queue_push(&pool.queue, task);
    pool.n_tasks++;
    pool.n_most = pool.n_tasks > pool.n_most ? pool.n_tasks : pool.n_most;
    return true;
}

static void pool_flush(void *ctx)
{
}

static bool pool_withdraw(void *ctx, struct nj_task *task)
{
    if (!nj_list_linked(&task->node)) {
        atomic_store(&task->cancelled, true);
        return false;
    }
    nj_task_queue_remove(&pool.queue, task);
    pool.n_tasks--;
    return true;
}

/* Finished tasks return, and free workers start the next. */
static uint32_t pool_poll(void *ctx, struct nj_task **tasks, uint32_t n)
{
    nj_ns now = hr_here->r->now;
    uint32_t n_home = 0;

    for (int i = 0; i < WORKERS; i++) {
        struct nj_task *done = pool.worker[i].task;
        if (done && pool.worker[i].ends <= now && n_home < n) {
            nj_task_queue_done(&pool.queue, done);
            tasks[n_home++] = done;
            pool.n_tasks--;
            done = pool.worker[i].task = NULL;
        }
        if (done ||
            !(pool.worker[i].task = nj_task_queue_pop_client_capped(&pool.queue, UINT32_MAX)))
            continue;
        pool.worker[i].task->ops->run(pool.worker[i].task);
        pool.worker[i].task->run_ns = 1000;
        pool.worker[i].ends = now + TASK_NS;
        pool.n_ran++;
    }
    return n_home;
}

static nj_ns victim_began; /* the last of them */

static void slow(struct nj_request *req, struct nj_response *resp, void *arg)
{
    if (nj_request_query(req).n_bytes > 0)
        victim_began = hr_here->r->now;
    nj_response_write(resp, "slow", 4);
}

static void quick(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_write(resp, "quick", 5);
}

static void wait_long(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_sleep(3600 * NJ_SEC);
}

static const struct nj_route routes[] = {
    {.path = "/slow", .type = NJ_OS_BLOCKING, .handle = slow},
    {.path = "/wait", .type = NJ_BLOCKING, .handle = wait_long},
    {.path = "/quick", .type = NJ_NON_BLOCKING, .handle = quick},
};

static struct hr *start(void)
{
    struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));

    memset(&pool, 0, sizeof pool);
    nj_task_queue_init(&pool.queue);
    h->config.conns.ops.workers = (struct nj_worker_ops){.ctx = h,
                                                         .submit = pool_submit,
                                                         .flush = pool_flush,
                                                         .poll = pool_poll,
                                                         .withdraw = pool_withdraw};
    return hr_start(h);
}

static void drain(struct hr *h)
{
    hr_run(h, 2 * NJ_SEC);
    cr_expect_eq(pool.n_tasks, 0, "%u", pool.n_tasks);
    cr_expect_eq(nj_exchanges_n_open(h->r->s->conns.handlers.exchanges), 0);
    hr_free(h);
}

/* ---- a peer that only asks and resets ---- */

struct attacker {
    struct rig_peer *p;
    uint32_t next_id; /* of the next stream */
    uint16_t port;
};

static void attack_connect(struct hr *h, struct attacker *a)
{
    a->p = rig_syn_from(h->r, ATTACKER, ++a->port);
    rig_begin_h2(h->r, a->p);
    a->next_id = 1;
}

static void ask_many_of(struct hr *h, struct attacker *a, uint32_t n, const char *path)
{
    uint8_t buf[64];

    for (uint32_t i = 0; i < n; i++, a->next_id += 2)
        rig_send(h->r, a->p, buf, rig_h2_get(buf, a->next_id, path));
}

static void ask_many(struct hr *h, struct attacker *a, uint32_t n)
{
    ask_many_of(h, a, n, "/slow");
}

static void reset_many(struct hr *h, struct attacker *a, uint32_t n)
{
    static const uint8_t code[4] = {0, 0, 0, 8};
    uint8_t buf[16];

    for (uint32_t i = n; i > 0; i--)
        rig_send(h->r, a->p, buf, rig_h2(buf, 3, 0, a->next_id - 2 * i, code, 4));
}

/* A request of the client: the time until it started. */
static nj_ns ask_one(struct hr *h, struct hr_client *c, struct attacker *a, nj_ns *at, bool *asked)
{
    struct hr_reply *r = hr_reply_of(c, hr_get(c, "/slow?v"));
    nj_ns begun = h->r->now;

    victim_began = 0;
    while (!r->ended && h->r->now - begun < 60 * NJ_SEC) {
        if (h->r->now >= *at) {
            *asked ? reset_many(h, a, PER_ROUND) : ask_many(h, a, PER_ROUND);
            *at = h->r->now + (*asked ? 5 : 80) * NJ_MS;
            *asked = !*asked;
        }
        hr_run(h, 5 * NJ_MS);
        a->p->n_got = 0; /* it does not check */
    }
    cr_expect(r->ended);
    return victim_began ? victim_began - begun : 60 * NJ_SEC;
}

/* Four workers, tasks of 100 ms, 100 requests and 80 ms later 100 resets, endlessly, on one
 * connection whose reset budget is disabled, as it would end the attack. */
Test(conn_handler_tasks_resets, another_client_starts_within_one_task)
{
    struct hr *h = start();
    struct attacker a = {.port = 5000};
    struct hr_client *c = hr_connect(h);
    nj_ns at = 0, worst = 0;
    bool asked = false;

    h->r->s->conns.h2->limits.glitches_max = 1u << 30;
    attack_connect(h, &a);
    hr_run(h, 200 * NJ_MS);
    for (int i = 0; i < 20; i++) {
        nj_ns took = ask_one(h, c, &a, &at, &asked);
        worst = took > worst ? took : worst;
        cr_expect_leq(took, TASK_NS, "request %d began after %lu ms", i, took / NJ_MS);
    }
    printf("at most %u tasks, worst start %lu ms, %lu withdrawn\n", pool.n_most, worst / NJ_MS,
           rig_count(h->r, NJ_C_task_withdrawn));
    cr_expect_leq(pool.n_most, NJ_CONN_TASKS_MAX + 1, "and one of the client: %u", pool.n_most);
    cr_expect_gt(rig_count(h->r, NJ_C_task_withdrawn), 1000);
    cr_expect(!a.p->got_fin && !a.p->got_rst);
    if (asked)
        reset_many(h, &a, PER_ROUND);
    drain(h);
}

/* With the default budget the connection ends after few rounds: resets of running requests cost
 * more than others. */
Test(conn_handler_tasks_resets, the_connection_ends)
{
    struct hr *h = start();
    struct attacker a = {.port = 5000};
    uint32_t n = 0;

    attack_connect(h, &a);
    for (; n < 100 && !a.p->got_fin; n++) {
        ask_many(h, &a, PER_ROUND);
        hr_run(h, 80 * NJ_MS);
        reset_many(h, &a, PER_ROUND);
        hr_run(h, 80 * NJ_MS);
    }
    cr_expect_eq(n, 5, "%u rounds: 2 for each reset, 4 for each of those that ran, less 16", n);
    cr_expect_eq(rig_count(h->r, NJ_C_h2_abuse), 1);
    drain(h);
}

/* A proxy sends 200 requests a second on one connection; its clients cancel a fifth of them while a
 * worker runs them; for ten minutes. */
Test(conn_handler_tasks_resets, an_honest_proxy_goes_on)
{
    struct hr *h = start();
    struct attacker a = {.port = 5000};
    uint32_t n_tenths = 0;

    attack_connect(h, &a);
    for (; n_tenths < 6000 && !a.p->got_fin; n_tenths++) {
        ask_many_of(h, &a, 16, "/quick");
        ask_many(h, &a, 4);
        hr_run(h, 50 * NJ_MS);
        reset_many(h, &a, 4);
        hr_run(h, 50 * NJ_MS);
        a.p->n_got = 0;
    }
    cr_expect_eq(n_tenths, 6000, "it ended after %u s", n_tenths / 10);
    cr_expect_eq(rig_count(h->r, NJ_C_h2_abuse), 0);
    cr_expect_geq(pool.n_ran, 4 * n_tenths, "%u", pool.n_ran);
    drain(h);
}

/* ---- tasks that count until they have returned ---- */

/* Handlers of closed streams count for their connection: it has no more than its limit of streams.
 * Nothing is withdrawn here, as if all of them ran. */
Test(conn_handler_tasks_resets, a_connection_has_no_more_than_its_streams)
{
    struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));

    h->workers_slow = true;
    h->jobs_max = HR_JOBS_MAX;
    hr_start(h);
    h->r->s->conns.h2->limits.glitches_max = 1u << 30;
    struct hr_client *c = hr_connect(h), *other = hr_connect(h);
    int32_t id[60];
    for (int i = 0; i < 60; i++)
        id[i] = hr_get(c, "/slow");
    hr_settle(h);
    cr_assert_eq(h->n_jobs, 60);
    for (int i = 0; i < 60; i++)
        hr_reset(c, id[i]);
    hr_settle(h);
    cr_expect_eq(nj_exchanges_n_open(h->r->s->conns.handlers.exchanges), 60, "they run on");
    unsigned n_served = 0;
    for (int i = 0; i < 70; i++) {
        const struct hr_reply *w = hr_reply_of(c, hr_get(c, "/wait"));
        hr_settle(h);
        n_served += !w->closed;
        cr_expect(!w->closed || w->error == NGHTTP2_REFUSED_STREAM);
    }
    cr_expect_eq(n_served, NJ_CONN_TASKS_MAX - 60, "%u", n_served);
    cr_expect_eq(rig_count(h->r, NJ_C_conn_tasks_full), 70 - n_served);
    struct hr_reply *b = hr_reply_of(other, hr_get(other, "/quick"));
    hr_settle(h);
    cr_expect_eq(b->status, 200, "another connection");
    h->workers_slow = false;
    hr_settle(h);
    hr_free(h);
}

/* ... and for their client, by the policy's limits. */
Test(conn_handler_tasks_resets, a_client_has_no_more_than_its_streams)
{
    struct nj_policy policy = nj_policy_none;
    struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));

    policy.classes[0].caps.streams_max = 8;
    h->config.conns.policy = &policy;
    h->workers_slow = true;
    hr_start(h);
    struct hr_client *c = hr_connect(h);
    int32_t id[8];
    for (int i = 0; i < 8; i++)
        id[i] = hr_get(c, "/slow");
    hr_settle(h);
    for (int i = 0; i < 8; i++)
        hr_reset(c, id[i]);
    struct hr_reply *more = hr_reply_of(c, hr_get(c, "/quick"));
    hr_settle(h);
    cr_expect_eq(more->status, 429, "%d: eight run on", more->status);
    h->workers_slow = false;
    hr_settle(h);
    more = hr_reply_of(c, hr_get(c, "/quick"));
    hr_settle(h);
    cr_expect_eq(more->status, 200);
    hr_free(h);
}

/* Its connection closes before its handlers finish. */
Test(conn_handler_tasks_resets, the_connection_is_gone_first)
{
    struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));

    h->workers_slow = true;
    hr_start(h);
    struct hr_client *c = hr_connect(h);
    for (int i = 0; i < 10; i++)
        hr_get(c, "/slow");
    hr_settle(h);
    hr_reset(c, 1);
    hr_settle(h);
    rig_seg(h->r, c->p, c->p->snd_nxt, NJ_TCP_RST, NULL, 0);
    hr_run(h, NJ_SEC);
    cr_expect_eq(h->r->s->conns.pool.n_used, 0);
    cr_expect_eq(nj_exchanges_n_open(h->r->s->conns.handlers.exchanges), 10);
    cr_expect_eq(h->r->s->conns.txns.pool.n_used, 10);
    h->workers_slow = false;
    hr_run(h, 10 * NJ_MS);
    cr_expect_eq(nj_exchanges_n_open(h->r->s->conns.handlers.exchanges), 0);
    cr_expect_eq(h->r->s->conns.txns.pool.n_used, 0);
    hr_free(h);
}

/* Connections of one client fill the task queue: another client gets a place, and its first task
 * starts within one task's duration. */
Test(conn_handler_tasks_resets, nine_connections_of_one_client)
{
    enum { N = 9 };
    struct hr *h = start();
    struct attacker a[N];
    struct hr_client *c = hr_connect(h);

    for (int i = 0; i < N; i++) {
        a[i] = (struct attacker){.port = (uint16_t)(5000 + i)};
        attack_connect(h, &a[i]);
    }
    hr_run(h, 200 * NJ_MS);
    for (int i = 0; i < N; i++)
        ask_many(h, &a[i], 128);
    hr_run(h, 5 * NJ_MS);
    cr_assert_eq(pool.n_tasks, NJ_TASKS_OUT_MAX, "%u", pool.n_tasks);
    cr_expect_eq(rig_count(h->r, NJ_C_task_displaced), 0, "no other client needs an entry");
    for (int i = 0; i < 5; i++) {
        struct hr_reply *r = hr_reply_of(c, hr_get(c, "/slow?v"));
        nj_ns begun = h->r->now;
        victim_began = 0;
        while (!r->ended && h->r->now - begun < NJ_SEC) {
            hr_run(h, 5 * NJ_MS);
            for (int k = 0; k < N; k++)
                ask_many(h, &a[k], 1); /* in place of those that were answered */
        }
        cr_expect_eq(r->status, 200, "%d: %d", i, r->status);
        cr_expect(victim_began && victim_began - begun <= TASK_NS, "%d: it began after %lu ms", i,
                  (victim_began - begun) / NJ_MS);
    }
    cr_expect_gt(rig_count(h->r, NJ_C_task_displaced), 0);
    cr_expect_eq(hr_class(h, 0)->n[NJ_MODE_REJECTED], rig_count(h->r, NJ_C_exchange_rejected));
    hr_run(h, 30 * NJ_SEC);
    drain(h);
}
