/* SPDX-License-Identifier: BSD-3-Clause */
/* The type that a value is taken for, as a table. */
#include <criterion/criterion.h>

#include "sched/task.h"

/* EWYK 5.24: untyped is BLOCKING. */
Test(sched_task, type_of)
{
    static const enum nj_task_type taken_for[] = {[NJ_UNTYPED] = NJ_BLOCKING,
                                                  [NJ_NON_BLOCKING] = NJ_NON_BLOCKING,
                                                  [NJ_EITHER] = NJ_EITHER,
                                                  [NJ_BLOCKING] = NJ_BLOCKING,
                                                  [NJ_OS_BLOCKING] = NJ_OS_BLOCKING};

    for (int t = NJ_UNTYPED; t < NJ_N_TASK_TYPES; t++)
        cr_assert_eq(nj_task_type_or_blocking((enum nj_task_type)t), taken_for[t], "type %d", t);
    cr_assert_eq(nj_task_type_or_blocking(NJ_N_TASK_TYPES), NJ_BLOCKING);
    cr_assert_eq(nj_task_type_or_blocking((enum nj_task_type)77), NJ_BLOCKING);
}
