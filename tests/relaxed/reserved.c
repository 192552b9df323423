/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reserved threads: some offer themselves when one is wanted, some hand over tasks, and one stops
 * everything. The code of lib/strategy is unchanged: reserved_threads.c and futex_park.c.
 *
 * An accepted task runs once, and its thread sees the giver's writes. A lost wake-up is a deadlock:
 * no thread stops the others before all accepted tasks have run, unless a thread of the world does
 * only that.
 */
#include <string.h>

#include "base/compiler.h"
#include "relaxed.h"
#include "strategy/reserved_threads.h"

#define TASKS_MAX 4u

struct model {
    uint32_t n_servers, n_givers, n_each; /* tasks per giver */
    uint32_t capacity, n_min;
    nj_ns idle_ns;
    bool stops; /* the last thread stops everything, at any time */
    bool needs; /* the last thread needs one of the servers elsewhere */
};

struct task {
    struct nj_task task;
    bool accepted;
    uint8_t n_run;
};

static struct {
    const struct model *model;
    struct nj_reserved *r;
    struct task tasks[TASKS_MAX];
    _Atomic uint32_t n_wanted;    /* orders the call of wanted() before the thread that it starts */
    uint32_t n_calls, n_answered; /* of wanted() */
    uint32_t n_busy;              /* givers, tasks and needs in progress */
    _Atomic bool needed;          /* result of is_needed() */
    uint32_t n_needs, n_roused, n_told; /* n_roused: asked to leave; n_told: returned for that */
    bool over;
} w;

static void stop(void)
{
    w.over = true;
    relaxed_changed();
    nj_reserved_stop(w.r);
    CHECK(!nj_reserved_try_execute(w.r, &w.tasks[0].task), "accepted after the stop");
}

static void done(void)
{
    if (--w.n_busy == 0 && !w.model->stops)
        stop();
}

static void run(struct nj_task *task)
{
    struct task *t = nj_container_of(task, struct task, task);

    WRITES(t);
    CHECK(t->n_run++ == 0, "a task runs twice"); /* EWYK 5.39 */
    done();
}

static void on_wanted(void *ctx)
{
    (void)ctx;
    atomic_fetch_add_explicit(&w.n_wanted, 1, memory_order_release);
    w.n_calls++;
    relaxed_changed();
}

/* The same test as in the pool, with seq_cst: no thread waits for the queue. */
static bool is_needed(void *ctx)
{
    (void)ctx;
    return atomic_load(&w.needed);
}

static bool a_call(void)
{
    return w.over || w.n_needs || w.n_answered < w.n_calls;
}

static void server(void)
{
    for (;;) {
        relaxed_wait(a_call);
        if (w.over)
            return;
        if (w.n_needs) {
            w.n_needs--;
            atomic_store(&w.needed, false);
            done();
            continue;
        }
        w.n_answered++;
        atomic_fetch_add_explicit(&w.n_wanted, 0, memory_order_acquire);
        w.n_told += nj_reserved_serve(w.r);
    }
}

static void needer(void)
{
    w.n_needs++;
    relaxed_changed();
    atomic_store(&w.needed, true);
    if (nj_reserved_unreserve_one(w.r)) {
        w.n_roused++;
        atomic_store(&w.needed, false);
    }
}

static void giver(unsigned i)
{
    for (uint32_t k = 0; k < w.model->n_each; k++) {
        struct task *t = &w.tasks[i * w.model->n_each + k];
        WRITES(t);
        w.n_busy++;
        t->accepted = nj_reserved_try_execute(w.r, &t->task);
        if (!t->accepted)
            done();
    }
    done();
}

static void thread(unsigned i)
{
    const struct model *m = w.model;

    if (i < m->n_servers)
        server();
    else if (i < m->n_servers + m->n_givers)
        giver(i - m->n_servers);
    else if (m->needs)
        needer();
    else
        stop();
}

static void begin(const struct relaxed_world *world)
{
    static const struct nj_task_ops ops = {run, NULL};
    const struct model *m = world->model;
    struct nj_reserved_config config = {.capacity = m->capacity,
                                        .n_min = m->n_min,
                                        .idle_ns = m->idle_ns,
                                        .wanted = on_wanted,
                                        .is_needed = is_needed};

    nj_reserved_free(w.r);
    memset(&w, 0, sizeof w);
    w.model = m;
    for (uint32_t i = 0; i < TASKS_MAX; i++)
        w.tasks[i].task.ops = &ops;
    atomic_init(&w.n_wanted, 0);
    atomic_init(&w.needed, false);
    w.n_busy = m->n_givers + m->needs;
    w.r = nj_reserved_new(&config);
    for (uint32_t i = 0; i < m->capacity; i++)
        nj_reserved_try_execute(w.r, NULL); /* a handover without a reserved thread requests one */
}

static void end(void)
{
    uint32_t n_reserved, n_wanted;

    for (uint32_t i = 0; i < TASKS_MAX; i++) /* EWYK 5.39, EWYK 5.40 */
        CHECK(w.tasks[i].n_run == w.tasks[i].accepted, "an accepted task does not run");
    nj_reserved_count_and_wanted(w.r, &n_reserved, &n_wanted);
    CHECK(!n_reserved, "a seat is taken"); /* EWYK 5.42 */
    CHECK(w.n_roused == w.n_told, "a roused thread does not return that");
}

#define MODEL(...)                                                                                 \
    begin, thread, end, &(const struct model)                                                      \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

const struct relaxed_world relaxed_reserved_worlds[] = {
    {"reserved: one seat", 3,
     MODEL(.n_servers = 1, .n_givers = 2, .n_each = 2, .capacity = 1, .n_min = 1,
           .idle_ns = NJ_NEVER)},
    {"reserved: two seats", 4,
     MODEL(.n_servers = 2, .n_givers = 2, .n_each = 2, .capacity = 2, .n_min = 1,
           .idle_ns = NJ_NEVER)},
    {"reserved: idle", 4,
     MODEL(.n_servers = 2, .n_givers = 2, .n_each = 2, .capacity = 2, .n_min = 0, .idle_ns = 1)},
    {"reserved: idle, one stays", 4,
     MODEL(.n_servers = 2, .n_givers = 2, .n_each = 2, .capacity = 2, .n_min = 1, .idle_ns = 1)},
    {"reserved: stopped", 4,
     MODEL(.n_servers = 2, .n_givers = 1, .n_each = 2, .capacity = 2, .n_min = 1,
           .idle_ns = NJ_NEVER, .stops = true)},
    {"reserved: roused", 2,
     MODEL(.n_servers = 1, .capacity = 1, .n_min = 1, .idle_ns = NJ_NEVER, .needs = true)},
    {"reserved: roused or given a task", 4,
     MODEL(.n_servers = 2, .n_givers = 1, .n_each = 2, .capacity = 2, .n_min = 1,
           .idle_ns = NJ_NEVER, .needs = true)},
    {0},
};
