/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Produce, execute, consume (Jetty's ProduceExecuteConsume): a task that may block is queued for
 * another thread, and consumed with a cold cache. Other tasks run inline.
 */
#include "base/assert.h"
#include "reference/strategies.h"
#include "strategy/strategy_thread_context.h"
#include "strategy/thread_strategy_internal.h"

bool nj_consume_pec(struct nj_strategy *s, struct nj_task *task, bool tagged)
{
    switch (nj__strategy_type_of_task(s, task)) {
    case NJ_NON_BLOCKING:
        nj__count(s, NJ__COUNT_PC);
        nj__run_task(task, true);
        return true;
    case NJ_EITHER:
        nj__count(s, tagged ? NJ__COUNT_PC : NJ__COUNT_PIC);
        nj__run_task(task, true);
        return true;
    case NJ_BLOCKING:
        nj__execute(s, task);
        return true;
    case NJ_UNTYPED:
    case NJ_OS_BLOCKING:
    case NJ_N_TASK_TYPES:
        break;
    }
    NJ_UNREACHABLE("no type of nj__strategy_type_of_task()");
}
