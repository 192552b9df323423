/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs tasks of strategies, and resets per-thread state between them. */
#pragma once

#include <stdbool.h>

#include "sched/task.h"

/* Runs a task of a strategy; `tag`: it must not block. A task must leave by returning. */
void nj__run_task(struct nj_task *task, bool tag);

/* Runs a task at the bottom of a thread's stack, in clean state: errno is 0, the tag is off, and
 * the floating-point mode is the thread's. */
void nj__run_task_in_clean_state(struct nj_task *task);
