/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Per-thread context of strategies: the stack of nested strategies, and the state that is reset
 * between tasks (errno, must-not-block tag, floating-point mode).
 */
#include "strategy/strategy_thread_context.h"

#include <errno.h>

#include "sched/fiber.h"
#include "sched/fpu_control.h"

static struct nj__frame **top(void)
{
    static _Thread_local struct nj__frame *frame;
    return &frame;
}

struct nj__frame *nj__strategy_frame_top(void)
{
    return *top();
}

void nj__strategy_frame_set_top(struct nj__frame *frame)
{
    *top() = frame;
}

bool nj__must_dispatch_production(const struct nj_strategy *s)
{
    struct nj__frame *frame = nj__strategy_frame_top();

    if (frame && frame->depth >= NJ_STRATEGY_DEPTH_MAX)
        return true;
    for (; frame; frame = frame->below)
        if (frame->of == s)
            return true;
    return false;
}

void nj__run_task(const struct nj_strategy *of, struct nj_task *task, bool tag)
{
    struct nj__frame *below = nj__strategy_frame_top();
    struct nj__frame frame = {of, below, below ? below->depth + 1 : 1};
    bool before = tag && nj_noblock_enter();

    nj__strategy_frame_set_top(&frame);
    task->ops->run(task); /* may free it */
    nj__strategy_frame_set_top(below);
    if (tag)
        nj_noblock_leave(before);
}

void nj__run_task_in_clean_state(const struct nj_strategy *of, struct nj_task *task)
{
    uint64_t fp_mode = nj__fpu_get_control();

    nj__strategy_frame_set_top(NULL);
    nj_noblock_leave(false);
    errno = 0;
    if (of)
        nj__run_task(of, task, false);
    else
        task->ops->run(task);
    if (nj__fpu_get_control() != fp_mode)
        nj__fpu_set_control(fp_mode);
}
