/* SPDX-License-Identifier: BSD-3-Clause */
/* The pool of threads with its reserve: threads that call each of its functions, tasks that may
 * block endlessly, threads that are idle for too long or cannot be created, and a stop.
 *
 * The pool and its allocations are in the memory of the world, all bytes of which count as state.
 */
#include <stdlib.h>
#include <string.h>

#include "models.h"
#include "system.h"

#define aligned_alloc(alignment, n_bytes) explore_alloc(n_bytes)
#define calloc(n, n_bytes)                explore_alloc((n) * (n_bytes))
#define free(memory)                      ((void)(memory))
#include "strategy/thread_pool.c" /* for its queue and counts */

enum { PLACE_BLOCKED = EXPLORE_N_PLACES, PLACE_CALL, PLACE_WARM };

struct model_task {
    struct nj_task task;
    bool accepted, refused;
    uint8_t n_begun, n_run, n_rejected;
};

static struct {
    const struct model_pool *model;
    struct nj_thread_pool *pool;
    struct model_task tasks[MODEL_CALLS_MAX];
    uint8_t n_blocked;
    bool stopped; /* nj_thread_pool_stop() has returned */
} w;

static void check(bool is, const char *what)
{
    if (!is)
        explore_fail("%s", what);
}

/* --- a pool ----------------------------------------------------------------------------------- */

/* A thread waits on a seat. */
static bool is_warm(void *arg)
{
    const struct nj_thread_pool *p = arg;

    return model_reserved_waiting(p->reserved) > 0;
}

struct nj_thread_pool *model_threads_start(const struct model_threads *m)
{
    struct nj_thread_pool_config config = {.n_min = m->n_min,
                                           .n_max = m->n_max,
                                           .n_reserved = m->n_seats,
                                           .idle_ns = m->n_timeouts ? 1 : NJ_NEVER};
    struct nj_thread_pool *p = nj_thread_pool_start(&config, NULL, 0);
    struct nj_task nothing = {0};

    check(p != NULL, "the pool does not start");
    if (m->is_warm) { /* the miss makes the pool reserve a thread */
        check(!p->executor.ops->try_execute(&p->executor, &nothing),
              "a thread is reserved before the first miss");
        explore_wait(is_warm, p, PLACE_WARM);
    }
    explore_system((struct explore_system){m->n_timeouts, m->n_early, m->n_no_threads});
    return p;
}

static void check_counts(const struct nj_thread_pool *p)
{
    uint32_t n_queued = 0;

    for (const struct nj_task *task = p->first; task; task = task->next)
        n_queued++;
    check(n_queued == p->n_queued, "the queue and its count differ");
    check(p->n_threads <= p->config.n_max && p->n_idle <= p->n_threads, "too many threads");
    check(p->n_serving < p->config.n_max, "no thread is left to the queue"); /* EWYK 5.47 */
    check(p->n_called <= p->n_threads, "more threads are called than there are");
}

uint64_t model_threads_hash(const struct nj_thread_pool *p)
{
    if (p)
        check_counts(p);
    return explore_mix(explore_hash_arena(), (uintptr_t)p);
}

/* Check that no task waits while a thread could run it: an idle one, a reserved one, or one that
 * could be created. */
void model_threads_end(const struct nj_thread_pool *p, unsigned n_blocked)
{
    uint32_t n_reserved, n_wanted;
    bool waits = p->first || atomic_load(&p->inbox);

    nj_reserved_count_and_wanted(p->reserved, &n_reserved, &n_wanted);
    check(!waits || p->n_idle == 0, "a task waits while a thread is idle");
    check(!waits || n_reserved == 0, "a task waits while a thread is reserved");
    check(!waits || n_blocked == p->config.n_max || !explore_system_is_whole(),
          "a task waits, and a thread could be made");
    check(!waits || p->n_threads > 0, "a task waits, and there is no thread");
    check(!n_wanted || !p->n_idle || !may_serve(p), "a thread is wanted while one is idle");
    check(p->n_called == 0, "a thread was called and has not come");
    check(p->n_threads == p->n_idle + n_reserved + n_blocked, "threads are lost");
}

/* --- tasks ------------------------------------------------------------------------------------ */

static struct model_task *model_task_of(struct nj_task *task)
{
    return nj_container_of(task, struct model_task, task);
}

/* Whether one thread runs the tasks that one caller posted in their order. */
static bool in_turn(const struct model_task *t)
{
    const struct model_pool *m = w.model;
    unsigned i = (unsigned)(t - w.tasks);

    return m->threads.n_max > 1 || i % m->n_each == 0 || m->calls[i] != MODEL_POST ||
           m->calls[i - 1] != MODEL_POST || !t[-1].accepted || t[-1].n_begun;
}

static void run_task(struct nj_task *task)
{
    struct model_task *t = model_task_of(task);

    explore_note("runs task %ld", (long)(t - w.tasks));
    check(t->n_begun++ == 0 && !t->n_rejected, "a task runs twice"); /* EWYK 5.3 */
    check(!t->refused, "a refused task runs");                       /* EWYK 5.40 */
    check(!w.stopped, "a task runs after the stop");
    check(in_turn(t), "a task overtakes the one that the same caller posted before");
    if (explore_choose(2)) {
        explore_note("task %ld blocks endlessly", (long)(t - w.tasks));
        w.n_blocked++;
        explore_wait(NULL, NULL, PLACE_BLOCKED);
    }
    t->n_run++;
}

static void reject_task(struct nj_task *task)
{
    struct model_task *t = model_task_of(task);

    explore_note("task %ld is rejected", (long)(t - w.tasks));
    check(t->n_rejected++ == 0 && !t->n_begun, "a task is rejected twice"); /* EWYK 5.49 */
    check(!t->refused, "a refused task is rejected");
}

/* --- callers ---------------------------------------------------------------------------------- */

static bool give(enum model_call call, struct nj_task *task)
{
    struct nj_executor *e = nj_thread_pool_executor(w.pool);

    switch (call) {
    case MODEL_EXECUTE:
        return e->ops->execute(e, task);
    case MODEL_TRY:
        return e->ops->try_execute(e, task);
    case MODEL_POST:
        return e->ops->post(e, task);
    case MODEL_STOP_POOL:
        break;
    }
    explore_note("stops the pool");
    nj_thread_pool_stop(w.pool);
    w.stopped = true;
    explore_note("has stopped it");
    return false;
}

static void call(struct model_task *t)
{
    static const char *const names[] = {"executes", "tries", "posts", "stops"};
    enum model_call how = w.model->calls[t - w.tasks];
    bool accepted = give(how, &t->task);

    if (how == MODEL_STOP_POOL)
        return;
    explore_note("%s task %ld: %s", names[how], (long)(t - w.tasks),
                 accepted ? "accepted" : "refused");
    t->accepted = accepted;
    t->refused = !accepted;
    check(accepted || t->n_begun + t->n_rejected == 0, "a refused task runs or is rejected");
}

static void caller(void *arg)
{
    struct model_task *t = arg;

    for (unsigned i = 0; i < w.model->n_each; i++) {
        explore_step(PLACE_CALL, i);
        call(&t[i]);
    }
}

static void starter(void *arg)
{
    const struct model_pool *m = arg;

    w.pool = model_threads_start(&m->threads);
    for (unsigned i = 0; i < m->n_calls; i += m->n_each)
        explore_start(caller, &w.tasks[i], 0);
}

/* --- the world -------------------------------------------------------------------------------- */

static void begin(void *ctx)
{
    static const struct nj_task_ops ops = {run_task, reject_task};
    const struct model_pool *m = ctx;

    w.model = m;
    explore_system_begin();
    for (unsigned i = 0; i < MODEL_CALLS_MAX; i++)
        w.tasks[i].task.ops = &ops;
    explore_start(starter, (void *)(uintptr_t)m, 0);
}

static uint64_t hash(const void *ctx)
{
    uint64_t h = explore_mix(model_threads_hash(w.pool), w.stopped);

    (void)ctx;
    for (unsigned i = 0; i < w.model->n_calls; i++) {
        const struct model_task *t = &w.tasks[i];
        h = explore_mix(h, (uintptr_t)t->task.next);
        h = explore_mix(h, (uint64_t)t->n_begun << 24 | (uint64_t)t->n_run << 16 |
                               (uint64_t)t->n_rejected << 8 | (uint64_t)t->accepted << 1 |
                               t->refused);
    }
    return h;
}

static bool is_in(const struct nj_task *first, const struct nj_task *task)
{
    while (first && first != task)
        first = first->next;
    return first;
}

/* Check that an accepted task has begun, was rejected or waits, and that a refused task does not
 * wait. */
static void check_none_is_lost(const struct nj_thread_pool *p)
{
    for (unsigned i = 0; i < w.model->n_calls; i++) {
        const struct model_task *t = &w.tasks[i];
        bool waits = is_in(p->first, &t->task) || is_in(atomic_load(&p->inbox), &t->task);
        check(t->n_begun + t->n_rejected + waits == t->accepted,
              t->accepted ? "an accepted task is lost" : "a refused task waits");
    }
}

static void on_end(void *ctx)
{
    const struct model_pool *m = ctx;
    struct nj_thread_pool *p = w.pool;
    bool stops = false;

    for (unsigned i = 0; i < m->n_calls; i++)
        stops |= m->calls[i] == MODEL_STOP_POOL;
    for (unsigned i = 0; i < m->n_calls; i++) {
        const struct model_task *t = &w.tasks[i];
        if (m->calls[i] == MODEL_STOP_POOL)
            continue;
        check(t->accepted || t->refused, "a caller is stuck");
        check(!t->accepted || m->calls[i] != MODEL_TRY || t->n_begun,
              "an accepted task does not begin"); /* EWYK 5.39 */
        check(!t->accepted || (!w.n_blocked && explore_system_is_whole()) || !w.stopped ||
                  t->n_begun + t->n_rejected == 1,
              "an accepted task is neither run nor rejected"); /* EWYK 5.42 */
    }
    check_none_is_lost(p);
    if (!stops)
        model_threads_end(p, w.n_blocked);
    else if (!w.n_blocked)
        check(w.stopped && p->n_threads == 0, "a thread stays after the stop");
}

struct explore_result model_pool(const struct model_pool *m, uint64_t states_max)
{
    struct explore_world world = {.begin = begin,
                                  .hash = hash,
                                  .end = on_end,
                                  .ctx = (void *)(uintptr_t)m,
                                  .memory = &w,
                                  .n_memory = sizeof w,
                                  .by_stack = true,
                                  .must_fail = m->must_fail};
    return explore(&world, states_max);
}
