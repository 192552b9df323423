/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scheduling strategy of an lcore: Jetty's Eat What You Kill, with fibers in place of threads.
 * Classes of tasks that hold the core too long are moved to worker threads by a moving average and
 * a leaky bucket.
 */
#include "sched/ewyk_fiber_scheduler.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "sched/fiber_internal.h"
#include "sched/fpu_control.h"

/* Tasks in the order they came. */
struct queue {
    struct nj_list list;
    uint32_t n;
};

/* The task that holds the core; written by the lcore, read by any thread. `turn` is odd during a
 * hold. */
struct hold {
    _Atomic uint64_t turn;
    _Atomic(struct nj_task_class *) class_of;
    _Atomic nj_ns since;
};

struct nj_ewyk {
    struct nj_fibers *fibers;
    struct nj_ewyk_config config;
    struct nj_task_class *inline_class; /* of the task that runs in the root context */
    struct queue waiting;               /* tasks that wait for a stack */
    struct queue handed;                /* tasks offered by fibers, for the root */
    bool stopped, fatal;
    uint64_t n_would_block;
    struct hold hold NJ_CACHE_ALIGNED;
    /* Read by the watchdog if has_long_hold is set, else written by the lcore. */
    struct nj_ewyk_long_hold long_hold;
    _Atomic bool has_long_hold;
};

/* Single writer; telemetry reads at any time. */
static void add(uint64_t *counter, uint64_t n)
{
    __atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

void nj_task_class_init(struct nj_task_class *c, const char *name, enum nj_task_type declared)
{
    *c = (struct nj_task_class){.name = name, .declared = nj_task_type_or_blocking(declared)};
    c->type = c->declared;
}

void nj_task_class_reset_counters(struct nj_task_class *c)
{
    for (int m = 0; m < NJ_N_MODES; m++)
        add(&c->n[m], -c->n[m]);
    add(&c->longest_ns, -c->longest_ns);
    add(&c->n_overruns, -c->n_overruns);
    add(&c->n_would_block, -c->n_would_block);
    add(&c->n_moves, -c->n_moves);
}

void nj_task_class_count_run(struct nj_task_class *c, enum nj_run_mode mode)
{
    add(&c->n[mode], 1);
}

/* --- measuring -------------------------------------------------------------------------------- */

static nj_ns clock_of(struct nj_ewyk *e)
{
    return e->config.clock ? e->config.clock(e->config.ctx) : 0;
}

/* --- the tail: few and long holds ------------------------------------------------------------- */

/* The level of the class's leaky bucket at `now`, see add_to_tail(). */
static uint64_t account(const struct nj_task_class *c, nj_ns now)
{
    nj_ns leaked = (now - c->tail.at) / c->tail.of;

    return leaked < c->tail.level_ns ? c->tail.level_ns - leaked : 0;
}

static void set_tail(struct nj_task_class *c, nj_ns since, uint64_t ns)
{
    __atomic_store_n(&c->tail.since, since, __ATOMIC_RELAXED);
    __atomic_store_n(&c->tail.ns, ns, __ATOMIC_RELAXED);
}

static void reset_tail(struct nj_task_class *c, nj_ns since)
{
    set_tail(c, since, 0);
    c->tail.of = c->type == c->declared ? NJ_EWYK_TAIL_DIV : 2 * NJ_EWYK_TAIL_DIV;
    c->tail.at = since;
    c->tail.level_ns = c->tail.longest_ns = c->tail.n = 0;
}

/*
 * A leaky bucket for each class. Time of a hold beyond the budget flows in; 1 / tail.of of the
 * passing time leaks out. While a class exceeds that share the level grows, for holds 5 ms or 5 s
 * apart. Below that share the bucket becomes empty from time to time, and a new tail starts. The
 * longest hold is not counted. A class is moved at a level of NJ_EWYK_TAIL_NS after at least
 * NJ_EWYK_TAIL_HOLDS holds. It returns when the bucket is empty. A moved class leaks half the share
 * (hysteresis), so a class between the two shares stays. The level is bounded, but the bound always
 * exceeds the leak between two of the longest holds at that share.
 */
static void add_to_tail(struct nj_task_class *c, nj_ns since, uint64_t beyond)
{
    struct nj_task_tail *t = &c->tail;

    if (t->n == 0 || (account(c, since) == 0 && since - t->at >= t->of * t->longest_ns))
        reset_tail(c, since);
    uint64_t longest = t->longest_ns, left = account(c, since);
    t->longest_ns = beyond > longest ? beyond : longest;
    left += beyond < longest ? beyond : longest;
    t->level_ns = left < NJ_EWYK_TAIL_NS + t->longest_ns ? left : NJ_EWYK_TAIL_NS + t->longest_ns;
    t->at = since;
    t->n++;
    if (since - t->since > NJ_EWYK_TAIL_WINDOW_NS) /* report recent time only */
        set_tail(c, since - (since - t->since) / 2, t->ns / 2);
    set_tail(c, t->since, t->ns + beyond);
}

uint32_t nj_task_class_overrun_time_ppm(const struct nj_task_class *c, nj_ns now)
{
    uint64_t ns = __atomic_load_n(&c->tail.ns, __ATOMIC_RELAXED);
    nj_ns since = __atomic_load_n(&c->tail.since, __ATOMIC_RELAXED);

    if (ns == 0 || now <= since)
        return 0;
    double share = (double)ns / (double)(now - since);
    return share < 1 ? (uint32_t)(share * 1e6) : 1000000;
}

/* --- to the workers and back ------------------------------------------------------------------ */

/* `why`: the reason, as it appears in the log line. */
static void move(struct nj_ewyk *e, struct nj_task_class *c, enum nj_task_type to, const char *why)
{
    char line[240];

    __atomic_store_n(&c->type, to, __ATOMIC_RELAXED);
    add(&c->n_moves, 1);
    if (!e->config.log)
        return;
    snprintf(line, sizeof line, "%.100s: %s, %s (budget %llu us)", c->name,
             to == c->declared ? "back from the workers" : "moved to the workers", why,
             (unsigned long long)(e->config.budget_ns / NJ_US));
    e->config.log(e->config.ctx, line);
}

static void move_away(struct nj_ewyk *e, struct nj_task_class *c, const char *why)
{
    bool again = c->returned_at && clock_of(e) - c->returned_at < NJ_EWYK_PROBATION_NS;
    uint32_t more =
        c->n_fast_runs_min < NJ_EWYK_FAST_RUNS_MAX ? 4 * c->n_fast_runs_min : NJ_EWYK_FAST_RUNS_MAX;

    c->n_fast_runs = 0;
    c->n_fast_runs_min = again ? more : 1;
    move(e, c, NJ_OS_BLOCKING, why);
}

static bool may_move_away(const struct nj_ewyk *e, const struct nj_task_class *c)
{
    return e->config.submit && !c->pinned && c->type == c->declared &&
           c->declared != NJ_OS_BLOCKING;
}

static void check_tail(struct nj_ewyk *e, struct nj_task_class *c, nj_ns now)
{
    char why[120];

    if (c->tail.n < NJ_EWYK_TAIL_HOLDS || account(c, now) < NJ_EWYK_TAIL_NS || !may_move_away(e, c))
        return;
    snprintf(why, sizeof why, "%llu of %llu ms on the core beyond the budget, in %u holds",
             (unsigned long long)(c->tail.ns / NJ_MS),
             (unsigned long long)((now - c->tail.since) / NJ_MS), c->tail.n);
    move_away(e, c, why);
    c->tail.of = 2 * NJ_EWYK_TAIL_DIV;
}

/* A moved class returns below half the budget (hysteresis) and with an empty bucket, or when it was
 * pinned to the lcore. */
static void update_type(struct nj_ewyk *e, struct nj_task_class *c)
{
    nj_ns average = nj_task_class_ewma(c), now = clock_of(e);
    char why[60];

    snprintf(why, sizeof why, "%llu us on the core", (unsigned long long)(average / NJ_US));
    if (c->type == c->declared) {
        move_away(e, c, why);
        reset_tail(c, now);
        return;
    }
    bool calm = average < e->config.budget_ns / 2 && account(c, now) == 0;
    c->n_fast_runs = calm ? c->n_fast_runs + 1 : 0;
    if (!c->pinned && (c->n_fast_runs == 0 || c->n_fast_runs < c->n_fast_runs_min))
        return;
    c->returned_at = now;
    move(e, c, c->declared, why);
    reset_tail(c, now);
}

static void update_average(struct nj_ewyk *e, struct nj_task_class *c, nj_ns ns)
{
    nj_ns most = e->config.budget_ns * NJ_EWYK_OUTLIER_BUDGETS;
    uint64_t x8 = c->ewma_x8_ns;

    __atomic_store_n(&c->ewma_x8_ns, x8 - x8 / 8 + (ns < most ? ns : most), __ATOMIC_RELAXED);
    if (nj_unlikely(c->type != c->declared ||
                    (nj_task_class_ewma(c) > e->config.budget_ns && may_move_away(e, c))))
        update_type(e, c);
}

void nj_ewyk_account_worker_run(struct nj_ewyk *e, struct nj_task_class *c, nj_ns on_core_ns)
{
    nj_task_class_count_run(c, NJ_MODE_PEC_WORKER);
    if (on_core_ns == 0) /* the task did not run */
        return;
    if (c->type != c->declared && on_core_ns > e->config.budget_ns)
        add_to_tail(c, clock_of(e), on_core_ns - e->config.budget_ns);
    update_average(e, c, on_core_ns);
}

/*
 * A sequence lock: stores are releases and the reader's loads are acquires. A reader that loads the
 * same odd turn before and after has read the class and the time of that turn.
 */
static void hold_begin(struct nj_ewyk *e, struct nj_task_class *c, nj_ns start)
{
    uint64_t turn = atomic_load_explicit(&e->hold.turn, memory_order_relaxed);

    atomic_store_explicit(&e->hold.class_of, c, memory_order_release);
    atomic_store_explicit(&e->hold.since, start, memory_order_release);
    atomic_store_explicit(&e->hold.turn, turn + 1, memory_order_release);
}

static void note_overrun(struct nj_ewyk *e, struct nj_task_class *c, nj_ns since, nj_ns ns)
{
    add(&c->n_overruns, 1);
    add_to_tail(c, since, ns - e->config.budget_ns);
    check_tail(e, c, since + ns);
    if (ns <= NJ_EWYK_LONG_HOLD_NS || atomic_load_explicit(&e->has_long_hold, memory_order_acquire))
        return;
    e->long_hold = (struct nj_ewyk_long_hold){{c, since}, ns};
    atomic_store_explicit(&e->has_long_hold, true, memory_order_release);
}

bool nj_ewyk_pop_long_hold(struct nj_ewyk *e, struct nj_ewyk_long_hold *out)
{
    if (!atomic_load_explicit(&e->has_long_hold, memory_order_acquire))
        return false;
    *out = e->long_hold;
    atomic_store_explicit(&e->has_long_hold, false, memory_order_release);
    return true;
}

/* Returns the time. */
static nj_ns hold_end(struct nj_ewyk *e, struct nj_task_class *c, nj_ns start)
{
    uint64_t turn = atomic_load_explicit(&e->hold.turn, memory_order_relaxed);

    atomic_store_explicit(&e->hold.turn, turn + 1, memory_order_release);
    if (!e->config.clock)
        return 0;
    nj_ns end = e->config.clock(e->config.ctx);
    if (nj_unlikely(end - start > c->longest_ns))
        add(&c->longest_ns, end - start - c->longest_ns);
    if (nj_unlikely(end - start > e->config.budget_ns))
        note_overrun(e, c, start, end - start);
    update_average(e, c, end - start);
    return end;
}

bool nj_ewyk_current_core_holder(const struct nj_ewyk *e, struct nj_ewyk_hold *out)
{
    uint64_t turn = atomic_load_explicit(&e->hold.turn, memory_order_acquire);

    out->class_of = atomic_load_explicit(&e->hold.class_of, memory_order_acquire);
    out->since = atomic_load_explicit(&e->hold.since, memory_order_acquire);
    return turn % 2 == 1 && atomic_load_explicit(&e->hold.turn, memory_order_acquire) == turn;
}

/* --- consuming one task ----------------------------------------------------------------------- */

enum nj_run_mode nj_task_reject(struct nj_task *t)
{
    add(&t->class_of->n[NJ_MODE_REJECTED], 1);
    t->ops->reject(t);
    return NJ_MODE_REJECTED;
}

static enum nj_run_mode enqueue(struct nj_ewyk *e, struct queue *q, struct nj_task *t)
{
    if (q->n >= e->config.n_queue_max)
        return nj_task_reject(t);
    nj_list_push_back(&q->list, &t->node);
    q->n++;
    return NJ_MODE_PEC_QUEUE;
}

static struct nj_task *dequeue(struct queue *q)
{
    struct nj_list *n = nj_list_pop(&q->list);

    if (!n)
        return NULL;
    q->n--;
    return nj_container_of(n, struct nj_task, node);
}

/* Runs on the root's stack and must not block. Restores errno and the floating-point mode. */
void nj_ewyk_call_measured(struct nj_ewyk *e, struct nj_task_class *c, void (*fn)(void *arg),
                           void *arg)
{
    uint64_t fp_mode = nj__fpu_get_control();
    int root_errno = errno;
    nj_ns start = clock_of(e);

    NJ_ASSERT(!nj__current.fiber && !e->inline_class);
    e->inline_class = c;
    hold_begin(e, c, start);
    errno = 0;
    fn(arg);
    errno = root_errno;
    if (nj_unlikely(nj__fpu_get_control() != fp_mode))
        nj__fpu_set_control(fp_mode);
    hold_end(e, c, start);
    e->inline_class = NULL;
}

static void run_task_fn(void *arg)
{
    struct nj_task *t = arg;
    t->ops->run(t);
}

static enum nj_run_mode consume_inline(struct nj_ewyk *e, struct nj_task *t, enum nj_run_mode mode)
{
    struct nj_task_class *c = t->class_of; /* run() may free the task */

    add(&c->n[mode], 1);
    nj_ewyk_call_measured(e, c, run_task_fn, t);
    return mode;
}

/* Runs the task on a free stack, which must exist. Sets *mode by whether the task parked, unless it
 * is NJ_MODE_PEC_QUEUE. Returns the time. */
static nj_ns consume_on_fiber(struct nj_ewyk *e, struct nj_task *t, nj_ns start,
                              enum nj_run_mode *mode)
{
    struct nj_task_class *c = t->class_of;
    enum nj_fiber_started how;

    hold_begin(e, c, start);
    how = nj__fiber_start_for_class(e->fibers, run_task_fn, t, c);
    start = hold_end(e, c, start);
    if (*mode != NJ_MODE_PEC_QUEUE)
        *mode = how == NJ_FIBER_PARKED ? NJ_MODE_EPC_PARKED : NJ_MODE_EPC_INLINE;
    add(&c->n[*mode], 1);
    return start;
}

static enum nj_run_mode consume_now(struct nj_ewyk *e, struct nj_task *t)
{
    enum nj_run_mode mode = t->queued ? NJ_MODE_PEC_QUEUE : NJ_MODE_EPC_INLINE;
    consume_on_fiber(e, t, clock_of(e), &mode);
    return mode;
}

static enum nj_run_mode submit_to_worker(struct nj_ewyk *e, struct nj_task *t)
{
    if (!e->config.submit || !e->config.submit(e->config.ctx, t))
        return nj_task_reject(t);
    return NJ_MODE_PEC_WORKER; /* counted in nj_ewyk_account_worker_run() */
}

static enum nj_run_mode consume_blocking(struct nj_ewyk *e, struct nj_task *t)
{
    if (e->fibers->n_max == 0)
        return submit_to_worker(e, t);
    if (e->fibers->free && e->waiting.n == 0) /* not ahead of waiting tasks */
        return consume_now(e, t);
    return enqueue(e, &e->waiting, t);
}

/* The table of ewyk_fiber_scheduler.h. */
static enum nj_run_mode consume(struct nj_ewyk *e, struct nj_task *t)
{
    switch (nj_task_effective_type(t)) {
    case NJ_NON_BLOCKING:
        return consume_inline(e, t, NJ_MODE_PC);
    case NJ_EITHER:
        return e->fibers->free && !t->run_inline ? consume_now(e, t)
                                                 : consume_inline(e, t, NJ_MODE_PIC);
    case NJ_OS_BLOCKING:
        return submit_to_worker(e, t);
    case NJ_BLOCKING:
    case NJ_UNTYPED:
    case NJ_N_TASK_TYPES:
        break;
    }
    return consume_blocking(e, t);
}

enum nj_run_mode nj_ewyk_offer(struct nj_ewyk *e, struct nj_task *t)
{
    struct nj_fibers *home = nj__current.home;
    enum nj_run_mode mode;

    if (nj_unlikely(e->stopped))
        return nj_task_reject(t);
    if (nj__current.fiber || e->inline_class)
        return enqueue(e, &e->handed, t);
    nj__fibers_bind(e->fibers);
    mode = consume(e, t);
    if (home) /* a task of another strategy made this call, and continues */
        nj__current.home = home;
    return mode;
}

void nj_ewyk_withdraw(struct nj_ewyk *e, struct nj_task *t)
{
    NJ_ASSERT(nj_list_linked(&t->node) && e->waiting.n > 0);
    nj_list_del(&t->node);
    e->waiting.n--;
}

void nj_ewyk_each_parked(struct nj_ewyk *e, void (*fn)(void *ctx, struct nj_task *task), void *ctx)
{
    for (uint32_t i = 0; i < e->fibers->n_max; i++) {
        const struct nj_fiber *f = &e->fibers->fiber[i];
        if (f->state == NJ__FIBER_PARKED && f->fn == run_task_fn)
            fn(ctx, f->arg);
    }
}

struct nj_task *nj_ewyk_running_task(void)
{
    const struct nj_fiber *f = nj__current.fiber;
    return f && f->fn == run_task_fn ? f->arg : NULL;
}

/* --- waiting tasks ---------------------------------------------------------------------------- */

static void reject_all(struct nj_ewyk *e)
{
    struct nj_task *t;

    while ((t = dequeue(&e->waiting)))
        nj_task_reject(t);
    while ((t = dequeue(&e->handed)))
        nj_task_reject(t);
}

/* The end of a hold is the start of the next one: one clock read for each. */
static uint32_t resume(struct nj_ewyk *e, nj_ns now, uint32_t n_max)
{
    uint32_t n = nj__fibers_wake_due(e->fibers, now);

    n = n < n_max ? n : n_max;
    if (n == 0)
        return 0;
    nj_ns at = clock_of(e);
    for (uint32_t i = 0; i < n; i++) {
        struct nj_fiber *f = nj__fibers_pop_runnable(e->fibers);
        struct nj_task_class *c = f->class_of;
        hold_begin(e, c, at);
        nj__fiber_resume(f);
        at = hold_end(e, c, at);
    }
    return n;
}

static uint32_t start_waiting(struct nj_ewyk *e, uint32_t n_max)
{
    uint32_t n = 0;

    if (e->waiting.n == 0 || !e->fibers->free)
        return 0;
    nj_ns at = clock_of(e);
    for (; n < n_max && e->waiting.n > 0 && e->fibers->free; n++) {
        enum nj_run_mode mode = NJ_MODE_PEC_QUEUE;
        at = consume_on_fiber(e, dequeue(&e->waiting), at, &mode);
    }
    return n;
}

/* Tasks offered meanwhile wait for the next run, so a chain of offers cannot hold the lcore. */
static uint32_t consume_offered(struct nj_ewyk *e, uint32_t n_max)
{
    uint32_t n = e->handed.n < n_max ? e->handed.n : n_max;
    uint32_t done = 0;

    while (done < n && e->handed.n > 0) { /* one of them may call nj_ewyk_stop() */
        consume(e, dequeue(&e->handed));
        done++;
    }
    return done;
}

uint32_t nj_ewyk_run(struct nj_ewyk *e, nj_ns now, uint32_t n_max)
{
    NJ_ASSERT(!nj__current.fiber && !e->inline_class);
    uint32_t n = resume(e, now, n_max);
    if (nj_unlikely(e->stopped))
        reject_all(e);
    n += start_waiting(e, n_max);
    n += consume_offered(e, n_max);
    if (nj_unlikely(e->stopped))
        reject_all(e);
    return n;
}

nj_ns nj_ewyk_next_due(const struct nj_ewyk *e)
{
    if (e->handed.n > 0 || (e->waiting.n > 0 && (e->fibers->free || e->stopped)))
        return 0;
    return nj_fibers_next_due(e->fibers);
}

bool nj_ewyk_is_idle(const struct nj_ewyk *e)
{
    return nj_fibers_in_use(e->fibers) == 0 && e->waiting.n == 0 && e->handed.n == 0;
}

/* --- life cycle ------------------------------------------------------------------------------- */

/* A task parks although its type forbids it. Reporting the class is better than a stuck lcore.
 * Logged once for each class, until its counters are reset. */
static void would_block(void *ctx)
{
    struct nj_ewyk *e = ctx;
    struct nj_task_class *c = nj__current.fiber ? nj__current.fiber->class_of : e->inline_class;
    char line[200];

    bool first = c ? c->n_would_block == 0 : e->n_would_block == 0;

    add(&e->n_would_block, 1);
    if (c)
        add(&c->n_would_block, 1);
    if (!e->fatal && !(first && e->config.log))
        return;
    snprintf(line, sizeof line, "%.150s would park in a context that must not block",
             c ? c->name : "the root");
    if (e->fatal)
        nj__assert_failed(line, __FILE__, __LINE__);
    e->config.log(e->config.ctx, line);
}

/* Of the fibers of a strategy, `ctx` is the strategy. */
const struct nj_task_class *nj_task_class_running(void)
{
    const struct nj_fibers *home = nj__current.home;

    if (nj__current.fiber)
        return nj__current.fiber->class_of;
    if (home && home->would_block == would_block)
        return ((const struct nj_ewyk *)home->ctx)->inline_class;
    return nj__current.class_of;
}

void nj_task_class_set_running(const struct nj_task_class *c)
{
    nj__current.class_of = c;
}

static bool is_fatal(enum nj_ewyk_would_block policy)
{
#ifdef NJ_CHECKED
    return policy != NJ_EWYK_WOULD_BLOCK_COUNTED;
#else
    return policy == NJ_EWYK_WOULD_BLOCK_FATAL;
#endif
}

struct nj_ewyk *nj_ewyk_new(const struct nj_ewyk_config *config)
{
    struct nj_ewyk *e = aligned_alloc(NJ_CACHE_LINE, sizeof *e);

    if (!e)
        return NULL;
    *e = (struct nj_ewyk){.config = *config, .fatal = is_fatal(config->would_block)};
    if (e->config.budget_ns == 0)
        e->config.budget_ns = NJ_EWYK_BUDGET_NS;
    nj_list_init(&e->waiting.list);
    nj_list_init(&e->handed.list);
    e->fibers = nj_fibers_new(&(struct nj_fibers_config){.n_max = config->n_fibers_max,
                                                         .stack_bytes = config->stack_bytes,
                                                         .now = config->now,
                                                         .would_block = would_block,
                                                         .ctx = e,
                                                         .waits = config->waits});
    if (!e->fibers) {
        free(e);
        return NULL;
    }
    return e;
}

void nj_ewyk_free(struct nj_ewyk *e)
{
    if (!e)
        return;
    NJ_ASSERT(nj_ewyk_is_idle(e));
    nj_fibers_free(e->fibers);
    free(e);
}

void nj_ewyk_stop(struct nj_ewyk *e)
{
    e->stopped = true;
    if (!nj__current.fiber && !e->inline_class)
        reject_all(e);
}

void nj_ewyk_cancel_fibers(struct nj_ewyk *e)
{
    for (uint32_t i = 0; i < e->fibers->n_max; i++)
        if (e->fibers->fiber[i].state != NJ__FIBER_FREE)
            nj_fiber_cancel(&e->fibers->fiber[i]);
}

uint32_t nj_ewyk_trim(struct nj_ewyk *e, uint32_t n_keep, uint32_t n_max)
{
    return nj_fibers_in_use(e->fibers) == 0 ? nj_fibers_trim(e->fibers, n_keep, n_max) : 0;
}

const struct nj_task_class *nj_ewyk_first_busy_fiber_class(const struct nj_ewyk *e)
{
    for (uint32_t i = 0; i < e->fibers->n_max; i++)
        if (e->fibers->fiber[i].state != NJ__FIBER_FREE)
            return e->fibers->fiber[i].class_of;
    return NULL;
}

struct nj_ewyk_gauges nj_ewyk_gauges(const struct nj_ewyk *e)
{
    const struct nj_await_count *awaits = nj_fibers_await_counts(e->fibers);

    return (struct nj_ewyk_gauges){
        .awaits = {awaits[NJ_AWAIT_EVENT], awaits[NJ_AWAIT_FD]},
        .n_fibers_in_use = nj_fibers_in_use(e->fibers),
        .n_fibers_high_water = nj_fibers_high_water(e->fibers),
        .n_waiting = e->waiting.n + e->handed.n,
        .n_would_block = e->n_would_block,
    };
}
