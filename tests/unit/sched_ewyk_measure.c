/* SPDX-License-Identifier: BSD-3-Clause */
/* Measurements of the lcore's strategy: which task holds the core, and which route is moved to the
 * workers. */
#include "ewyk_rig.h"

#define BUDGET NJ_EWYK_BUDGET_NS

/* Holds the core for the time *arg. */
static void computes(struct job *j)
{
    j->rig->now += *(const nj_ns *)j->arg;
}

static enum nj_run_mode compute(struct rig *r, struct nj_task_class *c, nj_ns ns)
{
    struct job j;

    job_init(&j, r, c, computes);
    j.arg = &ns;
    r->n_at_worker = 0;
    return nj_ewyk_offer(r->e, &j.task);
}

/* --- the watchdog ----------------------------------------------------------------------------- */

static void looks_at_holder(struct job *j)
{
    struct nj_ewyk_hold *hold = j->arg;
    nj_ns since = j->rig->now;

    j->rig->now += 3 * NJ_MS;
    cr_assert(nj_ewyk_current_core_holder(j->rig->e, hold));
    cr_assert_eq(hold->class_of, j->task.class_of);
    cr_assert_eq(hold->since, since);
    if (nj_noblock_is_set())
        return;
    nj_fiber_park(&j->w, NJ_NEVER);
    cr_assert(nj_ewyk_current_core_holder(j->rig->e, hold));
    cr_assert_eq(hold->since, since + 53 * NJ_MS, "of this turn, not of the one before");
}

/* EWYK 5.55: another thread can name the route that has the core, and since when. */
Test(sched_ewyk_measure, holder)
{
    struct rig *r = rig_new(1, 0);
    struct nj_task_class *class_of[] = {&r->blocking, &r->non_blocking, &r->either};
    struct nj_ewyk_hold hold;
    struct job j[3];

    cr_assert_not(nj_ewyk_current_core_holder(r->e, &hold), "nobody yet");
    for (int i = 0; i < 3; i++) { /* on a fiber, PC, PIC */
        job_init(&j[i], r, class_of[i], looks_at_holder);
        j[i].arg = &hold;
        r->now = 8 * NJ_SEC;
        nj_ewyk_offer(r->e, &j[i].task);
        cr_assert_eq(j[i].n_run, 1);
        cr_assert_not(nj_ewyk_current_core_holder(r->e, &hold), "it parked or ended");
    }
    r->now = 8 * NJ_SEC + 53 * NJ_MS;
    nj_fiber_wake(j[0].w, NJ_WAKE_OK);
    nj_ewyk_run(r->e, r->now, 1);
    cr_assert_eq(j[0].n_ended, 1);
    cr_assert_not(nj_ewyk_current_core_holder(r->e, &hold));
    rig_free(r);
}

static void computes_waits_computes(struct job *j)
{
    computes(j);
    waits(j);
    computes(j);
}

/* EWYK 5.55: the measured time is the time on the core without a yield, not the duration of the
 * task. */
Test(sched_ewyk_measure, longest_hold_and_overruns)
{
    struct rig *r = rig_new(2, 0);
    nj_ns ns[2] = {BUDGET, BUDGET + 1};
    struct job j[2];

    for (int i = 0; i < 2; i++) {
        job_init(&j[i], r, &r->blocking, computes_waits_computes);
        j[i].arg = &ns[i];
        nj_ewyk_offer(r->e, &j[i].task);
    }
    cr_assert_eq(r->blocking.n_overruns, 1);
    cr_assert_eq(r->blocking.longest_ns, BUDGET + 1);
    r->now += NJ_SEC;
    for (int i = 0; i < 2; i++)
        nj_fiber_wake(j[i].w, NJ_WAKE_OK);
    cr_assert_eq(nj_ewyk_run(r->e, r->now, 2), 2);
    cr_assert_eq(r->blocking.n_overruns, 2, "each by itself");
    cr_assert_eq(r->blocking.longest_ns, BUDGET + 1);
    nj_task_class_reset_counters(&r->blocking);
    cr_assert_eq(r->blocking.longest_ns + r->blocking.n_overruns, 0);
    rig_free(r);
}

/* A task that waited for a stack is measured from its own start. */
Test(sched_ewyk_measure, queued_tasks_are_charged_their_own_time)
{
    struct rig *r = rig_new(1, 2);
    nj_ns ns = 7;
    struct job stuck, j[2];

    job_offer(&stuck, r, &r->either, waits);
    for (int i = 0; i < 2; i++) {
        job_init(&j[i], r, &r->blocking, computes);
        j[i].arg = &ns;
        nj_ewyk_offer(r->e, &j[i].task);
    }
    r->now += NJ_SEC;
    nj_fiber_wake(stuck.w, NJ_WAKE_OK);
    nj_ewyk_run(r->e, r->now, 10);
    cr_assert_eq(r->blocking.longest_ns, 7);
    rig_free(r);
}

/* --- routes that belong to workers ------------------------------------------------------------ */

/* Number of tasks of this length until the class is moved; 0: more than 1000. */
static unsigned until_moved(struct rig *r, struct nj_task_class *c, nj_ns ns)
{
    for (unsigned i = 1; i <= 1000; i++) {
        compute(r, c, ns);
        if (c->type == NJ_OS_BLOCKING)
            return i;
    }
    return 0;
}

Test(sched_ewyk_measure, a_hog_is_moved_and_comes_back)
{
    struct nj_task_class *c;

    for (int i = 0; i < 3; i++) {
        struct rig *r = rig_new(1, 0);
        enum nj_run_mode before;
        c = i == 0 ? &r->non_blocking : i == 1 ? &r->either : &r->blocking;
        before = compute(r, c, 1);
        unsigned n = until_moved(r, c, 2 * BUDGET);
        cr_assert(n > 1 && n < 16, "%u", n);
        cr_assert_eq(r->n_logged, 1);
        cr_assert_not_null(strstr(r->line, "moved to the workers"));
        cr_assert_eq(strncmp(r->line, c->name, strlen(c->name)), 0);
        cr_assert_eq(compute(r, c, 0), NJ_MODE_PEC_WORKER);
        cr_assert_eq(r->n_at_worker, 1);
        /* Not at the budget, not just below it: at half of it. */
        for (int k = 0; k < 1000; k++)
            nj_ewyk_account_worker_run(r->e, c, BUDGET * 6 / 10);
        cr_assert_eq(c->type, NJ_OS_BLOCKING);
        for (int k = 0; k < 30; k++)
            nj_ewyk_account_worker_run(r->e, c, BUDGET * 4 / 10);
        cr_assert_eq(c->type, c->declared);
        cr_assert_eq(r->n_logged, 2);
        cr_assert_not_null(strstr(r->line, "back from the workers"));
        cr_assert_eq(c->n_moves, 2);
        cr_assert_eq(compute(r, c, 1), before);
        rig_free(r);
    }
}

/* EWYK 5.55: a later query reports the first long hold since the last query. */
Test(sched_ewyk_measure, a_long_hold_that_ended)
{
    struct rig *r = rig_new(1, 0);
    struct nj_ewyk_long_hold was;

    compute(r, &r->blocking, NJ_EWYK_LONG_HOLD_NS);
    cr_assert_not(nj_ewyk_pop_long_hold(r->e, &was), "not longer than that");
    nj_ns began = r->now;
    compute(r, &r->blocking, 2 * NJ_MS);
    compute(r, &r->either, 9 * NJ_MS);
    cr_assert(nj_ewyk_pop_long_hold(r->e, &was));
    cr_assert(was.hold.class_of == &r->blocking && was.hold.since == began && was.ns == 2 * NJ_MS);
    cr_assert_not(nj_ewyk_pop_long_hold(r->e, &was));
    compute(r, &r->either, 9 * NJ_MS);
    cr_assert(nj_ewyk_pop_long_hold(r->e, &was));
    cr_assert_eq(was.hold.class_of, &r->either);
    rig_free(r);
}

/* One that waits in the kernel: long on the core, but no CPU time of a worker. Of a thousand tasks
 * few have the core, and there are few lines about it; and it is forgiven when it has changed. */
Test(sched_ewyk_measure, who_goes_to_and_fro_stays_longer)
{
    struct rig *r = rig_new(1, 0);
    struct nj_task_class *c = &r->non_blocking;
    unsigned n_core = 0;

    for (int i = 0; i < 1000; i++) {
        enum nj_run_mode mode = compute(r, c, 5 * NJ_MS);
        if (mode == NJ_MODE_PEC_WORKER)
            nj_ewyk_account_worker_run(r->e, c, 10 * NJ_US);
        n_core += mode == NJ_MODE_PC;
    }
    cr_expect_lt(n_core, 30, "%u of 1000 held the core", n_core);
    cr_expect_leq(r->n_logged, 12);
    cr_expect_gt(c->n_moves, 2, "it is tried again");
    for (uint32_t i = 0; i < NJ_EWYK_FAST_RUNS_MAX; i++)
        nj_ewyk_account_worker_run(r->e, c, 10 * NJ_US);
    cr_expect_eq(c->type, NJ_NON_BLOCKING);
    r->now += NJ_EWYK_PROBATION_NS;
    cr_expect_gt(until_moved(r, c, 2 * BUDGET), 1);
    for (int i = 0; i < 20; i++)
        nj_ewyk_account_worker_run(r->e, c, 10 * NJ_US);
    cr_expect_eq(c->type, NJ_NON_BLOCKING, "a new beginning");
    rig_free(r);
}

/* The kernel preempted the core for 50 ms: rare outliers do not move a class. */
Test(sched_ewyk_measure, one_outlier_moves_nothing)
{
    struct rig *r = rig_new(1, 0);

    for (int i = 0; i < 20; i++) {
        cr_assert_eq(compute(r, &r->blocking, 50 * NJ_MS), NJ_MODE_EPC_INLINE);
        for (int k = 0; k < 20; k++)
            cr_assert_eq(compute(r, &r->blocking, BUDGET / 10), NJ_MODE_EPC_INLINE);
        r->now += 300 * NJ_MS;
    }
    cr_assert_eq(r->blocking.n_moves, 0);
    cr_assert_eq(r->blocking.n_overruns, 20);
    cr_assert_eq(r->blocking.longest_ns, 50 * NJ_MS);
    rig_free(r);
}

/* The workers accept no more tasks: a task that is offered again is consumed as its class declares.
 */
Test(sched_ewyk_measure, moved_and_the_workers_are_full)
{
    for (int i = 0; i < 3; i++) {
        struct rig *r = rig_new(1, 0);
        struct nj_task_class *c = i == 0 ? &r->non_blocking : i == 1 ? &r->either : &r->blocking;
        enum nj_run_mode before = compute(r, c, 1);
        struct job j;

        cr_assert_gt(until_moved(r, c, 2 * BUDGET), 0);
        r->workers_full = true;
        cr_assert_eq(job_offer(&j, r, c, NULL), NJ_MODE_REJECTED);
        job_init(&j, r, c, NULL);
        j.task.as_declared = true;
        cr_assert_eq(nj_ewyk_offer(r->e, &j.task), before);
        cr_assert_eq(c->type, NJ_OS_BLOCKING);
        rig_free(r);
    }
}

Test(sched_ewyk_measure, who_is_not_moved)
{
    struct rig *r = rig_new(1, 0);

    cr_assert_eq(until_moved(r, &r->either, BUDGET), 0, "at the budget");
    r->blocking.pinned = true;
    cr_assert_eq(until_moved(r, &r->blocking, 10 * BUDGET), 0, "pinned");
    cr_assert_gt(until_moved(r, &r->non_blocking, 10 * BUDGET), 0);
    r->non_blocking.pinned = true;
    nj_ewyk_account_worker_run(r->e, &r->non_blocking, 10 * BUDGET);
    cr_assert_eq(r->non_blocking.type, NJ_NON_BLOCKING, "pinned later");
    for (int i = 0; i < 100; i++)
        nj_ewyk_account_worker_run(r->e, &r->os_blocking, 10 * BUDGET);
    cr_assert_eq(r->os_blocking.n_moves, 0, "there already");
    rig_free(r);

    r = calloc(1, sizeof *r);
    struct nj_ewyk_config config = rig_config(r, 1, 0);
    config.submit = NULL;
    rig_from(r, &config);
    cr_assert_eq(until_moved(r, &r->blocking, 10 * BUDGET), 0, "there are no workers");
    cr_assert_eq(r->blocking.n_overruns, 1000);
    rig_free(r);
}

/* The strategy works without a clock, and reports no times. */
Test(sched_ewyk_measure, without_a_clock)
{
    struct rig *r = calloc(1, sizeof *r);
    struct nj_ewyk_config config = rig_config(r, 1, 0);

    config.clock = NULL;
    rig_from(r, &config);
    for (int i = 0; i < 100; i++)
        cr_assert_eq(compute(r, &r->blocking, NJ_SEC), NJ_MODE_EPC_INLINE);
    cr_assert_eq(r->blocking.longest_ns + r->blocking.n_overruns + r->blocking.n_moves, 0);
    rig_free(r);
}

/* --- tails: few tasks, and long ------------------------------------------------------------------
 */

/* Tasks of `ns`, one each `every`, until the class is moved; at most n. Returns how many. */
static unsigned until_tail_moves(struct rig *r, struct nj_task_class *c, nj_ns ns, nj_ns every,
                                 unsigned n)
{
    unsigned i = 0;

    for (; i < n && c->type == c->declared; i++) {
        nj_ns next = r->now + every;
        compute(r, c, ns);
        for (unsigned k = 0; k < 9; k++) /* the average does not show it */
            compute(r, c, BUDGET / 50);
        r->now = next > r->now ? next : r->now;
    }
    return i;
}

/* One task in ten holds the core for 5 ms, which is most of its time; or long tasks, far apart, one
 * after the other. */
Test(sched_ewyk_measure, a_heavy_tail_is_moved)
{
    static const struct {
        nj_ns ns, every;
        nj_ns before; /* one hold that is no tail */
    } moved[] = {{5 * NJ_MS, 0, 0},
                 {200 * NJ_MS, 500 * NJ_MS, 0},
                 {2 * NJ_MS, 6 * NJ_MS, 0},
                 {5 * NJ_MS, 16 * NJ_MS, 10 * NJ_SEC},
                 {NJ_SEC, NJ_SEC, 0}};

    for (size_t i = 0; i < NJ_ARRAY_LEN(moved); i++) {
        struct rig *r = rig_new(1, 0);
        struct nj_task_class *c = &r->non_blocking;
        if (moved[i].before)
            compute(r, c, moved[i].before);
        nj_ns began = r->now;
        unsigned n = until_tail_moves(r, c, moved[i].ns, moved[i].every, 1000);
        cr_expect_eq(c->type, NJ_OS_BLOCKING, "%zu", i);
        cr_expect_geq(n, NJ_EWYK_TAIL_HOLDS, "%zu", i);
        cr_expect_lt(r->now - began, 6 * NJ_SEC, "%zu", i);
        cr_expect_leq(nj_task_class_ewma(c), BUDGET);
        cr_expect_not_null(strstr(r->line, "on the core beyond the budget"), "%s", r->line);
        rig_free(r);
    }
}

/* A share below the limit, or one long hold alone, moves no class: the kernel may have preempted
 * the task. */
Test(sched_ewyk_measure, a_light_tail_stays)
{
    static const struct {
        nj_ns ns, every;
    } stays[] = {{5 * NJ_MS, NJ_SEC}, {50 * NJ_MS, NJ_SEC}, {240 * NJ_MS, NJ_SEC}};

    for (size_t i = 0; i < NJ_ARRAY_LEN(stays); i++) {
        struct rig *r = rig_new(1, 0);
        until_tail_moves(r, &r->non_blocking, stays[i].ns, stays[i].every, 2000);
        cr_expect_eq(r->non_blocking.type, NJ_NON_BLOCKING, "%zu", i);
        rig_free(r);
    }
    struct rig *r = rig_new(1, 0);
    cr_expect_eq(nj_task_class_overrun_time_ppm(&r->non_blocking, r->now), 0);
    compute(r, &r->non_blocking, BUDGET + NJ_MS);
    r->now += 9 * NJ_MS - BUDGET;
    cr_expect_eq(nj_task_class_overrun_time_ppm(&r->non_blocking, r->now), 100000, "1 ms of 10");
    compute(r, &r->non_blocking, 10 * NJ_SEC);
    until_tail_moves(r, &r->non_blocking, BUDGET + NJ_US, 0, 2000);
    cr_expect_eq(r->non_blocking.type, NJ_NON_BLOCKING);
    rig_free(r);
}

/* The class stays moved while workers see the tail, and returns some time after the tail is over.
 * It is moved again only by as much evidence as the first time. */
Test(sched_ewyk_measure, a_tail_keeps_its_class_away)
{
    struct rig *r = rig_new(1, 0);
    struct nj_task_class *c = &r->non_blocking;
    unsigned n = until_tail_moves(r, c, 5 * NJ_MS, 0, 1000), n_fast_runs = 0;

    cr_assert_eq(c->type, NJ_OS_BLOCKING);
    for (unsigned i = 0; i < 20000; i++) {
        nj_ns ns = i % 10 ? BUDGET / 50 : 5 * NJ_MS;
        r->now += ns;
        nj_ewyk_account_worker_run(r->e, c, ns);
        cr_assert_eq(c->type, NJ_OS_BLOCKING, "%u", i);
    }
    for (; c->type == NJ_OS_BLOCKING && n_fast_runs < 1000000; n_fast_runs++) {
        r->now += 100 * NJ_US;
        nj_ewyk_account_worker_run(r->e, c, BUDGET / 50);
    }
    cr_expect_eq(c->type, NJ_NON_BLOCKING);
    cr_expect_gt(n_fast_runs * 100 * NJ_US, 100 * NJ_MS, "after %u", n_fast_runs);
    cr_expect_lt(n_fast_runs * 100 * NJ_US, 10 * NJ_SEC, "after %u", n_fast_runs);
    cr_expect_geq(until_tail_moves(r, c, 5 * NJ_MS, 0, 1000) + 1, n);
    rig_free(r);
}

/* Long tasks, each `every`, and 20 quick ones between two of them. Returns how many of `n` long
 * ones ran on the core. */
static unsigned n_on_core(struct rig *r, struct nj_task_class *c, nj_ns hold, nj_ns every,
                          unsigned n)
{
    unsigned n_core = 0;

    for (unsigned i = 0; i < n; i++) {
        nj_ns next = r->now + every;
        bool moved = c->type != c->declared;
        if (!moved) {
            compute(r, c, hold);
            n_core++;
        }
        for (unsigned k = 0; k < 20; k++) {
            r->now += (next - r->now) / (21 - k);
            if (c->type == c->declared)
                compute(r, c, BUDGET / 50);
            else
                nj_ewyk_account_worker_run(r->e, c, BUDGET / 50);
        }
        r->now = next > r->now ? next : r->now;
        if (moved && c->type != c->declared)
            nj_ewyk_account_worker_run(r->e, c, hold);
    }
    return n_core;
}

/* Long holds that are far apart do not return the class in between. A share that is too small to
 * move the class does not return it either. */
Test(sched_ewyk_measure, a_tail_of_long_holds_keeps_its_class_away)
{
    static const struct {
        nj_ns hold, every;
    } away[] = {{5 * NJ_MS, 15 * NJ_MS},
                {200 * NJ_MS, 600 * NJ_MS},
                {NJ_SEC, 3 * NJ_SEC},
                {2 * NJ_SEC, 7 * NJ_SEC},
                {5 * NJ_SEC, 10 * NJ_SEC}};

    for (size_t i = 0; i < NJ_ARRAY_LEN(away); i++) {
        struct rig *r = rig_new(1, 0);
        struct nj_task_class *c = &r->non_blocking;
        n_on_core(r, c, away[i].hold, away[i].every, 300);
        cr_expect_eq(c->n_moves, 1, "%zu: %lu", i, c->n_moves);
        n_on_core(r, c, away[i].hold, 6 * away[i].hold, 300); /* a sixth */
        cr_expect_eq(c->n_moves, 1, "%zu: %lu", i, c->n_moves);
        n_on_core(r, c, away[i].hold, 12 * away[i].hold, 300);
        cr_expect_eq(c->type, c->declared, "%zu", i);
        rig_free(r);
    }
}

/* Telemetry reports the share that was seen, also when the class moves. */
Test(sched_ewyk_measure, share_of_a_tail)
{
    struct rig *r = rig_new(1, 0);
    struct nj_task_class *c = &r->non_blocking;

    until_tail_moves(r, c, 200 * NJ_MS, 500 * NJ_MS, 1000);
    cr_assert_eq(c->type, NJ_OS_BLOCKING);
    uint32_t ppm = nj_task_class_overrun_time_ppm(c, r->now);
    cr_expect(ppm > 350000 && ppm <= 450000, "%u", ppm);
    n_on_core(r, c, 200 * NJ_MS, NJ_SEC, 100);
    ppm = nj_task_class_overrun_time_ppm(c, r->now);
    cr_expect(ppm > 150000 && ppm < 250000, "%u", ppm);
    rig_free(r);
}
