/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Execution strategies of threads, as in Jetty: which thread consumes a produced task, and which
 * thread continues producing.
 *
 * The adaptive strategy serves the worker pool (threads/worker_pool.h). perf/reference has others
 * for comparison; docs/ewyk.md compares all of them. A strategy has one producer and never calls it
 * on two threads at a time. Writes of produce() are visible to its next call on any thread.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "sched/task.h"
#include "strategy/strategy_state.h"

struct nj_strategy;

struct nj_producer {
    /*
     * Returns the next task, or NULL: there is none, or producing failed. After NULL a caller of
     * nj_strategy_produce_elsewhere() announces the next task. produce() may call it itself.
     */
    struct nj_task *(*produce)(struct nj_producer *);
    /*
     * Called by the producing thread before it consumes a task that may block: would produce()
     * return another task now? False: no recruit is sent, because the next task is announced by
     * nj_strategy_produce_elsewhere(). NULL: always true.
     */
    bool (*has_more)(struct nj_producer *);
};

/* Runs tasks that the producing thread does not consume; usually a struct nj_thread_pool. */
struct nj_executor;
struct nj_executor_ops {
    /* Runs the task later on another thread. False: refused; the task will not run. */
    bool (*execute)(struct nj_executor *, struct nj_task *task);
    /* True: a reserved thread has the task. Never blocks, queues, allocates or yields. */
    bool (*try_execute)(struct nj_executor *, struct nj_task *task);
    /* As execute(), but never blocks on another thread, for polling callers.
     * Requires a pool with n_min == n_max; otherwise it may create a thread. True: accepted, but
     * the task may still be rejected. May be NULL, see nj_strategy_config.uses_post. */
    bool (*post)(struct nj_executor *, struct nj_task *task);
};
struct nj_executor {
    const struct nj_executor_ops *ops;
};

struct nj_strategy_config {
    /* Consumes a task: nj_strategy_consume_adaptive(), or that of another strategy. False: another
     * thread produces, and this one leaves. `tagged`: the context must not block. */
    bool (*consume)(struct nj_strategy *, struct nj_task *, bool tagged);
    struct nj_producer *producer;
    struct nj_executor *executor;
    /* The declared type of a task; NULL: UNTYPED. OS_BLOCKING counts as BLOCKING: these threads may
     * block. */
    enum nj_task_type (*type_of)(const struct nj_task *);
    bool uses_post; /* nj_strategy_produce_elsewhere() uses post(), for callers that must not block
                     */
    /* The end of a task may enable produce() to return another one: the consumer requests
     * production even if another thread produces. */
    bool asks_after_run;
    /* Called after nj_strategy_stop(), when the last thread has left; the strategy may be freed.
     * Or NULL. */
    void (*on_stopped)(void *ctx);
    void *ctx;
};

struct nj_strategy_counters {
    uint64_t pc, pic, pec, epc; /* consumed tasks, by mode */
    uint64_t rejected;          /* those of pec that the executor refused */
    uint64_t dispatch_rejected; /* recruits that the executor refused */
    uint64_t recruits_sent;     /* recruits accepted by the executor */
    uint64_t recruits_useful;   /* ... that arrived, produced and found a task */
    uint64_t recruits_wasted;   /* ... that arrived and found none */
    uint64_t recruits_missed;   /* recruits not sent, as no reserved thread waited */
    uint64_t recruits_spared;   /* recruits not sent, as there was nothing to produce */
};
#define NJ_STRATEGY_N_COUNTERS (sizeof(struct nj_strategy_counters) / sizeof(uint64_t))

/* The fields are private to lib/strategy. To be embedded in the object that produces. */
struct nj_strategy {
    struct nj_strategy_config config;
    struct nj_task queued_recruit,
        sure_recruit;        /* at most one of each is on its way (strategy_state.h) */
    _Atomic uint32_t n_refs; /* the owner, threads inside, recruits on their way */
    _Atomic bool stopped;
    _Atomic uint64_t counts[NJ_STRATEGY_N_COUNTERS]; /* as in struct nj_strategy_counters */
    nj__state_word word NJ_CACHE_ALIGNED;
};

void nj_strategy_init(struct nj_strategy *s, const struct nj_strategy_config *config);

/*
 * Announces that tasks may be available, to another thread; runs no task here. False: the strategy
 * is stopped, or the executor refused, and possibly no thread produces, not even for earlier calls.
 * The caller calls again later, or rejects its queued tasks. Any thread.
 */
bool nj_strategy_produce_elsewhere(struct nj_strategy *s);

/* Ends production; running tasks continue. See on_stopped. Any thread. */
void nj_strategy_stop(struct nj_strategy *s);

/* Takes no lock. Any thread. */
struct nj_strategy_counters nj_strategy_counters(const struct nj_strategy *s);

/* Eat What You Kill: nj_strategy_config.consume of the server's strategy. */
bool nj_strategy_consume_adaptive(struct nj_strategy *s, struct nj_task *task, bool tagged);

/* --- the decision ----------------------------------------------------------------------------- */

/*
 * Chooses the mode by the task's type (from nj_task_type_or_blocking()), whether the context must
 * not block, and whether a recruit takes over: PC, PIC, EPC (NJ_MODE_EPC_INLINE) or PEC
 * (NJ_MODE_PEC_WORKER). Pure.
 */
enum nj_run_mode nj_run_mode_choose(enum nj_task_type type, bool must_not_block, bool recruit);
