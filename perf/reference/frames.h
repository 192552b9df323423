/* SPDX-License-Identifier: BSD-3-Clause */
/* The strategies whose tasks run on this thread, so that a task never becomes the producer of its
 * own strategy. */
#pragma once

#include <stdbool.h>

#include "sched/task.h"

struct nj_strategy;

/* A strategy that consumes a task on this thread. Frames nest when a task calls another strategy.
 */
struct nj__frame {
    const struct nj_strategy *of;
    struct nj__frame *below;
    unsigned depth;
};

/* The most nested strategies on one stack: the poll loop's, a connection's, and two spare. Deeper
 * ones are dispatched, which bounds the stack. */
#define NJ_STRATEGY_DEPTH_MAX 4u

/* The innermost frame of this thread. Tests that run several threads on one set it. */
struct nj__frame *nj__strategy_frame_top(void);
void nj__strategy_frame_set_top(struct nj__frame *top);

void nj__frame_push(struct nj__frame *frame, const struct nj_strategy *of);
void nj__frame_pop(const struct nj__frame *frame);

/* Must produce() of this strategy be a dispatch() here? True inside one of its own tasks, or at
 * NJ_STRATEGY_DEPTH_MAX. */
bool nj__must_dispatch_production(const struct nj_strategy *s);

/* As nj__run_task_in_clean_state(), for an executor that knows the strategy of the task. NULL: it
 * belongs to none. */
void nj__run_task_of(const struct nj_strategy *of, struct nj_task *task);
