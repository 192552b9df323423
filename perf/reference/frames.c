/* SPDX-License-Identifier: BSD-3-Clause */
/* The stack of nested strategies of each thread. */
#include "reference/frames.h"

#include <stddef.h>

#include "strategy/strategy_thread_context.h"

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

void nj__frame_push(struct nj__frame *frame, const struct nj_strategy *of)
{
    struct nj__frame *below = nj__strategy_frame_top();

    *frame = (struct nj__frame){of, below, below ? below->depth + 1 : 1};
    nj__strategy_frame_set_top(frame);
}

void nj__frame_pop(const struct nj__frame *frame)
{
    nj__strategy_frame_set_top(frame->below);
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

void nj__run_task_of(const struct nj_strategy *of, struct nj_task *task)
{
    struct nj__frame frame;

    nj__strategy_frame_set_top(NULL);
    if (of)
        nj__frame_push(&frame, of);
    nj__run_task_in_clean_state(task);
    nj__strategy_frame_set_top(NULL);
}
