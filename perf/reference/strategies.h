/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Strategies of threads for comparison with the adaptive one (strategy/thread_strategy.h). They are
 * for benchmarks and tests, and not part of libnightjar.
 */
#ifndef NJ_REFERENCE_STRATEGIES_H
#define NJ_REFERENCE_STRATEGIES_H

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

extern const struct nj_strategy_ops nj_pc_ops, nj_pec_ops, nj_epc_ops, nj_dual_ops;
extern const struct nj_strategy_ops *const nj_strategies[NJ_N_STRATEGIES];

/* nj_strategy_config.ops_data of the dual strategy. */
struct nj_dual_state {
    /* Two threads of the executor stay until the strategy is stopped, even with nothing to produce.
     * The caller leases them (strategy/thread_pool.h). */
    bool keeps_two;
    _Atomic uint32_t n_wakes[NJ__N_SEATS]; /* of the sleeping threads */
};

#endif
