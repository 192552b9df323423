/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Strategies of threads: callers with tasks, a pool thread for queued tasks, and a reserved thread.
 * The code of lib/strategy is unchanged: strategy_state.c, the strategies, and reserved_threads.c.
 *
 * The next producer must find tasks that a caller queued before it requested production, and see
 * the writes of the previous producer: only the state word orders them. Therefore tasks are queued
 * by relaxed stores, and the producers' data is plain memory.
 */
#include <string.h>

#include "reference/strategies.h"
#include "relaxed.h"
#include "sched/fiber.h"
#include "strategy/reserved_threads.h"
#include "strategy/strategy_thread_context.h"

#define TASKS_MAX 4u
#define JOBS_MAX  8u

enum how { DISPATCH, PRODUCE, STOP, RESTART };

struct model {
    enum nj_strategy_kind kind;
    enum nj_task_type type;  /* of all tasks */
    enum how how[TASKS_MAX]; /* action of caller i with its own task */
    uint32_t n_callers, n_pool, n_reserved;
    uint32_t n_refusals; /* number of times that the executor may refuse */
    bool queued_before;  /* all tasks are queued when the callers begin */
    bool first_waits;    /* task 0 blocks until all others have run */
    bool says;           /* the producer reports whether it has more */
    bool brings;         /* task 0 adds one more, and only its consumer requests production */
    bool keeps_two;
};

struct task {
    struct nj_task task;
    _Atomic bool queued;
    bool taken; /* by a producer */
    uint8_t n_run, n_rejected;
};

struct job {
    _Atomic uintptr_t task;
};

/* The strategy's recruit, in a task that reports its end. */
struct recruit {
    struct nj_task task, *is;
};

static struct {
    const struct model *model;
    struct nj_producer producer;
    struct nj_executor executor;
    union {
        struct nj_strategy strategy;
        struct nj_dual dual;
    };
    struct nj_reserved *reserved;
    struct task tasks[TASKS_MAX];
    struct job jobs[JOBS_MAX];
    struct recruit recruits[JOBS_MAX];
    uint32_t n_jobs, n_taken_jobs, n_recruits;
    _Atomic uint32_t n_wanted;    /* orders the call of wanted() before the thread that it starts */
    uint32_t n_calls, n_answered; /* of wanted() */
    uint32_t n_busy;              /* work in progress, see starts() and done() */
    uint32_t n_refusals;
    uint32_t production; /* represents all data of producers */
    bool producing, stopped, restarted, over;
    uint8_t n_on_stopped;
} w;

/* --- tasks ------------------------------------------------------------------------------------ */

/* The owner of a dual strategy stops it when all tasks have run, as its recruits end only then. */
static bool stops_at_the_end(void)
{
    return w.model->kind == NJ_STRATEGY_DUAL && w.model->how[w.model->n_callers - 1] != STOP;
}

/* The run ends when all are done: callers, jobs and recruits; or callers and tasks. */
static void done(void)
{
    if (--w.n_busy)
        return;
    w.over = true;
    relaxed_changed();
    if (w.reserved)
        nj_reserved_stop(w.reserved);
    if (stops_at_the_end())
        nj_reference_stop(&w.strategy);
}

static uint32_t n_tasks(void)
{
    return w.model->n_callers + w.model->brings;
}

static struct task *task_of(struct nj_task *task)
{
    return nj_container_of(task, struct task, task);
}

static enum nj_task_type type_of(const struct nj_task *task)
{
    (void)task;
    return w.model->type;
}

static struct nj_task *produce(struct nj_producer *p)
{
    struct task *found = NULL;

    (void)p;
    CHECK(!w.producing, "two threads produce"); /* EWYK 5.1 */
    w.producing = true;
    WRITES(&w.production); /* EWYK 5.2 */
    for (uint32_t i = 0; i < TASKS_MAX && !found; i++)
        if (!w.tasks[i].taken && atomic_load_explicit(&w.tasks[i].queued, memory_order_relaxed))
            found = &w.tasks[i];
    w.producing = false;
    if (!found)
        return NULL;
    found->taken = true;
    WRITES(found); /* by the producer, before it is consumed */
    return &found->task;
}

static bool has_more(struct nj_producer *p)
{
    (void)p;
    for (uint32_t i = 0; i < TASKS_MAX; i++)
        if (!w.tasks[i].taken && atomic_load_explicit(&w.tasks[i].queued, memory_order_relaxed))
            return true;
    return false;
}

static bool others_ran(void)
{
    for (uint32_t i = 1; i < w.model->n_callers; i++)
        if (!w.tasks[i].n_run)
            return false;
    return true;
}

static void run(struct nj_task *task)
{
    struct task *t = task_of(task);

    WRITES(t);
    CHECK(t->n_run++ == 0 && !t->n_rejected, "a task runs twice"); /* EWYK 5.3 */
    relaxed_changed();
    if (w.model->first_waits && t == w.tasks)
        relaxed_wait(others_ran); /* EWYK 5.9 */
    if (w.model->brings && t == w.tasks)
        atomic_store_explicit(&w.tasks[w.model->n_callers].queued, true, memory_order_relaxed);
    if (stops_at_the_end())
        done();
}

static void reject(struct nj_task *task)
{
    struct task *t = task_of(task);

    WRITES(t);
    CHECK(t->n_rejected++ == 0 && !t->n_run, "a task is rejected twice"); /* EWYK 5.49 */
    if (stops_at_the_end())
        done();
}

/* --- the executor ----------------------------------------------------------------------------- */

static bool execute(struct nj_executor *e, struct nj_task *task)
{
    struct job *job = &w.jobs[w.n_jobs];

    (void)e;
    if (w.n_refusals && relaxed_choose(2)) {
        w.n_refusals--;
        return false;
    }
    CHECK(w.n_jobs < JOBS_MAX, "more jobs than there is room for");
    w.n_jobs++;
    w.n_busy += !stops_at_the_end();
    atomic_store_explicit(&job->task, (uintptr_t)task, memory_order_release);
    relaxed_changed();
    return true;
}

static bool a_job(void)
{
    return w.over || w.n_taken_jobs < w.n_jobs;
}

static void pool_thread(void)
{
    for (;;) {
        relaxed_wait(a_job);
        if (w.n_taken_jobs == w.n_jobs)
            return;
        struct job *job = &w.jobs[w.n_taken_jobs++];
        uintptr_t task;
        while (!(task = atomic_exchange_explicit(&job->task, 0, memory_order_acquire)))
            ;
        nj__run_task_in_clean_state((struct nj_task *)task);
        if (!stops_at_the_end())
            done();
    }
}

static void run_recruit(struct nj_task *task)
{
    struct recruit *r = nj_container_of(task, struct recruit, task);

    READS(r);
    r->is->ops->run(r->is);
    done();
}

static bool try_execute(struct nj_executor *e, struct nj_task *task)
{
    static const struct nj_task_ops ops = {run_recruit, NULL};
    struct recruit *r = &w.recruits[w.n_recruits];

    (void)e;
    if (!w.reserved)
        return false;
    CHECK(w.n_recruits < JOBS_MAX, "more recruits than there is room for");
    w.n_recruits++;
    w.n_busy++;
    WRITES(r);
    r->task.ops = &ops;
    r->is = task;
    bool accepted = nj_reserved_try_execute(w.reserved, &r->task);
    w.n_busy -= !accepted; /* the caller counts too: the run has not ended */
    return accepted;
}

static void on_wanted(void *ctx)
{
    (void)ctx;
    atomic_fetch_add_explicit(&w.n_wanted, 1, memory_order_release);
    w.n_calls++;
    relaxed_changed();
}

static bool a_call(void)
{
    return w.over || w.n_answered < w.n_calls;
}

static void reserved_thread(void)
{
    for (;;) {
        relaxed_wait(a_call);
        if (w.over)
            return;
        w.n_answered = w.n_calls;
        atomic_fetch_add_explicit(&w.n_wanted, 0, memory_order_acquire);
        nj_reserved_serve(w.reserved);
    }
}

/* --- the world -------------------------------------------------------------------------------- */

static bool restarts(void)
{
    return w.model->how[w.model->n_callers - 1] == RESTART;
}

static void on_stopped(void *ctx)
{
    (void)ctx;
    if (!restarts())
        WRITES(&w.production); /* like the thread that frees the producer, after all its work */
    w.n_on_stopped++;
    relaxed_changed();
}

static bool has_stopped(void)
{
    return w.n_on_stopped;
}

static bool has_restarted(void)
{
    return w.restarted;
}

static void owner(void)
{
    nj_reference_stop(&w.strategy);
    w.stopped = true;
    relaxed_changed();
    if (!restarts())
        return;
    relaxed_wait(has_stopped);
    while (!nj_reference_restart(&w.strategy))
        ;
    w.restarted = true;
    relaxed_changed();
}

static void bring(struct task *t, enum how how)
{
    bool (*ask)(struct nj_strategy *) =
        how == DISPATCH ? nj_reference_produce_elsewhere : nj_reference_produce;

    atomic_store_explicit(&t->queued, true, memory_order_relaxed);
    while (!ask(&w.strategy))
        if (restarts())
            relaxed_wait(has_restarted);
        else if (w.stopped)
            return;
}

static void caller(unsigned i)
{
    enum how how = w.model->how[i];

    if (how == STOP || how == RESTART)
        owner();
    else
        bring(&w.tasks[i], how);
    done();
}

static void thread(unsigned i)
{
    const struct model *m = w.model;

    if (i < m->n_callers)
        caller(i);
    else if (i < m->n_callers + m->n_pool)
        pool_thread();
    else
        reserved_thread();
}

static void begin(const struct relaxed_world *world)
{
    static const struct nj_executor_ops executor_ops = {.execute = execute,
                                                        .try_execute = try_execute};
    static const struct nj_task_ops task_ops = {run, reject};
    const struct model *m = world->model;
    struct nj_strategy_config config = {.consume = nj_strategies[m->kind].consume,
                                        .producer = &w.producer,
                                        .executor = &w.executor,
                                        .type_of = type_of,
                                        .asks_after_run = m->brings,
                                        .on_stopped = on_stopped};
    struct nj_reserved_config seats = {
        .capacity = m->n_reserved, .n_min = 1, .idle_ns = NJ_NEVER, .wanted = on_wanted};

    nj_reserved_free(w.reserved);
    memset(&w, 0, sizeof w);
    w.model = m;
    w.dual.keeps_two = m->keeps_two;
    w.producer.produce = produce;
    w.producer.has_more = m->says ? has_more : NULL;
    w.executor.ops = &executor_ops;
    w.n_refusals = m->n_refusals;
    w.n_busy = m->n_callers + (stops_at_the_end() ? n_tasks() : 0);
    nj_reference_init(&w.strategy, &config);
    atomic_init(&w.strategy.stopped, false);
    for (size_t i = 0; i < NJ_STRATEGY_N_COUNTERS; i++)
        atomic_init(&w.strategy.counts[i], 0);
    for (int seat = 0; seat < NJ__N_SEATS; seat++)
        atomic_init(&w.dual.n_wakes[seat], 0);
    for (uint32_t i = 0; i < TASKS_MAX; i++) {
        w.tasks[i].task.ops = &task_ops;
        atomic_init(&w.tasks[i].queued, m->queued_before && i < m->n_callers);
    }
    for (uint32_t i = 0; i < JOBS_MAX; i++)
        atomic_init(&w.jobs[i].task, 0);
    atomic_init(&w.n_wanted, 0);
    if (m->n_reserved) {
        w.reserved = nj_reserved_new(&seats);
        nj_reserved_try_execute(w.reserved, NULL); /* a miss requests a thread */
    }
}

static void end(void)
{
    uint32_t word = atomic_load(&w.strategy.word);

    if (w.stopped || stops_at_the_end())
        CHECK(w.n_on_stopped == 1, "not stopped exactly once"); /* EWYK 5.51 */
    if (w.stopped)
        return;
    for (uint32_t i = 0; i < n_tasks(); i++)
        CHECK(w.tasks[i].n_run + w.tasks[i].n_rejected == 1, "a task is left"); /* EWYK 5.10 */
    if (!stops_at_the_end())
        CHECK(word == nj__state_pack(NJ__STATE_IDLE, NJ__RECRUIT_NONE),
              "not IDLE at the end"); /* EWYK 5.17 */
}

#define MODEL(...)                                                                                 \
    begin, thread, end, &(const struct model)                                                      \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

const struct relaxed_world relaxed_strategy_worlds[] = {
    {"one after the other", 2,
     MODEL(.kind = NJ_STRATEGY_PC, .type = NJ_NON_BLOCKING, .how = {PRODUCE, PRODUCE},
           .n_callers = 2, .queued_before = true)},
    {"two producers", 2,
     MODEL(.kind = NJ_STRATEGY_PC, .type = NJ_NON_BLOCKING, .how = {PRODUCE, PRODUCE},
           .n_callers = 2)},
    {"one dispatcher", 3,
     MODEL(.kind = NJ_STRATEGY_PC, .type = NJ_NON_BLOCKING, .how = {PRODUCE, DISPATCH},
           .n_callers = 2, .n_pool = 1)},
    {"two dispatchers", 3,
     MODEL(.kind = NJ_STRATEGY_PEC, .type = NJ_BLOCKING, .how = {DISPATCH, DISPATCH},
           .n_callers = 2, .n_pool = 1)},
    {"refused recruits", 4,
     MODEL(.kind = NJ_STRATEGY_PC, .type = NJ_NON_BLOCKING, .how = {DISPATCH, DISPATCH, PRODUCE},
           .n_callers = 3, .n_pool = 1, .n_refusals = 2)},
    {"epc", 3,
     MODEL(.kind = NJ_STRATEGY_EPC, .type = NJ_BLOCKING, .how = {PRODUCE, PRODUCE}, .n_callers = 2,
           .n_pool = 1)},
    {"epc, refused recruits", 3,
     MODEL(.kind = NJ_STRATEGY_EPC, .type = NJ_BLOCKING, .how = {PRODUCE, DISPATCH}, .n_callers = 2,
           .n_pool = 1, .n_refusals = 2)},
    {"adaptive, no reserved thread", 3,
     MODEL(.kind = NJ_STRATEGY_ADAPTIVE, .type = NJ_EITHER, .how = {PRODUCE, PRODUCE, PRODUCE},
           .n_callers = 3)},
    {"adaptive", 5,
     MODEL(.kind = NJ_STRATEGY_ADAPTIVE, .type = NJ_EITHER, .how = {PRODUCE, PRODUCE, DISPATCH},
           .n_callers = 3, .n_pool = 1, .n_reserved = 1)},
    {"adaptive, first waits", 5,
     MODEL(.kind = NJ_STRATEGY_ADAPTIVE, .type = NJ_BLOCKING, .how = {PRODUCE, PRODUCE},
           .n_callers = 2, .n_pool = 2, .n_reserved = 1, .first_waits = true)},
    {"adaptive, nothing more", 5,
     MODEL(.kind = NJ_STRATEGY_ADAPTIVE, .type = NJ_BLOCKING, .how = {PRODUCE, PRODUCE, DISPATCH},
           .n_callers = 3, .n_pool = 2, .says = true)},
    {"epc, a task adds another", 4,
     MODEL(.kind = NJ_STRATEGY_EPC, .type = NJ_BLOCKING, .how = {PRODUCE, PRODUCE}, .n_callers = 2,
           .n_pool = 2, .brings = true)},
    {"stopped", 3,
     MODEL(.kind = NJ_STRATEGY_PC, .type = NJ_NON_BLOCKING, .how = {PRODUCE, PRODUCE, STOP},
           .n_callers = 3, .queued_before = true)},
    {"stopped, adaptive", 4,
     MODEL(.kind = NJ_STRATEGY_ADAPTIVE, .type = NJ_EITHER, .how = {PRODUCE, DISPATCH, STOP},
           .n_callers = 3, .n_pool = 1)},
    {"restarted", 3,
     MODEL(.kind = NJ_STRATEGY_PC, .type = NJ_NON_BLOCKING, .how = {PRODUCE, PRODUCE, RESTART},
           .n_callers = 3)},
    {"dual", 5,
     MODEL(.kind = NJ_STRATEGY_DUAL, .type = NJ_BLOCKING, .how = {DISPATCH, DISPATCH},
           .n_callers = 2, .n_pool = 3)},
    {"dual, two stay", 5,
     MODEL(.kind = NJ_STRATEGY_DUAL, .type = NJ_BLOCKING, .how = {DISPATCH, DISPATCH},
           .n_callers = 2, .n_pool = 3, .keeps_two = true)},
    {"dual, two stay, which produces", 5,
     MODEL(.kind = NJ_STRATEGY_DUAL, .type = NJ_EITHER, .how = {PRODUCE, DISPATCH}, .n_callers = 2,
           .n_pool = 3, .keeps_two = true)},
    {"dual, stopped", 5,
     MODEL(.kind = NJ_STRATEGY_DUAL, .type = NJ_BLOCKING, .how = {DISPATCH, DISPATCH, STOP},
           .n_callers = 3, .n_pool = 2, .keeps_two = true)},
    {0},
};
