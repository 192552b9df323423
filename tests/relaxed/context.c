/* SPDX-License-Identifier: BSD-3-Clause */
/* What a thread knows of itself, which lib/sched/thread_context.c and fiber.c keep in variables of
 * threads: relacy's threads are contexts of one. */
#include <string.h>

#include "relaxed.h"
#include "sched/fiber.h"
#include "sched/thread_context.h"

static bool tagged[RELAXED_THREADS_MAX];

void relaxed_untag(void)
{
    memset(tagged, 0, sizeof tagged);
}

bool nj_tag_must_not_block(void)
{
    return tagged[relaxed_self()];
}

bool nj_tag_set(void)
{
    bool before = nj_tag_must_not_block();

    tagged[relaxed_self()] = true;
    return before;
}

void nj_tag_restore(bool before)
{
    tagged[relaxed_self()] = before;
}

bool nj__must_dispatch(const struct nj_strategy *s)
{
    (void)s;
    return false; /* no task asks for production */
}

void nj__run_task(const struct nj_strategy *of, struct nj_task *task, bool tag)
{
    bool before = tag && nj_tag_set();

    (void)of;
    task->ops->run(task);
    if (tag)
        nj_tag_restore(before);
}

void nj__run_clean(const struct nj_strategy *of, struct nj_task *task)
{
    (void)of;
    nj_tag_restore(false);
    task->ops->run(task);
}
