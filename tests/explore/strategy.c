/* SPDX-License-Identifier: BSD-3-Clause */
/* A strategy with threads that add tasks, reserved threads, and a queue that may refuse. The queue
 * finds a thread in the end, or has a limited number of threads; when these block endlessly, it
 * runs no more tasks. A consumer that may block may do so endlessly. A thread may stop the
 * strategy, and restart it.
 *
 * The checks are in check() and on_end(), each with the sentence of docs/ewyk.md. */
#include <stdio.h>
#include <string.h>

#include "explore.h"
#include "models.h"
#include "base/interleaving_points.h"
#include "sched/fiber.h"
#include "reference/frames.h"
#include "strategy/strategy_thread_context.h"
#include "strategy/thread_pool.h"
#include "system.h"

#define TASKS_MAX 8u

enum {
    PLACE_IN_PRODUCE = EXPLORE_N_PLACES,
    PLACE_STUCK,
    PLACE_RUN,
    PLACE_NEXT,
    PLACE_STOPPED,
    PLACE_AGAIN,
    PLACE_HAS_MORE
};
enum { ROLE_EVENT = 1, ROLE_STARTER, ROLE_RESERVED, ROLE_QUEUE, ROLE_TASK };
enum { KNOWS_OWNER = 1 }; /* its task contains the rest */

struct task {
    struct nj_task task;
    const struct model_event *event;
    bool is_child;
    bool by_produce; /* the caller that added it called nj_reference_produce() from outside */
    uint8_t n_run, n_rejected;
};

static struct {
    const struct model_strategy *model;
    struct nj_producer producer;
    struct nj_executor executor;
    union {
        struct nj_strategy strategy;
        struct nj_dual dual;
    };
    struct task tasks[TASKS_MAX];
    uint8_t n_tasks, queue[TASKS_MAX], head, tail;
    uint8_t n_unfinished; /* produced, and neither run nor rejected */
    uint8_t n_waiting;    /* reserved threads without a task */
    uint8_t n_rejects;    /* the executor may still refuse so often */
    uint8_t n_late_rejects;
    uint8_t n_free;   /* threads of the pool without a task, where it has a bound */
    uint8_t n_behind; /* tasks that wait for one of them */
    struct nj_task *behind[TASKS_MAX];
    bool producing;            /* a thread is inside produce() */
    bool queued_out, sure_out; /* recruits that the executor has and that have not begun */
    bool may_stop, may_restart, stopped;
    bool restarted, lost; /* lost: a recruit was rejected after it had been accepted */
    uint8_t n_on_stopped;
    struct nj_thread_pool *pool;       /* where the model has one */
    uint8_t n_blocked, n_pool_blocked; /* blocked threads; those of the pool */
} w;

static struct task *task_of(struct nj_task *task)
{
    return (struct task *)((char *)task - offsetof(struct task, task));
}

static enum nj_task_type type_of(const struct nj_task *task)
{
    return task_of((struct nj_task *)(uintptr_t)task)->event->type;
}

static void check(bool is, const char *what)
{
    if (!is)
        explore_fail("%s", what);
}

/* The local knowledge of a thread that is about to use a task. */
static uint64_t what_of(const struct task *t)
{
    return !t->event ? 0
                     : (uint64_t)t->event->type << 8 | (uint64_t)t->event->brings << 3 |
                           (uint64_t)t->is_child << 2 | (uint64_t)t->by_produce << 1;
}

/* --- the producer ----------------------------------------------------------------------------- */

static void enqueue(const struct model_event *event, bool is_child)
{
    struct task *t = &w.tasks[w.n_tasks];

    t->event = event;
    t->is_child = is_child;
    t->by_produce = !is_child && event->how != MODEL_DISPATCH;
    w.queue[w.tail++] = w.n_tasks++;
}

static bool has_task(void)
{
    return w.head < w.tail && !(w.model->one_at_a_time && w.n_unfinished);
}

static bool has_more(struct nj_producer *p)
{
    (void)p;
    explore_step(PLACE_HAS_MORE, 0);
    return has_task();
}

static struct nj_task *produce(struct nj_producer *p)
{
    (void)p;
    check(!w.producing, "two threads produce"); /* EWYK 5.1 */
    check(nj__state_production(atomic_load(&w.strategy.word)) != NJ__STATE_IDLE,
          "produces while IDLE"); /* EWYK 5.8 */
    for (const struct nj__frame *f = nj__strategy_frame_top(); f; f = f->below)
        check(f->of != &w.strategy, "produces in the middle of a task");
    w.producing = true;
    explore_step(PLACE_IN_PRODUCE, 0);
    w.producing = false;
    if (!has_task())
        return NULL;
    struct task *t = &w.tasks[w.queue[w.head++]];
    w.n_unfinished++;
    explore_add_knowledge(what_of(t));
    explore_note("produces task %ld", (long)(t - w.tasks));
    return &t->task;
}

/* --- tasks ------------------------------------------------------------------------------------ */

static bool is_alive(void *arg)
{
    (void)arg;
    return atomic_load(&w.strategy.n_refs) && !atomic_load(&w.strategy.stopped);
}

static void bring(const struct model_event *event, bool dispatch)
{
    /* A refused caller has to request again, as the contract requires. */
    while (!(dispatch ? nj_reference_produce_elsewhere(&w.strategy)
                      : nj_reference_produce(&w.strategy))) {
        if (w.may_stop && !w.may_restart)
            return;
        if (w.may_restart)
            explore_wait(is_alive, NULL, PLACE_AGAIN + (uint64_t)dispatch);
    }
}

static void run(struct nj_task *task)
{
    struct task *t = task_of(task);
    bool tagged = nj_noblock_is_set();
    struct nj__frame frame;

    nj__frame_push(&frame, &w.strategy); /* also of a task that the pool runs */
    explore_note("runs task %ld%s", (long)(t - w.tasks), tagged ? ", must not block" : "");
    check(t->n_run++ == 0 && !t->n_rejected, "a task runs twice"); /* EWYK 5.3 */
    bool keeps_tag = w.model->kind == NJ_STRATEGY_PC || w.model->kind == NJ_STRATEGY_EPC;
    check(t->event->type == NJ_EITHER || tagged == (t->event->type == NJ_NON_BLOCKING) ||
              (keeps_tag && tagged),
          "the tag is wrong for this task"); /* EWYK 5.31 */
    bool brings = t->event->brings && !t->is_child;
    if (brings || w.model->one_at_a_time)
        explore_step(PLACE_RUN, 0);
    if (brings) {
        enqueue(t->event, true);
        bring(t->event, false); /* from the middle of a task: becomes a dispatch */
    }
    if (!tagged && w.model->may_block && explore_choose(2)) {
        explore_note("task %ld blocks endlessly", (long)(t - w.tasks));
        w.n_blocked++;
        w.n_pool_blocked += explore_role() == 0;
        explore_wait(NULL, NULL, PLACE_STUCK);
    }
    w.n_unfinished--;
    explore_add_knowledge(0);
    nj__frame_pop(&frame);
}

static void reject(struct nj_task *task)
{
    struct task *t = task_of(task);

    check(t->n_rejected++ == 0 && !t->n_run, "a task is rejected twice"); /* EWYK 5.49 */
    w.n_unfinished--;
    explore_add_knowledge(0);
}

/* --- the executor ----------------------------------------------------------------------------- */

static bool is_recruit(const struct nj_task *task)
{
    return task == &w.strategy.queued_recruit || task == &w.strategy.sure_recruit;
}

static void as_recruit(void *arg)
{
    struct nj_task *task = arg;

    w.sure_out = false;
    task->ops->run(task);
    w.n_waiting++; /* it waits again, unless its task never returns */
}

static void start_from_queue(struct nj_task *task);

static void from_queue(void *arg)
{
    struct nj_task *task = arg;
    bool recruit = is_recruit(task);

    if (recruit)
        w.queued_out = false;
    if (w.n_late_rejects && explore_choose(2)) {
        w.n_late_rejects--;
        w.lost |= recruit;
        explore_note("the executor rejects %s", recruit ? "the recruit" : "a task");
        task->ops->reject(task);
    } else {
        nj__run_task_in_clean_state(task);
        if (!recruit && w.model->one_at_a_time) /* only the strategy's own tasks request again */
            nj_reference_produce_elsewhere(&w.strategy);
    }
    if (!w.model->is_bounded)
        return;
    w.n_free++;
    if (w.n_behind) {
        struct nj_task *next = w.behind[0];
        memmove(w.behind, w.behind + 1, --w.n_behind * sizeof w.behind[0]);
        start_from_queue(next);
    }
}

static uint64_t role_of(const struct nj_task *task)
{
    if (is_recruit(task))
        return ROLE_QUEUE;
    const struct task *t = (const struct task *)((const char *)task - offsetof(struct task, task));
    return explore_mix(ROLE_TASK, what_of(t));
}

/* A thread of the pool has it, now or later or never. */
static void start_from_queue(struct nj_task *task)
{
    if (w.model->is_bounded && !w.n_free) {
        explore_note("all threads of the pool have something to do");
        w.behind[w.n_behind++] = task;
        return;
    }
    w.n_free -= w.model->is_bounded;
    explore_start(from_queue, task, role_of(task));
}

static bool execute(struct nj_executor *e, struct nj_task *task)
{
    (void)e;
    bool recruit = is_recruit(task);

    if (w.n_rejects && explore_choose(2)) {
        w.n_rejects--;
        explore_note("the executor refuses");
        return false;
    }
    explore_note("queues %s", recruit ? "the recruit" : "a task");
    if (recruit && !w.pool) {
        check(!w.queued_out, "two recruits in the queue"); /* EWYK 5.26 */
        w.queued_out = true;
    } else if (!recruit) {
        check(w.model->kind != NJ_STRATEGY_PC && w.model->kind != NJ_STRATEGY_EPC,
              "this strategy queues no task");
        check(type_of(task) == NJ_BLOCKING, "only BLOCKING tasks are queued"); /* EWYK 5.21 */
    }
    if (w.pool) {
        struct nj_executor *pool = nj_thread_pool_executor(w.pool);
        return pool->ops->execute(pool, task);
    }
    start_from_queue(task);
    return true;
}

static bool try_execute(struct nj_executor *e, struct nj_task *task)
{
    (void)e;
    check(explore_knowledge() >> 8 != NJ_NON_BLOCKING,
          "a NON_BLOCKING task recruits"); /* EWYK 5.20 */
    check(!nj_noblock_is_set(), "a context that must not block recruits");
    if (w.pool) {
        struct nj_executor *pool = nj_thread_pool_executor(w.pool);
        return pool->ops->try_execute(pool, task);
    }
    if (!w.n_waiting)
        return false;
    explore_note("sends a reserved thread");
    w.n_waiting--;
    check(!w.sure_out, "two recruits at a time"); /* EWYK 5.26 */
    w.sure_out = true;
    explore_start(as_recruit, task, ROLE_RESERVED);
    return true;
}

/* --- the world -------------------------------------------------------------------------------- */

static void on_stopped(void *ctx)
{
    (void)ctx;
    w.n_on_stopped++;
}

static bool has_stopped(void *arg)
{
    (void)arg;
    return w.n_on_stopped > 0;
}

/* The owner. A thread inside may be stuck, and then the owner waits endlessly, too. */
static void stop(const struct model_event *e)
{
    explore_note("stops it");
    w.stopped = true;
    nj_reference_stop(&w.strategy);
    if (e->how == MODEL_STOP)
        return;
    explore_wait(has_stopped, NULL, PLACE_STOPPED);
    explore_add_knowledge(KNOWS_OWNER);
    check(nj_reference_restart(&w.strategy), "no thread is inside, but it cannot restart");
    explore_add_knowledge(0);
    explore_note("restarted it");
    w.restarted = true;
}

static void event(const struct model_event *e)
{
    if (e->how == MODEL_STOP || e->how == MODEL_RESTART)
        stop(e);
    if (e->how == MODEL_STOP)
        return;
    explore_note("brings task %u", w.n_tasks);
    enqueue(e, false);
    bool before = e->how == MODEL_PRODUCE_TAGGED && nj_noblock_enter();
    bring(e, e->how == MODEL_DISPATCH);
    check(nj_noblock_is_set() == (e->how == MODEL_PRODUCE_TAGGED), "the tag stays"); /* EWYK 5.31 */
    nj_noblock_leave(before);
}

/* Two callers with the same earlier events behave in the same way. */
static uint64_t role_of_caller(const struct model_event *e, unsigned n)
{
    uint64_t role = ROLE_EVENT;

    for (unsigned i = 0; i < n; i++)
        role = explore_mix(role, (uint64_t)e[i].how << 16 | (uint64_t)e[i].type << 8 | e[i].brings);
    return role;
}

static void caller(void *arg)
{
    const struct model_event *e = arg;

    for (unsigned i = 0; i < w.model->n_each; i++) {
        explore_set_role(role_of_caller(&e[i], w.model->n_each - i));
        if (i)
            explore_step(PLACE_NEXT, i);
        event(&e[i]);
    }
}

static void start_callers(void)
{
    const struct model_strategy *m = w.model;

    for (unsigned i = 0; i + m->n_each <= m->n_events; i += m->n_each)
        explore_start(caller, (void *)(uintptr_t)&m->events[i],
                      role_of_caller(&m->events[i], m->n_each));
}

static void starter(void *arg)
{
    (void)arg;
    w.pool = model_threads_start(&w.model->threads);
    start_callers();
}

static void begin(void *ctx)
{
    static const struct nj_executor_ops executor_ops = {.execute = execute,
                                                        .try_execute = try_execute};
    static const struct nj_task_ops task_ops = {run, reject};
    const struct model_strategy *m = ctx;

    w.model = m;
    w.producer.produce = produce;
    w.producer.has_more = m->tells_more ? has_more : NULL;
    w.executor.ops = &executor_ops;
    w.n_waiting = m->n_reserved;
    w.n_rejects = m->n_rejects;
    w.n_late_rejects = m->n_late_rejects;
    w.n_free = m->n_pool;
    for (unsigned i = 0; i < TASKS_MAX; i++)
        w.tasks[i].task.ops = &task_ops;
    for (unsigned i = 0; i < m->n_events; i++)
        if (m->events[i].how >= MODEL_STOP) {
            w.may_stop = true;
            w.may_restart = m->events[i].how == MODEL_RESTART;
        }
    struct nj_strategy_config config = {.consume = nj_strategies[m->kind].consume,
                                        .producer = &w.producer,
                                        .executor = &w.executor,
                                        .type_of = type_of,
                                        .on_stopped = on_stopped,
                                        .asks_after_run = m->asks_after_run};
    w.dual.keeps_two = m->keeps_two;
    explore_system_begin();
    nj_reference_init(&w.strategy, &config);
    if (m->threads.n_max)
        explore_start(starter, NULL, ROLE_STARTER);
    else
        start_callers();
}

static uint64_t hash(const void *ctx)
{
    (void)ctx;
    uint32_t word = atomic_load(&w.strategy.word);
    uint64_t h = explore_mix(word, (uint64_t)w.n_waiting << 32 | w.n_rejects << 24 |
                                       w.producing << 16 | w.sure_out << 9 | w.queued_out << 8 |
                                       w.stopped << 1 | w.restarted << 2 | w.lost << 3);

    check(nj__state_recruit_mask(word) < (w.model->kind == NJ_STRATEGY_DUAL ? 16 : NJ__SEAT_BIT),
          "recruits"); /* EWYK 5.7 */
    for (int seat = 0; seat < NJ__N_SEATS; seat++)
        h = explore_mix(h, atomic_load(&w.dual.n_wakes[seat]));
    check(nj__state_production(word) <= NJ__STATE_REPRODUCING, "the state word");
    check(w.n_on_stopped <= w.stopped, "stopped, but not by its owner, or twice"); /* EWYK 5.51 */
    h = explore_mix(h, (uint64_t)w.n_unfinished << 16 | (uint64_t)w.n_free << 8 | w.n_late_rejects);
    for (unsigned i = 0; i < w.n_behind; i++)
        h = explore_mix(h, role_of(w.behind[i]));
    h = explore_mix(h, (uint64_t)atomic_load(&w.strategy.n_refs) << 1 |
                           atomic_load(&w.strategy.stopped));
    for (unsigned i = w.head; i < w.tail; i++) {
        const struct task *t = &w.tasks[w.queue[i]];
        h = explore_mix(h, what_of(t));
    }
    if (w.model->threads.n_max)
        h = explore_mix(h, model_threads_hash(w.pool));
    return explore_mix(h, w.n_on_stopped);
}

/* Tasks that are neither running nor done nor rejected. */
static unsigned n_left(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < w.n_tasks; i++)
        n += !w.tasks[i].n_run && !w.tasks[i].n_rejected;
    return n;
}

/* After the last reference a thread may only find that there is none. EWYK 5.51 */
static void access(void *ctx, uint64_t place)
{
    (void)ctx;
    if (w.n_on_stopped && !w.restarted && explore_knowledge() != KNOWS_OWNER)
        check(place == NJ__AT_REF_GET, "used after it has stopped");
}

/* A producer is never stuck with a task while another task can be produced, for any pool. But a
 * queued recruit may have to wait endlessly. EWYK 5.9, EWYK 5.12 */
static void on_bounded_end(void)
{
    for (unsigned i = w.head; i < w.tail; i++)
        check(!w.tasks[w.queue[i]].by_produce, "a task is left, though production was called");
    check(!w.sure_out, "a recruit has not come");
    check(w.n_behind == 0 || w.n_free == 0, "a thread of the pool is idle");
    uint32_t seats = nj__state_recruit_mask(atomic_load(&w.strategy.word)) / NJ__SEAT_BIT;
    check(!seats || w.head == w.tail, "a task is left, and a thread sleeps that would produce it");
    check(w.n_blocked || w.model->n_pool <= __builtin_popcount(seats) || n_left() == 0,
          "a task is left, and no thread is stuck");
}

/* On real threads: no thread is idle while a task is left. */
static void on_threads_end(void)
{
    model_threads_end(w.pool, w.n_pool_blocked);
    check(n_left() == 0 || w.n_pool_blocked == w.model->threads.n_max,
          "tasks are left, and a thread is idle");
    for (unsigned i = w.head; i < w.tail; i++)
        check(!w.tasks[w.queue[i]].by_produce, "a task is left, though production was called");
}

/* It was stopped and everybody has left, and perhaps it was begun anew. EWYK 5.51, EWYK 5.52 */
static void on_stopped_end(void)
{
    uint32_t n_refs = atomic_load(&w.strategy.n_refs);

    check(w.n_on_stopped == 1, "not stopped exactly once");
    check(n_refs == w.restarted, "references are left");
    check(!w.restarted || w.lost || n_left() == 0, "tasks are left without a thread");
}

static void on_end(void *ctx)
{
    const struct model_strategy *m = ctx;
    uint32_t word = atomic_load(&w.strategy.word);
    struct nj_strategy_counters c = nj_strategy_counters(&w.strategy);
    uint32_t seats = nj__state_recruit_mask(word) / NJ__SEAT_BIT;
    bool over = w.stopped && !w.restarted;
    unsigned n_asleep = m->keeps_two && !over ? (unsigned)__builtin_popcount(seats) : 0;

    if (w.pool) {
        on_threads_end();
        return;
    }
    if (m->is_bounded && m->kind != NJ_STRATEGY_EPC) {
        on_bounded_end();
        return;
    }
    check(m->is_bounded || (w.may_restart && w.n_blocked) ||
              explore_n_stuck() == w.n_blocked + n_asleep,
          "a thread is stuck");
    check(m->is_bounded || (!w.queued_out && !w.sure_out), "a recruit has not come");
    if (w.may_stop) {
        if (explore_n_stuck() == 0)
            on_stopped_end();
        return;
    }
    check(w.lost || n_left() == 0,
          "tasks are left without a thread"); /* EWYK 5.9, EWYK 5.10, EWYK 5.11, EWYK 5.12 */
    bool stays = m->kind == NJ_STRATEGY_PC && explore_n_stuck(); /* its producer is stuck */
    check(m->is_bounded || stays ||
              word == nj__state_pack(NJ__STATE_IDLE,
                                     m->keeps_two ? seats * NJ__SEAT_BIT : NJ__RECRUIT_NONE),
          "not IDLE at the end"); /* EWYK 5.17, EWYK 5.50 */
    check(w.lost || c.pc + c.pic + c.pec + c.epc == w.n_tasks,
          "the counters do not add up"); /* EWYK 5.28 */
    check(explore_n_stuck() > 0 || atomic_load(&w.strategy.n_refs) == 1, "references are left");
}

struct explore_result model_strategy(const struct model_strategy *m, uint64_t states_max)
{
    struct explore_world world = {.begin = begin,
                                  .hash = hash,
                                  .end = on_end,
                                  .access = access,
                                  .ctx = (void *)(uintptr_t)m,
                                  .memory = &w,
                                  .n_memory = sizeof w,
                                  .by_stack = m->by_stack || m->threads.n_max,
                                  .must_fail = m->must_fail};

    for (unsigned i = 0; i < m->n_events; i++)
        if (m->events[i].how >= MODEL_STOP)
            return explore(&world, states_max);
    /* Only the owner can hold the last reference, so switches at these places have no effect. */
    world.unseen = UINT64_C(1) << NJ__AT_REF_GET | UINT64_C(1) << NJ__AT_REF_PUT |
                   UINT64_C(1) << NJ__AT_STOPPED;
    return explore(&world, states_max);
}
