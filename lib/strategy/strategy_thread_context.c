/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Per-thread context of strategies: the state that is reset between tasks (errno, must-not-block
 * tag, floating-point mode).
 */
#include "strategy/strategy_thread_context.h"

#include <errno.h>

#include "sched/fiber.h"
#include "sched/fpu_control.h"

void nj__run_task(struct nj_task *task, bool tag)
{
    bool before = tag && nj_noblock_enter();

    task->ops->run(task); /* may free it */
    if (tag)
        nj_noblock_leave(before);
}

void nj__run_task_in_clean_state(struct nj_task *task)
{
    uint64_t fp_mode = nj__fpu_get_control();

    nj_noblock_leave(false);
    errno = 0;
    task->ops->run(task);
    if (nj__fpu_get_control() != fp_mode)
        nj__fpu_set_control(fp_mode);
}
