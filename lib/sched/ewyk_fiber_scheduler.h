/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scheduling strategy of an lcore: Jetty's Eat What You Kill (EWYK), with fibers.
 *
 * The lcore's root context produces tasks and offers them. The strategy consumes a task at once
 * where that is safe. A task that may wait starts on its own stack; if it parks, the root continues
 * producing. Application code never becomes the producer: tasks that it offers are queued for the
 * root.
 *
 *   type          a stack is free          none is free
 *   NON_BLOCKING  PC                       PC
 *   EITHER        EPC                      PIC
 *   BLOCKING      EPC                      PEC_QUEUE, or rejected when the queue is full
 *   OS_BLOCKING   PEC_WORKER, or rejected when the workers take no more
 *
 * A class that holds the core too long is moved: its tasks are treated as OS_BLOCKING. A caller
 * that must not have them rejected offers them again with task->as_declared when the workers are
 * full.
 *
 * All functions belong to the lcore's thread, unless stated otherwise. "Root only" excludes fibers.
 */
#pragma once

#include "sched/fiber.h"
#include "sched/task.h"

#define NJ_EWYK_BUDGET_NS       (100 * NJ_US) /* of one hold of the core */
/* A single long hold (the kernel preempted the lcore) must not move a route. A hold counts as at
 * most this many budgets, so an average over eight exceeds the budget only after several. */
#define NJ_EWYK_OUTLIER_BUDGETS 4u

/* The average hides few but long holds. So the time of holds beyond the budget is also counted as a
 * share of the core's time, see add_to_tail(). A class above 1 / NJ_EWYK_TAIL_DIV is moved. That
 * share of the other tasks arrives during such a hold, and waits for half of it on average. A
 * smaller share would move classes for CPU time taken by others: on a virtual machine that loses a
 * tenth of its time, a tenth of each hold is lost. A class needs at least NJ_EWYK_TAIL_HOLDS holds,
 * and NJ_EWYK_TAIL_NS without the longest one, which may be a single preemption by the kernel. */
#define NJ_EWYK_TAIL_DIV       4u
#define NJ_EWYK_TAIL_NS        (100 * NJ_MS)
#define NJ_EWYK_TAIL_HOLDS     4u
/* Telemetry reports the share of the tail over the last half to whole of this time. */
#define NJ_EWYK_TAIL_WINDOW_NS (16 * NJ_SEC)

/* A class that is moved again within this time after its return belongs to the workers: it waits in
 * the kernel, which a worker's CPU time does not show, or some of its tasks are long. Each such
 * move multiplies the tasks below half the budget that it needs to return by four, up to this
 * maximum (exponential back-off). */
#define NJ_EWYK_PROBATION_NS  (60 * NJ_SEC)
#define NJ_EWYK_FAST_RUNS_MAX 65536u

/* Time beyond the budget of a class: of its holds, and of workers' CPU time while it is moved. */
struct nj_task_tail {
    nj_ns since; /* start of the reported window */
    uint64_t ns; /* time beyond the budget in this window */
    /* The leaky bucket of add_to_tail(): */
    nj_ns at;            /* time of the last update */
    uint64_t level_ns;   /* level at that time */
    uint32_t of;         /* leak: 1 ns for each `of` ns */
    uint32_t n;          /* holds since it was empty */
    uint64_t longest_ns; /* the longest of these holds, not in the level */
};

/*
 * A class of tasks: a route, on one lcore. Its owner initialises it with nj_task_class_init() and
 * keeps it while a task refers to it. The lcore is the only writer; any thread may read counters.
 */
struct nj_task_class {
    const char *name;
    enum nj_task_type declared; /* as declared by the route */
    enum nj_task_type type;     /* as its tasks are consumed now */
    bool pinned;                /* never moved to a worker: its code relies on the lcore */
    uint32_t n_fast_runs,
        n_fast_runs_min; /* consecutive tasks below half the budget; needed to return */
    nj_ns returned_at;   /* time of the last return from the workers; 0: never */
    uint64_t ewma_x8_ns; /* eight times the moving average of its holds */
    struct nj_task_tail tail;
    uint64_t longest_ns;    /* longest hold */
    uint64_t worker_max_ns; /* recent maximum of wall_ns with a worker; 0: unknown */
    uint64_t n_overruns;    /* holds beyond the budget */
    uint64_t n_would_block; /* attempts to park where it must not */
    uint64_t n_moves;       /* to the workers and back */
    /* Calls with its requests or responses on threads that may not make them. Such a thread is the
     * writer. */
    uint64_t n_foreign_calls;
    /* Tasks by mode. Tasks that wait or are with a worker are not counted yet. */
    uint64_t n[NJ_N_MODES];
};

void nj_task_class_init(struct nj_task_class *, const char *name, enum nj_task_type declared);
/* The type by which this task is consumed. */
static inline enum nj_task_type nj_task_effective_type(const struct nj_task *t)
{
    return t->as_declared ? t->class_of->declared : t->class_of->type;
}
/* Zeroes the counters; average and type stay. */
void nj_task_class_reset_counters(struct nj_task_class *);
/* Counts a task that was consumed without the strategy. Its lcore only. */
void nj_task_class_count_run(struct nj_task_class *, enum nj_run_mode mode);
static inline nj_ns nj_task_class_ewma(const struct nj_task_class *c)
{
    return c->ewma_x8_ns / 8;
}

/* The share of the core's time, in millionths, that its holds took beyond the budget; see
 * NJ_EWYK_TAIL_DIV. Any thread; `now` is a time of the strategy's clock. */
uint32_t nj_task_class_overrun_time_ppm(const struct nj_task_class *, nj_ns now);

enum nj_ewyk_would_block {
    NJ_EWYK_WOULD_BLOCK_DEFAULT, /* FATAL when NJ_CHECKED, else COUNTED */
    NJ_EWYK_WOULD_BLOCK_FATAL,   /* an assertion that names the class of the task */
    NJ_EWYK_WOULD_BLOCK_COUNTED, /* counted, and logged once */
};

struct nj_ewyk_config {
    uint32_t n_fibers_max; /* 0: BLOCKING tasks go to the workers */
    uint32_t stack_bytes;  /* 0: NJ_FIBER_STACK_BYTES */
    /* Bound of each queue: tasks waiting for a stack, tasks offered by fibers. */
    uint32_t n_queue_max;
    nj_ns now, budget_ns;      /* 0: NJ_EWYK_BUDGET_NS */
    nj_ns (*clock)(void *ctx); /* NULL: nothing is measured, and no class is moved */
    /* Passes the task to a worker, which calls its run(). False: the workers are full. NULL: there
     * are no workers. Called in the root. */
    bool (*submit)(void *ctx, struct nj_task *);
    struct nj_wait_ops waits; /* of the fibers */
    /* Logs a move of a class, or an attempt to park where that is forbidden. May be NULL. */
    void (*log)(void *ctx, const char *line);
    void *ctx;
    enum nj_ewyk_would_block would_block; /* reaction when a task parks where it must not */
};

struct nj_ewyk;

/* NULL: no memory. */
struct nj_ewyk *nj_ewyk_new(const struct nj_ewyk_config *config);
/* It must be idle. */
void nj_ewyk_free(struct nj_ewyk *);

/*
 * Consumes or rejects a task exactly once, now or later. Returns the mode; the task may be freed by
 * then. A call from a task or a fiber queues the task, whatever its type, and returns
 * NJ_MODE_PEC_QUEUE; the root consumes it by its type in the next nj_ewyk_run(), and counts it
 * then.
 */
enum nj_run_mode nj_ewyk_offer(struct nj_ewyk *, struct nj_task *);

/* Calls a function on behalf of an already consumed task of this class: inline, must not block, and
 * measured like a task. Root only. */
void nj_ewyk_call_measured(struct nj_ewyk *, struct nj_task_class *, void (*fn)(void *arg),
                           void *arg);

/* Takes back a task that the root offered and that waits for a stack. It is not run, rejected or
 * counted. Root only. */
void nj_ewyk_withdraw(struct nj_ewyk *, struct nj_task *);

/* Rejects and counts a task; for callers with a queue of their own: one that was not offered.
 * Returns NJ_MODE_REJECTED. Root only. */
enum nj_run_mode nj_task_reject(struct nj_task *);
/* Calls fn(ctx, task) for each parked task. O(stacks). fn may wake or cancel the task, but must not
 * start one. Root only. */
void nj_ewyk_each_parked(struct nj_ewyk *, void (*fn)(void *ctx, struct nj_task *task), void *ctx);

/* The task of the running fiber. NULL: no fiber runs on this thread. Any thread. */
struct nj_task *nj_ewyk_running_task(void);

/* Resumes due fibers, starts tasks that waited for a stack and consumes tasks offered by fibers, at
 * most `n_max` of each. Returns the number that ran. Root only. */
uint32_t nj_ewyk_run(struct nj_ewyk *, nj_ns now, uint32_t n_max);
/* The earliest time at which something can run; 0: now; NJ_NEVER: no time. */
nj_ns nj_ewyk_next_due(const struct nj_ewyk *);
/* No task waits and no fiber is in use. Tasks of workers are not considered. */
bool nj_ewyk_is_idle(const struct nj_ewyk *);

/* Rejects all waiting and all later tasks, permanently. Running fibers run to their end. Any
 * context of the thread. */
void nj_ewyk_stop(struct nj_ewyk *);
/* Ends the current and all later waits of every fiber. */
void nj_ewyk_cancel_fibers(struct nj_ewyk *);
/* As nj_fibers_trim(), while no task is on a fiber. */
uint32_t nj_ewyk_trim(struct nj_ewyk *, uint32_t n_keep, uint32_t n_max);
/* The class of the task that the calling thread runs, in a signal handler too; NULL: none, or
 * unknown. */
const struct nj_task_class *nj_task_class_running(void);
/* A thread without a strategy, such as a worker, runs a task of this class; NULL: none. */
void nj_task_class_set_running(const struct nj_task_class *);
/* The class of one task that is on a fiber. NULL: no fiber is in use. */
const struct nj_task_class *nj_ewyk_first_busy_fiber_class(const struct nj_ewyk *);

/* Counts a task of this class that a worker has completed. `on_core_ns` is its CPU time; 0: it did
 * not run. May return the class from the workers. */
void nj_ewyk_account_worker_run(struct nj_ewyk *, struct nj_task_class *, nj_ns on_core_ns);

/* The hold of the core in progress, for a watchdog. */
struct nj_ewyk_hold {
    const struct nj_task_class *class_of;
    nj_ns since; /* 0 without a clock */
};
/* Any thread. False: no hold, or it changed during the call; in both cases the lcore makes
 * progress. */
bool nj_ewyk_current_core_holder(const struct nj_ewyk *, struct nj_ewyk_hold *out);

/* Finished holds above the budget and this limit are recorded, as a polling watchdog misses them.
 */
#define NJ_EWYK_LONG_HOLD_NS (1 * NJ_MS)
struct nj_ewyk_long_hold {
    struct nj_ewyk_hold hold;
    nj_ns ns;
};
/* Takes the first long hold since the last call. False: there was none. Any one thread. */
bool nj_ewyk_pop_long_hold(struct nj_ewyk *, struct nj_ewyk_long_hold *out);

struct nj_ewyk_gauges {
    uint32_t n_fibers_in_use, n_fibers_high_water;
    uint32_t n_waiting; /* tasks, in both queues */
    uint64_t n_would_block;
    struct nj_await_count awaits[NJ_N_AWAITS]; /* of fibers */
};
struct nj_ewyk_gauges nj_ewyk_gauges(const struct nj_ewyk *);
