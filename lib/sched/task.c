/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Normalises and combines task types, as Jetty's Invocable.combine() does.
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

enum nj_task_type nj_task_type_stricter(enum nj_task_type a, enum nj_task_type b)
{
    a = nj_task_type_or_blocking(a);
    b = nj_task_type_or_blocking(b);
    if (a == b || b == NJ_EITHER)
        return a;
    if (a == NJ_EITHER)
        return b;
    return a == NJ_OS_BLOCKING || b == NJ_OS_BLOCKING ? NJ_OS_BLOCKING : NJ_BLOCKING;
}
