/* SPDX-License-Identifier: BSD-3-Clause */
/* The join of two types, and the type that a value is taken for: as tables. */
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

/* EWYK 5.29 */
Test(sched_task, combine)
{
    enum {
        U = NJ_UNTYPED,
        N = NJ_NON_BLOCKING,
        E = NJ_EITHER,
        B = NJ_BLOCKING,
        O = NJ_OS_BLOCKING
    };
    static const int both[NJ_N_TASK_TYPES][NJ_N_TASK_TYPES] = {
        /*         U  N  E  B  O */
        [U] = {B, B, B, B, O}, [N] = {B, N, N, B, O}, [E] = {B, N, E, B, O},
        [B] = {B, B, B, B, O}, [O] = {O, O, O, O, O},
    };

    for (int a = 0; a < NJ_N_TASK_TYPES; a++)
        for (int b = 0; b < NJ_N_TASK_TYPES; b++)
            cr_assert_eq((int)nj_task_type_stricter((enum nj_task_type)a, (enum nj_task_type)b),
                         both[a][b], "%d with %d", a, b);
}
