/* SPDX-License-Identifier: BSD-3-Clause */
/* Random tasks of all types that wait, offer others, wake and cancel each other, in virtual time. A
 * model lists the expected result. NJ_SEED=n runs that seed alone. */
#include <stdio.h>

#include "base/prng.h"
#include "ewyk_rig.h"

#define TICK   ((nj_ns)1 << NJ_WHEEL_TICK_BITS)
#define N_LIVE 300u

/* The state of a task in the model. */
enum state { UNUSED, OFFERED, RUNNING, WAITING, ENDED };

struct actor {
    struct job job;
    enum state state;
    bool cancelled;
    /* Of its present wait. */
    nj_ns deadline;
    bool over; /* it was ended, with */
    enum nj_wake_reason how;
    bool or_timeout;      /* its deadline had passed, too: it may have been queued for that already
                           */
    struct nj_waiter old; /* its deadline had passed, too */
};

struct stress {
    struct rig *rig;
    struct nj_prng prng;
    struct actor actor[N_LIVE];
    uint64_t n_offered, n_run, n_rejected, n_waits, n_timeouts, n_cancelled, n_stale;
    nj_ns ran_at; /* the last nj_ewyk_run() */
};

static struct nj_task_class *random_class(struct stress *s)
{
    struct rig *r = s->rig;
    struct nj_task_class *c[] = {&r->non_blocking, &r->either, &r->blocking, &r->blocking,
                                 &r->os_blocking};
    return c[nj_prng_below(&s->prng, NJ_ARRAY_LEN(c))];
}

static struct actor *random_actor(struct stress *s)
{
    return &s->actor[nj_prng_below(&s->prng, N_LIVE)];
}

static void act(struct job *j);

static void on_reject(struct nj_task *t)
{
    struct actor *a = nj_container_of(t, struct actor, job.task);
    struct stress *s = a->job.arg;

    cr_assert_eq(a->state, OFFERED, "rejected though it is in state %d", (int)a->state);
    a->state = ENDED;
    s->n_rejected++;
}

static const struct nj_task_ops ops = {.run = job_run, .reject = on_reject};

static void offer_one(struct stress *s)
{
    struct actor *a = random_actor(s);

    if (a->state != UNUSED && a->state != ENDED)
        return;
    struct nj_waiter old = a->job.w;
    *a = (struct actor){.state = OFFERED, .old = old};
    s->n_offered++;
    job_init(&a->job, s->rig, random_class(s), act);
    a->job.task.ops = &ops;
    a->job.arg = s;
    bool inside =
        nj_fiber_self() || nj_ewyk_current_core_holder(s->rig->e, &(struct nj_ewyk_hold){0});
    enum nj_run_mode mode = nj_ewyk_offer(s->rig->e, &a->job.task);
    if (inside)
        cr_assert(mode == NJ_MODE_PEC_QUEUE || mode == NJ_MODE_REJECTED);
    if (inside && mode == NJ_MODE_PEC_QUEUE)
        cr_assert_eq(a->state, OFFERED);
    if (mode == NJ_MODE_PEC_WORKER)
        cr_assert_eq(a->state, OFFERED);
    if (mode == NJ_MODE_PC || mode == NJ_MODE_PIC || mode == NJ_MODE_EPC_INLINE)
        cr_assert_eq(a->state, ENDED);
    if (mode == NJ_MODE_EPC_PARKED)
        cr_assert_eq(a->state, WAITING);
}

static void wake_one(struct stress *s)
{
    struct actor *a = random_actor(s);
    bool expected = a->state == WAITING && !a->over;

    if (nj_prng_below(&s->prng, 4) == 0 && a->old.fiber) {
        cr_assert_not(nj_fiber_wake(a->old, NJ_WAKE_OK), "a wait that was over long ago");
        s->n_stale++;
        return;
    }
    if (a->state != WAITING)
        return;
    bool woken = nj_fiber_wake(a->job.w, NJ_WAKE_OK);
    if (!expected || a->deadline > s->ran_at)
        cr_assert_eq(woken, expected);
    if (woken) {
        a->over = true;
        a->how = NJ_WAKE_OK;
    }
}

static void note_cancelled(struct stress *s, struct actor *a)
{
    a->cancelled = true;
    if (a->over)
        return;
    a->over = true;
    a->how = NJ_WAKE_CANCELLED;
    a->or_timeout = a->deadline <= s->ran_at;
}

static void cancel_one(struct stress *s)
{
    struct actor *a = random_actor(s);

    if (a->state != WAITING)
        return;
    nj_fiber_cancel(a->job.w.fiber);
    note_cancelled(s, a);
}

static nj_ns random_deadline(struct stress *s)
{
    static const nj_ns most[] = {1000, TICK, 10 * TICK, 2000 * TICK};

    if (nj_prng_below(&s->prng, 3) == 0)
        return NJ_NEVER;
    return s->rig->now + nj_prng_next(&s->prng) % most[nj_prng_below(&s->prng, 4)];
}

/* Check a wait that just ended against the model. */
static void check_wait(struct stress *s, struct actor *a, bool was_cancelled)
{
    enum nj_wake_reason why = a->job.why;

    if (was_cancelled) {
        cr_assert_eq(why, NJ_WAKE_CANCELLED, "cancellation is sticky");
        s->n_cancelled++;
    } else if (a->over && !(a->or_timeout && why == NJ_WAKE_TIMEOUT)) {
        cr_assert_eq(why, a->how);
        s->n_cancelled += why == NJ_WAKE_CANCELLED;
    } else {
        cr_assert_eq(why, NJ_WAKE_TIMEOUT);
        cr_assert_leq(a->deadline, s->ran_at, "it is not yet time");
        s->n_timeouts++;
    }
}

static void wait_once(struct stress *s, struct actor *a)
{
    bool was_cancelled = a->cancelled;

    a->state = WAITING;
    a->over = a->or_timeout = false;
    a->old = a->job.w;
    a->deadline = random_deadline(s);
    a->job.why = nj_fiber_park(&a->job.w, a->deadline);
    cr_assert_eq(nj_fiber_self(), a->job.w.fiber);
    check_wait(s, a, was_cancelled);
    a->state = RUNNING;
    s->n_waits++;
}

/* The body of every task: a random mix of all operations. */
static void act(struct job *j)
{
    struct actor *a = nj_container_of(j, struct actor, job);
    struct stress *s = j->arg;
    unsigned n = nj_prng_below(&s->prng, 5);

    cr_assert(a->state == OFFERED, "in state %d", (int)a->state);
    cr_assert_eq(j->n_run, 1);
    a->state = RUNNING;
    s->n_run++;
    while (n-- > 0)
        switch (nj_prng_below(&s->prng, 5)) {
        case 0:
            offer_one(s);
            break;
        case 1:
            wake_one(s);
            break;
        case 2:
            cancel_one(s);
            break;
        default:
            if (!nj_noblock_is_set())
                wait_once(s, a);
        }
    a->state = ENDED;
}

/* No task that is due is left after a step. */
static void check_due(struct stress *s)
{
    for (uint32_t i = 0; i < N_LIVE; i++) {
        struct actor *a = &s->actor[i];
        if (a->state == WAITING && !a->over && a->deadline != NJ_NEVER)
            cr_assert_gt(a->deadline + TICK, s->rig->now, "actor %u is late", i);
        if (a->state == WAITING)
            cr_assert_not(a->over, "actor %u was woken and did not run", i);
    }
}

static void run_all(struct stress *s)
{
    nj_ns before = s->rig->now, next;

    s->ran_at = s->rig->now;
    do {
        nj_ewyk_run(s->rig->e, s->rig->now, 1 + nj_prng_below(&s->prng, 20));
    } while ((next = nj_ewyk_next_due(s->rig->e)) == 0);
    check_due(s);
    cr_assert(next == NJ_NEVER || next + TICK > before);
}

/* A worker runs its tasks as tasks that may block the thread: they make no fiber calls. */
static void work(struct stress *s)
{
    struct rig *r = s->rig;

    while (r->n_at_worker > 0) {
        struct nj_task *t = r->at_worker[--r->n_at_worker];
        struct actor *a = nj_container_of(t, struct actor, job.task);
        cr_assert_eq(a->state, OFFERED);
        a->job.n_run++;
        a->state = ENDED;
        s->n_run++;
        nj_ewyk_account_worker_run(r->e, t->class_of, 0);
    }
}

static void step(struct stress *s)
{
    switch (nj_prng_below(&s->prng, 8)) {
    case 0:
        wake_one(s);
        break;
    case 1:
        cancel_one(s);
        break;
    case 2:
        s->rig->now += nj_prng_next(&s->prng) % (nj_prng_below(&s->prng, 20) ? NJ_MS : NJ_SEC);
        run_all(s);
        break;
    case 3:
        work(s);
        break;
    default:
        offer_one(s);
    }
}

static void check_end(struct stress *s)
{
    struct rig *r = s->rig;

    work(s);
    nj_ewyk_stop(r->e);
    while (!nj_ewyk_is_idle(r->e)) {
        for (uint32_t i = 0; i < N_LIVE; i++)
            if (s->actor[i].state == WAITING)
                note_cancelled(s, &s->actor[i]);
        nj_ewyk_cancel_fibers(r->e);
        nj_ewyk_run(r->e, r->now, 100);
    }
    work(s);
    /* EWYK 5.3: each exactly once. */
    cr_assert_eq(s->n_offered, s->n_run + s->n_rejected);
    cr_assert_eq(consumed(&r->non_blocking) + consumed(&r->either) + consumed(&r->blocking) +
                     consumed(&r->os_blocking),
                 s->n_offered); /* EWYK 5.28 */
    for (uint32_t i = 0; i < N_LIVE; i++)
        cr_assert(s->actor[i].state == ENDED || s->actor[i].state == UNUSED);
}

static void run(uint64_t seed, unsigned n_steps)
{
    struct stress *s = calloc(1, sizeof *s);

    fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
    nj_prng_init(&s->prng, seed);
    uint32_t n_fibers = 1 + nj_prng_below(&s->prng, nj_prng_below(&s->prng, 4) ? 100 : 5);
    s->rig = rig_new(n_fibers, nj_prng_below(&s->prng, 20));
    for (unsigned i = 0; i < n_steps; i++)
        step(s);
    check_end(s);
    fprintf(stderr, "  %u stacks: %llu tasks, %llu rejected, %llu waits, %llu timeouts\n", n_fibers,
            (unsigned long long)s->n_offered, (unsigned long long)s->n_rejected,
            (unsigned long long)s->n_waits, (unsigned long long)s->n_timeouts);
    cr_assert(s->n_rejected && s->n_waits && s->n_timeouts && s->n_cancelled && s->n_stale);
    nj_ewyk_free(s->rig->e);
    free(s->rig);
    free(s);
}

/* EWYK 5.3, EWYK 5.58 */
Test(sched_ewyk_stress, random_tasks)
{
    const char *one = getenv("NJ_SEED");

    if (one) {
        run(strtoull(one, NULL, 0), 20000);
        return;
    }
    for (uint64_t seed = 1; seed <= 40; seed++)
        run(seed, 20000);
}
