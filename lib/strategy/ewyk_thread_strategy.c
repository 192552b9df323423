/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Eat What You Kill, the adaptive strategy of Jetty 9.4: the producing thread consumes a task if
 * another thread is sure to take over production, or if the task cannot block. Other tasks run at
 * once with the order not to block (EITHER) or are queued (BLOCKING). So most tasks find a hot
 * cache, and one thread can always produce.
 */
#include "base/assert.h"
#include "strategy/strategy_thread_context.h"
#include "strategy/thread_strategy_internal.h"

enum nj_run_mode nj_run_mode_choose(enum nj_task_type type, bool must_not_block, bool recruit)
{
    enum { PC = NJ_MODE_PC, PIC = NJ_MODE_PIC, EPC = NJ_MODE_EPC_INLINE, PEC = NJ_MODE_PEC_WORKER };
    /* [must not block][recruit] */
    static const uint8_t modes[NJ_N_TASK_TYPES][2][2] = {
        [NJ_NON_BLOCKING] = {{PC, PC}, {PC, PC}},
        [NJ_EITHER] = {{PIC, EPC}, {PC, PC}},
        [NJ_BLOCKING] = {{PEC, EPC}, {PEC, PEC}},
    };

    NJ_ASSERT(type == NJ_NON_BLOCKING || type == NJ_EITHER || type == NJ_BLOCKING);
    return (enum nj_run_mode)modes[type][must_not_block][recruit];
}

/* Sends a recruit only where it changes the mode. */
static enum nj_run_mode choose(struct nj_strategy *s, enum nj_task_type type, bool tagged,
                               bool (*leave)(struct nj_strategy *))
{
    bool matters = nj_run_mode_choose(type, tagged, true) == NJ_MODE_EPC_INLINE;

    return nj_run_mode_choose(type, tagged, matters && leave(s));
}

bool nj__consume_by_mode(struct nj_strategy *s, struct nj_task *task, bool tagged,
                         bool (*leave)(struct nj_strategy *))
{
    switch (choose(s, nj__strategy_type_of_task(s, task), tagged, leave)) {
    case NJ_MODE_PC:
        nj__count(s, NJ__COUNT_PC);
        nj__run_task(task, true);
        return true;
    case NJ_MODE_PIC:
        nj__count(s, NJ__COUNT_PIC);
        nj__run_task(task, true);
        return true;
    case NJ_MODE_PEC_WORKER:
        nj__execute(s, task);
        return true;
    case NJ_MODE_EPC_INLINE: /* IDLE is published: another thread may produce from now on */
        nj__count(s, NJ__COUNT_EPC);
        nj__run_task(task, false);
        return nj__state_try_resume(&s->word, s->config.asks_after_run);
    case NJ_MODE_EPC_PARKED: /* modes of fibers and counters only */
    case NJ_MODE_PEC_QUEUE:
    case NJ_MODE_REJECTED:
    case NJ_N_MODES:
        break;
    }
    NJ_UNREACHABLE("no mode of threads");
}

bool nj_strategy_consume_adaptive(struct nj_strategy *s, struct nj_task *task, bool tagged)
{
    return nj__consume_by_mode(s, task, tagged, nj__hand_over_production);
}
