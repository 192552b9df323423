/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rings of two shards for the same four threads, without threads: the test is the service, and
 * time is virtual. Which tasks may be with workers, while there are several clients.
 */
#include <criterion/criterion.h>

#include "base/compiler.h"
#include "base/limits.h"
#include "sched/ewyk_fiber_scheduler.h"
#include "threads/task_rings.h"

enum { SHARDS = 2, WORKERS = 4, TASKS = 1000 };

static struct nj__task_rings lane[SHARDS];
static struct nj_worker_ops port[SHARDS];
static _Atomic uint32_t n_slow;
static struct nj_task task[TASKS];
static uint32_t n_tasks; /* of `task` */
static struct nj__task_slot *running[TASKS];
static uint32_t n_running;
static nj_ns now;

static char client[8][NJ_CACHE_LINE];
#define A client[0]
#define B client[1]
#define C client[2]

static nj_ns clock_now(void)
{
    return now;
}

static void run(struct nj_task *t)
{
    (void)t;
}

static void reject(struct nj_task *t)
{
    (void)t;
    cr_assert_fail("a task was rejected");
}

static const struct nj_task_ops ops = {run, reject};

/* The service takes what is in the ring. */
static void ask(struct nj__task_rings *l)
{
    while (!nj__task_rings_is_empty(l))
        running[n_running++] = nj__task_rings_pop(l);
}

static struct nj_wakeup waker[SHARDS];

static void begin(void)
{
    n_slow = n_tasks = n_running = 0;
    now = 1000 * NJ_SEC;
    for (uint32_t i = 0; i < SHARDS; i++) {
        struct nj__task_rings_config c = {.ask = ask,
                                          .slot_ops = &ops,
                                          .n_max = WORKERS,
                                          .depth = NJ_WORKER_DEPTH,
                                          .tasks_max = TASKS,
                                          .waker = &waker[i],
                                          .next = &lane[(i + 1) % SHARDS],
                                          .n_slow = &n_slow,
                                          .clock = clock_now};
        lane[i] = (struct nj__task_rings){0};
        cr_assert(nj_wakeup_open(&waker[i]));
        cr_assert(nj__task_rings_init(&lane[i], &c));
        port[i] = nj__task_rings_ops(&lane[i]);
    }
}

static void send(uint32_t shard, const void *from, struct nj_task_class *class_of, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct nj_task *t = &task[n_tasks++];
        *t = (struct nj_task){.ops = &ops, .client = from, .class_of = class_of};
        nj_list_init(&t->node);
        cr_assert(port[shard].submit(port[shard].ctx, t));
    }
    port[shard].flush(port[shard].ctx);
}

/* Tasks of a client with the service. */
static uint32_t n_of(const void *from)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < n_running; i++)
        n += running[i]->job->client == from;
    return n;
}

/* Each shard polls. */
static void step(void)
{
    struct nj_task *done[16];

    for (uint32_t i = 0; i < SHARDS; i++)
        while (port[i].poll(port[i].ctx, done, NJ_ARRAY_LEN(done)) > 0)
            ;
}

/* The first task of a client that the service has ends after `took`. */
static void end_one(const void *from, nj_ns took)
{
    uint32_t i = 0;

    while (running[i]->job->client != from)
        cr_assert_lt(++i, n_running);
    struct nj__task_slot *s = running[i];
    n_running--;
    for (; i < n_running; i++)
        running[i] = running[i + 1];
    s->job->run_ns = s->job->wall_ns = took;
    nj__task_rings_return_to_shard(s);
}

static void end(void)
{
    while (n_running > 0) {
        end_one(running[0]->job->client, 0);
        step();
    }
    cr_expect_eq(n_slow, 0, "%u", n_slow);
    for (uint32_t i = 0; i < SHARDS; i++) {
        nj__task_rings_fini(&lane[i]);
        nj_wakeup_close(&waker[i]);
    }
}

static struct nj_task_class slow[SHARDS], quick[SHARDS];

static void init(void)
{
    for (uint32_t i = 0; i < SHARDS; i++) {
        slow[i] = (struct nj_task_class){.worker_max_ns = 3 * NJ_SEC};
        quick[i] = (struct nj_task_class){.worker_max_ns = NJ_MS};
    }
    begin();
}

TestSuite(threads_task_rings, .init = init, .fini = end);

/* The only client has all workers, and no other's last task was 10 s ago or less. */
Test(threads_task_rings, a_client_that_is_alone_has_all)
{
    send(0, A, &slow[0], 1);
    end_one(A, 3 * NJ_SEC);
    step();
    now += NJ_WORKER_ALONE_NS;
    send(0, B, &slow[0], TASKS / 2);
    cr_expect_eq(n_of(B), WORKERS - 2, "A was there, at the first task of B");
    now += NJ_WORKER_ALONE_NS;
    step();
    cr_expect_eq(n_of(B), WORKERS);
}

/* A client with a backlog, and another one that comes every 5 s: the first one never has all
 * workers again. */
Test(threads_task_rings, a_client_that_comes_again_is_there)
{
    send(0, A, &slow[0], TASKS / 2);
    cr_assert_eq(n_of(A), WORKERS);
    now += NJ_SEC;
    for (int i = 0; i < 10; i++) {
        send(0, B, &quick[0], 1);
        cr_assert_eq(n_of(B), i > 0, "after %d s", 1 + 5 * i);
        for (int k = 0; k < WORKERS; k++) {
            end_one(A, 3 * NJ_SEC);
            step();
            cr_expect_lt(n_of(A), WORKERS, "after %d s", 1 + 5 * i);
        }
        cr_assert_eq(n_of(B), 1);
        end_one(B, NJ_MS);
        step();
        now += 5 * NJ_SEC;
    }
}

/* Slow tasks of a client of another shard: the first slow task of a client starts at once, and so
 * does each one that is not slow. */
Test(threads_task_rings, slow_tasks_of_another_shard)
{
    send(0, A, &quick[0], 1);
    send(1, B, &slow[1], 100);
    cr_expect_eq(n_of(B), WORKERS - 2, "%u", n_of(B));
    send(0, C, &slow[0], 1);
    cr_expect_eq(n_of(C), 1);
    send(0, A, &quick[0], 1);
    cr_expect_eq(n_of(A), 2);
    cr_expect_leq(n_slow, WORKERS - 1);
}

/* ... of clients of both shards, and of several clients of each: one worker stays free. */
Test(threads_task_rings, slow_tasks_of_many_clients)
{
    send(0, A, &quick[0], 1);
    for (uint32_t i = 1; i < NJ_ARRAY_LEN(client); i++)
        send(i % SHARDS, client[i], &slow[i % SHARDS], 50);
    cr_expect_eq(n_running, WORKERS, "one is not slow: %u", n_running);
    cr_expect_eq(n_slow, WORKERS - 1);
    for (uint32_t i = 0; i < 100; i++) { /* as long as they are there */
        end_one(running[1]->job->client, 3 * NJ_SEC);
        step();
        cr_expect_eq(n_slow, WORKERS - 1, "%u", n_slow);
        if (i % 10 == 0)
            send(1, A, &quick[1], 1);
    }
}

/* A task that waits for a slow one of another shard starts when that ends: its shard is woken. */
Test(threads_task_rings, the_end_of_a_slow_task_wakes_other_shards)
{
    send(0, A, &quick[0], 1);
    end_one(A, NJ_MS);
    for (uint32_t i = 2; i < 2 + WORKERS; i++)
        send(1, client[i], &slow[1], 1);
    cr_expect_eq(n_running, WORKERS - 1);
    send(0, B, &slow[0], 1);
    cr_expect_eq(n_of(B), 0);
    step();
    nj_wakeup_arm(&waker[0]);
    end_one(client[2], 3 * NJ_SEC);
    cr_expect(!nj_wakeup_is_armed(&waker[0]));
    step();
    cr_expect_eq(n_of(B), 1);
}

/* Tasks that are not known to be slow do not count, and unknown ones do. */
Test(threads_task_rings, what_is_slow)
{
    static struct nj_task_class unknown, as_long = {.worker_max_ns = NJ_WORKER_SLOW_TASK_NS};

    send(1, A, &quick[1], 1);
    send(0, B, &as_long, 100);
    cr_expect_eq(n_of(B), WORKERS - 1, "%u", n_of(B));
    cr_expect_eq(n_slow, 0);
    send(0, C, &unknown, 100);
    cr_expect_eq(n_slow, 1, "%u", n_slow);
}
