/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Execute production, consume (Jetty's ExecuteProduceConsume). For every task that may block
 * another thread is recruited to produce, and the task runs at once where it was produced.
 *
 * The recruit goes through the ordinary queue and may never run: when all threads consume, it waits
 * behind them, and no thread produces. ewyk_thread_strategy.c solves that.
 */
#include "reference/strategies.h"
#include "strategy/strategy_thread_context.h"
#include "strategy/thread_strategy_internal.h"

bool nj_consume_epc(struct nj_strategy *s, struct nj_task *task, bool tagged)
{
    (void)tagged;
    if (nj__strategy_type_of_task(s, task) == NJ_NON_BLOCKING) {
        nj__count(s, NJ__COUNT_PC);
        nj__run_task(task, true);
        return true;
    }
    nj__count(s, NJ__COUNT_EPC);
    if (nj__state_leave_and_recruit(&s->word, NJ__RECRUIT_QUEUED))
        nj__queue_recruit(s); /* refused: nobody takes over, and we resume */
    nj__run_task(task, false);
    return nj__state_try_resume(&s->word, s->config.asks_after_run);
}
