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

struct uncancelled {
    struct nj_waiter w;
    struct nj_fiber *self;
    enum nj_wake_reason why, next;
    bool over;
};

static void wait_uncancelled(void *arg)
{
    struct uncancelled *u = arg;

    u->self = nj_fiber_self();
    u->why = nj_fiber_park_uncancelled(&u->w);
    u->next = nj_fiber_park(NULL, NJ_NEVER);
    u->over = true;
}

/* Cancellation neither ends such a wait, nor is it forgotten afterwards. */
Test(sched_fiber_waits, cancellation_does_not_end_an_uncancelled_wait)
{
    for (unsigned cancelled_before = 0; cancelled_before < 2; cancelled_before++) {
        struct nj_fibers_config config = {.n_max = 1, .now = NJ_SEC};
        struct nj_fibers *fs = nj_fibers_new(&config);
        struct uncancelled u = {.over = false};

        cr_assert_not_null(fs);
        fibers_run(fs, NJ_SEC, 1);
        fiber_start(fs, wait_uncancelled, &u);
        for (unsigned i = 0; i <= cancelled_before; i++) {
            nj_fiber_cancel(u.self);
            fibers_run(fs, NJ_SEC, 1);
            cr_assert(!u.over);
        }
        cr_assert(nj_fiber_wake(u.w, NJ_WAKE_OK));
        fibers_run(fs, NJ_SEC, 1);
        cr_assert(u.over);
        cr_assert_eq(u.why, NJ_WAKE_OK);
        cr_assert_eq(u.next, NJ_WAKE_CANCELLED);
        nj_fibers_free(fs);
    }
}
