/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits of fibers, one after the other. */
#include <criterion/criterion.h>

#include "sched/fiber.h"
#include "support/fiber_root.h"

struct sleeper {
    nj_ns deadline;
    bool over;
};

static void sleeper(void *arg)
{
    struct sleeper *s = arg;

    nj_fiber_park(NULL, s->deadline);
    s->over = true;
}

/* After any number of earlier waits: finished ones free their entries in the ordered list. */
Test(sched_fiber_waits, short_waits_stay_exact)
{
    nj_ns now = 7 * NJ_SEC + 12345;
    struct nj_fibers_config config = {.n_max = 1, .now = 7 * NJ_SEC};
    struct nj_fibers *fs = nj_fibers_new(&config);

    cr_assert_not_null(fs);
    for (unsigned i = 0; i < 100; i++) {
        struct sleeper s = {.deadline = now + 70 * NJ_US};

        fibers_run(fs, now, 1);
        fiber_start(fs, sleeper, &s);
        now = s.deadline;
        fibers_run(fs, now, 1);
        cr_assert(s.over, "wait %u is late", i);
    }
    nj_fibers_free(fs);
}
