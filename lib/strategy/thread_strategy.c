/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The produce-and-consume loop of a strategy, its recruits and its counters, as Jetty's
 * ExecutionStrategy.
 *
 * A strategy is reference-counted: one reference each for its owner, for each thread inside and for
 * each recruit on its way. The thread that releases the last one calls on_stopped().
 */
#include "strategy/thread_strategy.h"

#include <string.h>

#include "base/assert.h"
#include "sched/fiber.h"
#include "base/interleaving_points.h"
#include "strategy/thread_strategy_internal.h"

void nj__count(struct nj_strategy *s, enum nj__count what)
{
    atomic_fetch_add_explicit(&s->counts[what], 1, memory_order_relaxed);
}

/* --- references ------------------------------------------------------------------------------- */

bool nj__strategy_enter(struct nj_strategy *s)
{
    uint32_t n = atomic_load_explicit(&s->n_refs, memory_order_relaxed);

    /* Acquires the initial state word. */
    while (n) {
        NJ__SCHED_POINT(NJ__AT_REF_GET, n);
        if (atomic_compare_exchange_weak_explicit(&s->n_refs, &n, n + 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return true;
    }
    return false;
}

void nj__strategy_leave(struct nj_strategy *s)
{
    void (*on_stopped)(void *) = s->config.on_stopped;
    void *ctx = s->config.ctx;

    NJ__SCHED_POINT(NJ__AT_REF_PUT, 0);
    /* Releases this thread's writes to the thread that frees the strategy; acquires the others'. */
    if (atomic_fetch_sub_explicit(&s->n_refs, 1, memory_order_acq_rel) == 1 && on_stopped)
        on_stopped(ctx);
}

bool nj__is_stopped(const struct nj_strategy *s)
{
    NJ__SCHED_POINT(NJ__AT_STOPPED, 0);
    return atomic_load_explicit(&s->stopped, memory_order_acquire);
}

/* --- production ------------------------------------------------------------------------------- */

/* After a stop the word is left unchanged: no thread produces. A recruit that finds a task is
 * counted before it consumes the task. */
enum nj__production_end nj__produce_until_none(struct nj_strategy *s, bool *is_recruit)
{
    bool tagged = nj_noblock_is_set();

    while (!nj__is_stopped(s)) {
        NJ__SCHED_POINT(NJ__AT_PRODUCE, 0);
        struct nj_task *task = s->config.producer->produce(s->config.producer);
        if (!task)
            return NJ__END_NO_TASK;
        if (*is_recruit) {
            nj__count(s, NJ__COUNT_RECRUITS_USEFUL);
            *is_recruit = false;
        }
        if (!s->config.consume(s, task, tagged))
            return NJ__END_TAKEN_OVER;
    }
    return NJ__END_STOPPED;
}

void nj__produce_and_consume(struct nj_strategy *s, bool *is_recruit)
{
    while (nj__produce_until_none(s, is_recruit) == NJ__END_NO_TASK &&
           !nj__state_try_idle(&s->word))
        ;
}

void nj__recruit_leave(struct nj_strategy *s, bool is_recruit)
{
    if (is_recruit)
        nj__count(s, NJ__COUNT_RECRUITS_WASTED);
    nj__strategy_leave(s);
}

static void arrive(struct nj_strategy *s, enum nj__recruit recruit)
{
    bool is_recruit = true;

    if (nj__state_try_become_producer(&s->word, recruit))
        nj__produce_and_consume(s, &is_recruit);
    nj__recruit_leave(s, is_recruit);
}

static void queued_run(struct nj_task *task)
{
    arrive(nj_container_of(task, struct nj_strategy, queued_recruit), NJ__RECRUIT_QUEUED);
}

#define LOOKS 20u /* half a microsecond; waking another thread takes several */

/* A recruit that finds another producer would leave; that producer, usually about to consume, would
 * then send the next recruit. So the recruit spins briefly until production is IDLE. */
static void sure_run(struct nj_task *task)
{
    struct nj_strategy *s = nj_container_of(task, struct nj_strategy, sure_recruit);

    for (uint32_t i = 0; i < LOOKS; i++) {
        if (nj__state_production(atomic_load_explicit(&s->word, memory_order_relaxed)) ==
            NJ__STATE_IDLE)
            break;
        nj_cpu_relax();
    }
    arrive(s, NJ__RECRUIT_SURE);
}

/* The executor was stopped after it had accepted the recruit. */
static void queued_reject(struct nj_task *task)
{
    struct nj_strategy *s = nj_container_of(task, struct nj_strategy, queued_recruit);

    nj__state_undo_queued_recruit(&s->word);
    nj__count(s, NJ__COUNT_DISPATCH_REJECTED);
    nj__strategy_leave(s);
}

static void sure_reject(struct nj_task *task)
{
    NJ_UNREACHABLE("a reserved thread rejects no task");
}

bool nj__queue_recruit(struct nj_strategy *s)
{
    nj__strategy_enter(s);
    NJ__SCHED_POINT(NJ__AT_EXECUTE, 0);
    struct nj_executor *e = s->config.executor;
    if (s->config.uses_post ? e->ops->post(e, &s->queued_recruit)
                            : e->ops->execute(e, &s->queued_recruit)) {
        nj__count(s, NJ__COUNT_RECRUITS_SENT);
        return true;
    }
    nj__state_undo_queued_recruit(&s->word);
    nj__count(s, NJ__COUNT_DISPATCH_REJECTED);
    nj__strategy_leave(s);
    return false;
}

/* True: a reserved thread takes the recruit. */
static bool try_recruit(struct nj_strategy *s)
{
    nj__strategy_enter(s);
    NJ__SCHED_POINT(NJ__AT_TRY_EXECUTE, 0);
    if (s->config.executor->ops->try_execute(s->config.executor, &s->sure_recruit)) {
        nj__count(s, NJ__COUNT_RECRUITS_SENT);
        return true;
    }
    nj__count(s, NJ__COUNT_RECRUITS_MISSED);
    nj__strategy_leave(s);
    return false;
}

/* True: there is nothing to produce and no request for production, so no thread is needed yet. */
static bool pause_production(struct nj_strategy *s)
{
    struct nj_producer *p = s->config.producer;

    if (!p->has_more || p->has_more(p) || !nj__state_try_leave(&s->word))
        return false;
    nj__count(s, NJ__COUNT_RECRUITS_SPARED);
    return true;
}

bool nj__hand_over_production(struct nj_strategy *s)
{
    if (pause_production(s))
        return true;
    return !nj__state_leave_and_recruit(&s->word, NJ__RECRUIT_SURE) || try_recruit(s) ||
           !nj__state_undo_recruit_and_resume(&s->word);
}

enum nj_task_type nj__strategy_type_of_task(const struct nj_strategy *s, const struct nj_task *task)
{
    enum nj_task_type type = s->config.type_of ? s->config.type_of(task) : NJ_UNTYPED;

    type = nj_task_type_or_blocking(type);
    return type == NJ_OS_BLOCKING ? NJ_BLOCKING : type;
}

void nj__execute(struct nj_strategy *s, struct nj_task *task)
{
    nj__count(s, NJ__COUNT_PEC);
    NJ__SCHED_POINT(NJ__AT_EXECUTE, 1);
    if (!s->config.executor->ops->execute(s->config.executor, task)) {
        nj__count(s, NJ__COUNT_REJECTED);
        task->ops->reject(task);
    }
}

/* --- interface -------------------------------------------------------------------------------- */

static const struct nj_task_ops queued_ops = {.run = queued_run, .reject = queued_reject};
static const struct nj_task_ops sure_ops = {.run = sure_run, .reject = sure_reject};

void nj_strategy_init(struct nj_strategy *s, const struct nj_strategy_config *config)
{
    *s = (struct nj_strategy){.config = *config,
                              .queued_recruit = {.ops = &queued_ops},
                              .sure_recruit = {.ops = &sure_ops}};
    nj_list_init(&s->queued_recruit.node);
    nj_list_init(&s->sure_recruit.node);
    atomic_init(&s->word, nj__state_pack(NJ__STATE_IDLE, NJ__RECRUIT_NONE));
    atomic_init(&s->n_refs, 1);
}

bool nj_strategy_produce_elsewhere(struct nj_strategy *s)
{
    if (!nj__strategy_enter(s))
        return false;
    bool sent = !nj__is_stopped(s);
    if (sent && nj__state_request_production(&s->word))
        sent = nj__queue_recruit(s);
    nj__strategy_leave(s);
    return sent;
}

void nj_strategy_stop(struct nj_strategy *s)
{
    NJ__SCHED_POINT(NJ__AT_STOP, 0);
    if (atomic_exchange_explicit(&s->stopped, true, memory_order_acq_rel))
        return;
    nj__strategy_leave(s);
}

/* --- counters --------------------------------------------------------------------------------- */

struct nj_strategy_counters nj_strategy_counters(const struct nj_strategy *s)
{
    uint64_t n[NJ_STRATEGY_N_COUNTERS];
    struct nj_strategy_counters c;

    for (size_t i = 0; i < NJ_STRATEGY_N_COUNTERS; i++)
        n[i] = atomic_load_explicit(&s->counts[i], memory_order_relaxed);
    memcpy(&c, n, sizeof c);
    return c;
}
