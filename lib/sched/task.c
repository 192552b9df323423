/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Normalises task types.
 */
#include "sched/task.h"

enum nj_task_type nj_task_type_or_blocking(enum nj_task_type declared)
{
    switch (declared) {
    case NJ_NON_BLOCKING:
    case NJ_EITHER:
    case NJ_BLOCKING:
    case NJ_OS_BLOCKING:
        return declared;
    case NJ_UNTYPED:
    case NJ_N_TASK_TYPES:
        break;
    }
    return NJ_BLOCKING;
}
