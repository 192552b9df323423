/* SPDX-License-Identifier: BSD-3-Clause */
/* State of a thread that perf/reference/frames.c and fiber.c keep in thread-local variables, and
 * functions that depend on it. Threads of relacy are contexts of one thread. */
#include <string.h>

#include "reference/frames.h"
#include "relaxed.h"
#include "sched/fiber.h"
#include "strategy/strategy_thread_context.h"

static bool tagged[RELAXED_THREADS_MAX];

void relaxed_reset_noblock(void)
{
    memset(tagged, 0, sizeof tagged);
}

bool nj_noblock_is_set(void)
{
    return tagged[relaxed_self()];
}

bool nj_noblock_enter(void)
{
    bool before = nj_noblock_is_set();

    tagged[relaxed_self()] = true;
    return before;
}

void nj_noblock_leave(bool before)
{
    tagged[relaxed_self()] = before;
}

bool nj__must_dispatch_production(const struct nj_strategy *s)
{
    (void)s;
    return false; /* no task requests production */
}

void nj__frame_push(struct nj__frame *frame, const struct nj_strategy *of)
{
    (void)frame, (void)of;
}

void nj__frame_pop(const struct nj__frame *frame)
{
    (void)frame;
}

void nj__run_task(struct nj_task *task, bool tag)
{
    bool before = tag && nj_noblock_enter();

    task->ops->run(task);
    if (tag)
        nj_noblock_leave(before);
}

void nj__run_task_in_clean_state(struct nj_task *task)
{
    nj_noblock_leave(false);
    task->ops->run(task);
}
