/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The strategy of an lcore: eat what you kill, with fibers.
 *
 * The lcore's root context produces tasks and offers them; the strategy consumes each at once where
 * that is safe. A task that may wait begins on a stack of its own, and only when it does wait does
 * the root go on, so one producer is always left. Application code never becomes the producer: what
 * it offers is queued for the root.
 *
 *   type          a stack is free          none is free
 *   NON_BLOCKING  PC                       PC
 *   EITHER        EPC                      PIC
 *   BLOCKING      EPC                      PEC_QUEUE, or rejected when the queue is full
 *   OS_BLOCKING   PEC_WORKER, or rejected when the workers take no more
 *
 * A class that keeps the core too long is moved: its tasks are taken for OS_BLOCKING, whatever it
 * declares. Who promised that they are not rejected offers them again with task->as_declared when
 * the workers take no more.
 *
 * One thread's, except nj_ewyk_holder().
 */
#ifndef NJ_SCHED_EWYK_H
#define NJ_SCHED_EWYK_H

#include <stdatomic.h>

#include "sched/fiber.h"
#include "sched/task.h"

#define NJ_EWYK_BUDGET_NS       (100 * NJ_US) /* on the core, between two switches */
/* A single long hold (the kernel took the core away) must not move a route: it counts as this many
 * budgets, and so an average over eight needs more than one to pass the budget. */
#define NJ_EWYK_OUTLIER_BUDGETS 4u

/* The average does not show tasks that are few and long. So what their holds take beyond the budget
 * counts by itself, as a share of the core's time, see note_tail(): more than 1 / NJ_EWYK_TAIL_OF
 * moves a class. A task of another class that comes in such a hold, which is that share of them,
 * waits for half of it on the average. A smaller share would move classes where others use the CPU:
 * on a virtual machine that loses a tenth of its time to its neighbours, that much of each hold is
 * theirs. Evidence is at least so many holds, and so much time without the longest of them: the
 * kernel may have taken the core away once, for however long. */
#define NJ_EWYK_TAIL_OF      4u
#define NJ_EWYK_TAIL_NS      (100 * NJ_MS)
#define NJ_EWYK_TAIL_HOLDS   4u
/* Telemetry tells the share of a tail that was seen in the last half or whole of this time. */
#define NJ_EWYK_TAIL_SEEN_NS (16 * NJ_SEC)

/* A class that comes back from the workers and is moved again within this time belongs there: what
 * it did on the core was to wait in the kernel, which a worker's CPU time does not show, or some of
 * its tasks take long. Each time it has to be calm for four times as many tasks before it comes
 * back, up to so many. */
#define NJ_EWYK_TRIAL_NS (60 * NJ_SEC)
#define NJ_EWYK_CALM_MAX 65536u

/* Time beyond the budget of a class: of its holds, and of workers' CPU time while it is moved. */
struct nj_task_tail {
    nj_ns since; /* what was seen lately began, */
    uint64_t ns; /* and was this much together */
    /* The account of note_tail(): */
    nj_ns at;            /* it had ... */
    uint64_t left_ns;    /* ... so much, */
    uint32_t of;         /* of which 1 ns leaks in each `of` */
    uint32_t n;          /* holds since it was empty */
    uint64_t longest_ns; /* of these, which is not in it */
};

/*
 * What tasks have in common: a route, on one lcore. Whoever makes it fills it with
 * nj_task_class_init() and keeps it as long as a task refers to it. Counters have one writer, the
 * lcore; others may read them.
 */
struct nj_task_class {
    const char *name;
    enum nj_task_type declared;  /* what its route says */
    enum nj_task_type type;      /* what it is taken for now */
    bool pinned;                 /* never moved to a worker, for its code relies on the lcore */
    uint32_t n_calm, n_calm_min; /* tasks below half the budget: in a row, and to return */
    nj_ns back_at;               /* when it came back from the workers last; 0: never */
    uint64_t ewma_x8_ns;         /* eight times the moving average of its holds */
    struct nj_task_tail tail;
    uint64_t longest_ns;    /* on the core without giving it back */
    uint64_t away_ns;       /* the longest that a worker took lately, by the clock; 0: unknown */
    uint64_t n_overruns;    /* holds beyond the budget */
    uint64_t n_would_block; /* it would have parked where it must not */
    uint64_t n_moves;       /* to the workers and back */
    /* Tasks, by how they were consumed. Those that wait, or are with a worker, are in none. */
    uint64_t n[NJ_N_MODES];
};

void nj_task_class_init(struct nj_task_class *, const char *name, enum nj_task_type declared);
/* What this task is consumed as. */
static inline enum nj_task_type nj_task_type_now(const struct nj_task *t)
{
    return t->as_declared ? t->class_of->declared : t->class_of->type;
}
/* Zero what is counted; the average, and what it is taken for, stay. */
void nj_task_class_reset(struct nj_task_class *);
/* A task was consumed without the strategy. Its lcore only. */
void nj_task_class_count(struct nj_task_class *, enum nj_mode mode);
static inline nj_ns nj_task_class_ewma(const struct nj_task_class *c)
{
    return c->ewma_x8_ns / 8;
}

/* The share of the core's time, in millionths, that its tasks took beyond the budget: what moves it
 * beside the average. Any thread; `now` by the clock of its strategy. */
uint32_t nj_task_class_tail_ppm(const struct nj_task_class *, nj_ns now);

enum nj_ewyk_would_block {
    NJ_EWYK_WOULD_BLOCK_DEFAULT, /* FATAL when NJ_CHECKED, else COUNTED */
    NJ_EWYK_WOULD_BLOCK_FATAL,   /* an assertion that names the class of the task */
    NJ_EWYK_WOULD_BLOCK_COUNTED, /* and said, once */
};

struct nj_ewyk_config {
    uint32_t n_fibers_max; /* 0: BLOCKING tasks go to the workers */
    uint32_t stack_bytes;  /* 0: NJ_FIBER_STACK_BYTES */
    uint32_t n_queue_max;  /* tasks that wait for a stack; and as many offered by applications */
    nj_ns now, budget_ns;  /* 0: NJ_EWYK_BUDGET_NS */
    nj_ns (*clock)(void *ctx); /* NULL: nothing is measured, and no class is moved */
    /* Give it to a worker, who calls its run(). False: they take no more. NULL: there are none.
     * Called in the root. */
    bool (*submit)(void *ctx, struct nj_task *);
    /* A class was moved, or one of its tasks would have parked where it must not. May be NULL. */
    void (*log)(void *ctx, const char *line);
    void *ctx;
    enum nj_ewyk_would_block would_block; /* a task parks in a context that must not */
};

struct nj_ewyk;

/* NULL when memory is refused. */
struct nj_ewyk *nj_ewyk_new(const struct nj_ewyk_config *config);
/* It must be idle. */
void nj_ewyk_free(struct nj_ewyk *);

/*
 * Consume a task, now or later, exactly once; or reject it, exactly once. Returns how; the task may
 * be gone. Called by a task (or anything else on a fiber): it is queued, whatever its type, and
 * NJ_MODE_PEC_QUEUE is returned; the root consumes it in the next nj_ewyk_run() as its type says,
 * and counts that.
 */
enum nj_mode nj_ewyk_offer(struct nj_ewyk *, struct nj_task *);

/* Call what belongs to a task of this class that was consumed before: inline, where it must not
 * block, and measured as the task was. Root only. */
void nj_ewyk_call(struct nj_ewyk *, struct nj_task_class *, void (*fn)(void *arg), void *arg);

/* Take back a task that was offered by the root and waits for a stack: it is neither run nor
 * rejected, nor counted. Root only. */
void nj_ewyk_withdraw(struct nj_ewyk *, struct nj_task *);

/* Reject a task that was not offered: for whoever has a queue before this one. Root only. */
void nj_ewyk_refuse(struct nj_ewyk *, struct nj_task *);
/* Call fn(ctx, task) for each task that is parked on a stack. Looks through all stacks. Root only,
 * and fn may wake or cancel what it is shown, but start nothing. */
void nj_ewyk_each_parked(struct nj_ewyk *, void (*fn)(void *ctx, struct nj_task *task), void *ctx);

/* Resume fibers that are due, start tasks that waited for a stack, consume what applications
 * offered; of each at most `n_max`. Root only. Returns how many ran. */
uint32_t nj_ewyk_run(struct nj_ewyk *, nj_ns now, uint32_t n_max);
/* Nothing happens before; 0: something can run now. NJ_NEVER. */
nj_ns nj_ewyk_next(const struct nj_ewyk *);
/* Nothing waits and no fiber is in use. What workers have is not known here. */
bool nj_ewyk_idle(const struct nj_ewyk *);

/* From now on tasks are rejected, those that wait included; for good. Fibers go on to their end.
 * Any context. */
void nj_ewyk_stop(struct nj_ewyk *);
/* End the present wait of every fiber, and all that follow. */
void nj_ewyk_cancel(struct nj_ewyk *);
/* As nj_fibers_trim(), while no task is on a fiber. */
uint32_t nj_ewyk_trim(struct nj_ewyk *, uint32_t n_keep, uint32_t n_max);
/* Whose task is on a fiber; of several, one. NULL: nobody's. */
const struct nj_task_class *nj_ewyk_on_fiber(const struct nj_ewyk *);

/* A task of this class is home that the workers took, and is counted; it was on a worker's core so
 * long (CPU time, not what it waited; 0: it did not run). A class that calmed down comes back. */
void nj_ewyk_ran(struct nj_ewyk *, struct nj_task_class *, nj_ns on_core_ns);

/* Who has the core, for a watchdog. */
struct nj_ewyk_hold {
    const struct nj_task_class *class_of;
    nj_ns since; /* 0 without a clock */
};
/* Any thread. False: nobody, or it changed while we looked; both mean that the lcore moves on. */
bool nj_ewyk_holder(const struct nj_ewyk *, struct nj_ewyk_hold *out);

/* A hold that is over and was beyond the budget and this: too short for who looks now and then. */
#define NJ_EWYK_LONG_NS (1 * NJ_MS)
struct nj_ewyk_long {
    struct nj_ewyk_hold hold;
    nj_ns ns;
};
/* The first since the last call. Any one thread. False: there was none. */
bool nj_ewyk_was_long(struct nj_ewyk *, struct nj_ewyk_long *out);

struct nj_ewyk_gauges {
    uint32_t n_fibers_in_use, n_fibers_high_water;
    uint32_t n_waiting; /* tasks, in both queues */
    uint64_t n_would_block;
};
struct nj_ewyk_gauges nj_ewyk_gauges(const struct nj_ewyk *);

#endif
