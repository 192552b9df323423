/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The per-thread context of strategies: the strategies whose tasks run on this thread, so that a
 * task never becomes the producer of its own strategy; and the reset of per-thread state between
 * tasks.
 */
#pragma once

#include <stdbool.h>

#include "sched/task.h"

struct nj_strategy;

/* A strategy whose task runs on this thread. Frames nest when a task calls another strategy. */
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

/* Must produce() of this strategy be a dispatch() here? True inside one of its own tasks, or at
 * NJ_STRATEGY_DEPTH_MAX. */
bool nj__must_dispatch_production(const struct nj_strategy *s);

/* Runs a task of this strategy; `tag`: it must not block. A task must leave by returning. */
void nj__run_task(const struct nj_strategy *of, struct nj_task *task, bool tag);

/* The same at the bottom of a thread's stack, in clean state: errno is 0, the tag is off, and the
 * floating-point mode is the thread's. `of` NULL: the task belongs to no strategy. */
void nj__run_task_in_clean_state(const struct nj_strategy *of, struct nj_task *task);
