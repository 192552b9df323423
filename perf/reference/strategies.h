/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Strategies of threads for comparison with the adaptive one (strategy/thread_strategy.h). They are
 * for benchmarks and tests, and not part of libnightjar.
 */
#pragma once

#include "reference/seats.h"
#include "strategy/thread_strategy.h"

enum nj_strategy_kind {
    NJ_STRATEGY_PC,  /* produce, consume: runs all tasks inline */
    NJ_STRATEGY_PEC, /* produce, execute, consume: queues all tasks that may block */
    NJ_STRATEGY_EPC, /* execute production, consume: queues a recruit for each of these tasks */
    NJ_STRATEGY_ADAPTIVE, /* Eat What You Kill: selects one of these modes for each task */
    NJ_STRATEGY_DUAL,     /* EPC while a second thread sleeps, else PEC */
    NJ_N_STRATEGIES
};

/* How each consumes a task. */
bool nj_consume_pc(struct nj_strategy *s, struct nj_task *task, bool tagged);
bool nj_consume_pec(struct nj_strategy *s, struct nj_task *task, bool tagged);
bool nj_consume_epc(struct nj_strategy *s, struct nj_task *task, bool tagged);
bool nj_consume_dual(struct nj_strategy *s, struct nj_task *task, bool tagged);
/* nj_strategy_config.consume of each, which marks the task's strategy on the stack, and its name.
 */
struct nj_reference_strategy {
    const char *name;
    bool (*consume)(struct nj_strategy *, struct nj_task *, bool tagged);
};
extern const struct nj_reference_strategy nj_strategies[NJ_N_STRATEGIES];

/* A strategy that may be the dual one. */
struct nj_dual {
    struct nj_strategy strategy;
    /* Two threads of the executor stay until the strategy is stopped, even with nothing to produce.
     * The pool needs a thread more for its queue. */
    bool keeps_two;
    _Atomic uint32_t n_wakes[NJ__N_SEATS]; /* of the sleeping threads */
    struct nj_task_ops recruit;
};

/* As nj_strategy_init(), nj_strategy_produce_elsewhere() and nj_strategy_stop(), for all of these
 * strategies: what the dual one does otherwise is here. It is in a struct nj_dual. */
void nj_reference_init(struct nj_strategy *s, const struct nj_strategy_config *config);
bool nj_reference_produce_elsewhere(struct nj_strategy *s);
void nj_reference_stop(struct nj_strategy *s);

/*
 * Announces that tasks may be available: produces and consumes on this thread, unless another
 * thread produces. The context must be allowed to run tasks. Inside a task that this strategy
 * consumes on this thread it is nj_reference_produce_elsewhere(). False: see there. The server's
 * lcores and workers do not call it.
 */
bool nj_reference_produce(struct nj_strategy *s);
/* Restarts a stopped strategy. False: not stopped, or a thread is still inside. Owner only. */
bool nj_reference_restart(struct nj_strategy *s);

/* dual.c */
void nj__dual_init(struct nj_strategy *s);
void nj__dual_produce(struct nj_strategy *s);
void nj__dual_wake_seated(struct nj_strategy *s);
void nj__dual_wake_stopped(struct nj_strategy *s);
