/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Execute production, consume: the classic. For every task that may block another thread is asked
 * to produce, and the task runs at once where it was produced.
 *
 * The recruit goes through the ordinary queue, so nothing says that it will ever come: when all
 * threads consume, it waits behind them, and nobody produces. That is why there is
 * adaptive_strategy.c.
 */
#include "reference/strategies.h"
#include "sched/thread_context.h"
#include "sched/thread_strategy_internal.h"

static bool consume(struct nj_strategy *s, struct nj_task *task, bool tagged)
{
    (void)tagged;
    if (nj__type_of(s, task) == NJ_NON_BLOCKING) {
        nj__count(s, NJ__COUNT_PC);
        nj__run_task(s, task, true);
        return true;
    }
    nj__count(s, NJ__COUNT_EPC);
    if (nj__word_leave(&s->word, NJ__QUEUED))
        nj__send_recruit(s); /* refused: nobody takes over, and we resume */
    nj__run_task(s, task, false);
    return nj__word_resume(&s->word, s->config.asks_again);
}

const struct nj_strategy_ops nj_epc_ops = {.name = "epc", .consume = consume};
