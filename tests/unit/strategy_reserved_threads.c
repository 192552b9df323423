/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reserved threads, with real ones. Where a test waits, it polls; its time-out is the bound. Every
 * order of a few of them: tests/explore.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/compiler.h"
#include "strategy/reserved_threads.h"

#define THREADS 3u
#define TASKS   4u

struct world;

struct task {
    struct nj_task task;
    struct world *w;
    _Atomic bool busy; /* accepted, and not run */
};

struct world {
    struct nj_reserved *r;
    struct task tasks[TASKS];
    pthread_t threads[THREADS];
    _Atomic uint32_t n_run, n_bad, n_wanted, n_back;
    _Atomic bool over;
};

static void run(struct nj_task *task)
{
    struct task *t = nj_container_of(task, struct task, task);

    if (!atomic_exchange(&t->busy, false))
        atomic_fetch_add(&t->w->n_bad, 1);
    atomic_fetch_add(&t->w->n_run, 1);
}

static void *thread(void *arg)
{
    struct world *w = arg;

    while (!atomic_load(&w->over)) {
        nj_reserved_serve(w->r);
        atomic_fetch_add(&w->n_back, 1);
        sched_yield();
    }
    return NULL;
}

static void on_wanted(void *ctx)
{
    atomic_fetch_add(&((struct world *)ctx)->n_wanted, 1);
}

static void begin(struct world *w, uint32_t capacity, uint32_t n_min, nj_ns idle_ns, bool threads)
{
    static const struct nj_task_ops ops = {run, NULL};
    struct nj_reserved_config config = {capacity, n_min, idle_ns, .wanted = on_wanted, .ctx = w};

    *w = (struct world){.r = nj_reserved_new(&config)};
    for (unsigned i = 0; i < TASKS; i++)
        w->tasks[i] = (struct task){.task = {.ops = &ops}, .w = w};
    for (unsigned i = 0; threads && i < THREADS; i++)
        cr_assert_eq(pthread_create(&w->threads[i], NULL, thread, w), 0);
}

static void end(struct world *w)
{
    atomic_store(&w->over, true);
    nj_reserved_stop(w->r);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(w->threads[i], NULL);
    uint32_t n_reserved, n_wanted;
    nj_reserved_count_and_wanted(w->r, &n_reserved, &n_wanted);
    cr_assert_eq(n_reserved, 0, "all went");
    nj_reserved_free(w->r);
}

/* Thousands of misses request no more threads than the capacity. EWYK 5.44, EWYK 5.40 */
Test(strategy_reserved_threads, wants_no_more_than_its_capacity)
{
    struct world w;
    uint32_t n_reserved, n_wanted;

    begin(&w, 3, 0, NJ_NEVER, false);
    cr_assert(!nj_reserved_is_wanted(w.r), "no thread is reserved before the first miss");
    for (unsigned i = 0; i < 100000; i++)
        cr_assert(!nj_reserved_try_execute(w.r, &w.tasks[0].task));
    nj_reserved_count_and_wanted(w.r, &n_reserved, &n_wanted);
    cr_assert_eq(n_reserved, 0);
    cr_assert_eq(n_wanted, 3);
    cr_assert_eq(w.n_wanted, 3, "and the callback was called as often");
    cr_assert_eq(w.n_run, 0);
    nj_reserved_stop(w.r);
    cr_assert(!nj_reserved_is_wanted(w.r));
    nj_reserved_serve(w.r); /* returns at once */
    nj_reserved_free(w.r);
}

/* EWYK 5.44 */
Test(strategy_reserved_threads, serves_only_when_wanted)
{
    struct world w;

    begin(&w, 2, 0, NJ_NEVER, false);
    nj_reserved_serve(w.r); /* returns at once, though there are free seats */
    nj_reserved_stop(w.r);
    nj_reserved_free(w.r);
}

Test(strategy_reserved_threads, none)
{
    struct world w;

    begin(&w, 0, 0, NJ_NEVER, false);
    cr_assert(!nj_reserved_try_execute(w.r, &w.tasks[0].task));
    cr_assert(!nj_reserved_is_wanted(w.r));
    nj_reserved_stop(w.r);
    nj_reserved_free(w.r);
}

/* Hand over n tasks, by the same few nodes: an accepted task runs once, a refused one never. */
static void hand_over(struct world *w, unsigned n)
{
    for (unsigned n_accepted = 0, i = 0; n_accepted < n; i++) {
        struct task *t = &w->tasks[i % TASKS];
        if (atomic_load(&t->busy)) {
            sched_yield();
            continue;
        }
        atomic_store(&t->busy, true);
        if (nj_reserved_try_execute(w->r, &t->task)) {
            n_accepted++;
        } else {
            cr_assert(atomic_exchange(&t->busy, false), "a refused task ran");
            sched_yield();
        }
    }
}

static void wait_for(struct world *w, uint32_t n_run)
{
    while (atomic_load(&w->n_run) < n_run)
        sched_yield();
}

/* With a time-out about as long as a hand-over, so that both happen at once. EWYK 5.41, EWYK 5.43,
 * EWYK 5.3 */
Test(strategy_reserved_threads, hand_over_and_time_out, .timeout = 60)
{
    struct world w;

    begin(&w, 2, 0, 20 * NJ_US, true);
    hand_over(&w, 20000);
    wait_for(&w, 20000);
    end(&w);
    cr_assert_eq(w.n_run, 20000);
    cr_assert_eq(w.n_bad, 0);
}

/* EWYK 5.42 */
Test(strategy_reserved_threads, hand_over_and_stop, .timeout = 60)
{
    for (unsigned i = 0; i < 200; i++) {
        struct world w;
        begin(&w, 2, 1, NJ_NEVER, true);
        hand_over(&w, 1 + i % 3);
        end(&w);
        cr_assert_eq(w.n_run, 1 + i % 3, "all accepted tasks ran");
        cr_assert_eq(w.n_bad, 0);
    }
}

/* Two of them are reserved; then they are idle, and one stays. EWYK 5.45 */
Test(strategy_reserved_threads, shrinks_to_its_least, .timeout = 60)
{
    struct world w;
    uint32_t n_reserved, n_wanted;

    begin(&w, 3, 1, 1 * NJ_MS, true);
    hand_over(&w, 50);
    /* One thread stays, and no other is requested, permanently; otherwise the time-out ends this
     * test. */
    for (unsigned n_looks = 0; n_looks < 1000; n_looks++) {
        sched_yield();
        nj_reserved_count_and_wanted(w.r, &n_reserved, &n_wanted);
        cr_assert_leq(n_reserved + n_wanted, 3); /* 0: each of them runs a task just now */
        if (n_reserved != 1 || n_wanted != 0)
            n_looks = 0;
    }
    hand_over(&w, 50); /* and grows again */
    wait_for(&w, 100);
    end(&w);
}
