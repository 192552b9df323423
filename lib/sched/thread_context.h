/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a thread knows of what it is doing: whose tasks it is in the middle of, so that a task never
 * becomes the producer of its own strategy, and the traces that a task could leave to the next one.
 */
#ifndef NJ_SCHED_THREAD_CONTEXT_H
#define NJ_SCHED_THREAD_CONTEXT_H

#include <stdbool.h>

#include "sched/task.h"

struct nj_strategy;

/* A strategy whose task runs on this thread; they nest when a task is a producer for others. */
struct nj__frame {
    const struct nj_strategy *of;
    struct nj__frame *below;
    unsigned depth;
};

/* Strategies one inside the other on one stack: the poll loop's, a connection's, and two spare.
 * What is deeper is dispatched, so that stacks stay small however tasks call each other. */
#define NJ_STRATEGY_DEPTH_MAX 4u

/* The innermost frame of this thread. A test that runs several threads on one changes it. */
struct nj__frame *nj__frame_top(void);
void nj__frame_set_top(struct nj__frame *top);

/* Must produce() of that strategy be a dispatch() here? In the middle of one of its tasks, or
 * NJ_STRATEGY_DEPTH_MAX deep. */
bool nj__must_dispatch(const struct nj_strategy *s);

/* Run a task of that strategy; `tag`: it must not block. A task may not leave but by returning. */
void nj__run_task(const struct nj_strategy *of, struct nj_task *task, bool tag);

/* The same at the bottom of a thread's stack, `of` NULL for what is nobody's task. Nothing of the
 * last task is left: errno is 0, the tag off, floating point in the mode that the thread has. */
void nj__run_clean(const struct nj_strategy *of, struct nj_task *task);

#endif
