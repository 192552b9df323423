/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Produce, consume (Jetty's ProduceConsume): runs every task inline, with a hot cache. A task that
 * blocks delays all others.
 */
#include "reference/strategies.h"
#include "strategy/strategy_thread_context.h"
#include "strategy/thread_strategy_internal.h"

bool nj_consume_pc(struct nj_strategy *s, struct nj_task *task, bool tagged)
{
    (void)tagged; /* an existing tag stays set */
    nj__count(s, NJ__COUNT_PC);
    nj__run_task(task, nj__strategy_type_of_task(s, task) != NJ_BLOCKING);
    return true;
}
