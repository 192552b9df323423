/* SPDX-License-Identifier: BSD-3-Clause */
/* The strategy of an lcore: where each task is consumed. No task is lost or consumed twice. */
#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ewyk_rig.h"

/* --- the table -------------------------------------------------------------------------------- */

enum stacks { FREE, TAKEN, NONE };

static const struct row {
    enum nj_task_type type;
    enum stacks stacks;
    bool queue_full, workers_full;
    enum nj_run_mode mode;
    unsigned n_run; /* at once */
} rows[] = {
    /* EWYK 5.20: NON_BLOCKING never takes a stack. */
    {NJ_NON_BLOCKING, FREE, false, false, NJ_MODE_PC, 1},
    {NJ_NON_BLOCKING, TAKEN, true, true, NJ_MODE_PC, 1},
    {NJ_NON_BLOCKING, NONE, true, true, NJ_MODE_PC, 1},
    /* EWYK 5.21: EITHER is never queued. */
    {NJ_EITHER, FREE, false, false, NJ_MODE_EPC_INLINE, 1},
    {NJ_EITHER, TAKEN, false, false, NJ_MODE_PIC, 1},
    {NJ_EITHER, TAKEN, true, true, NJ_MODE_PIC, 1},
    {NJ_EITHER, NONE, false, false, NJ_MODE_PIC, 1},
    /* EWYK 5.23 */
    {NJ_BLOCKING, FREE, false, false, NJ_MODE_EPC_INLINE, 1},
    {NJ_BLOCKING, FREE, false, true, NJ_MODE_EPC_INLINE, 1},
    {NJ_BLOCKING, TAKEN, false, false, NJ_MODE_PEC_QUEUE, 0},
    {NJ_BLOCKING, TAKEN, true, false, NJ_MODE_REJECTED, 0},
    {NJ_BLOCKING, NONE, false, false, NJ_MODE_PEC_WORKER, 0},
    {NJ_BLOCKING, NONE, false, true, NJ_MODE_REJECTED, 0},
    /* EWYK 5.24 */
    {NJ_UNTYPED, FREE, false, false, NJ_MODE_EPC_INLINE, 1},
    {NJ_UNTYPED, TAKEN, false, false, NJ_MODE_PEC_QUEUE, 0},
    {NJ_OS_BLOCKING, FREE, false, false, NJ_MODE_PEC_WORKER, 0},
    {NJ_OS_BLOCKING, FREE, false, true, NJ_MODE_REJECTED, 0},
    {NJ_OS_BLOCKING, TAKEN, false, false, NJ_MODE_PEC_WORKER, 0},
};

static void check_row(const struct row *row, size_t i)
{
    struct rig *r = rig_new(row->stacks == NONE ? 0 : 1, row->queue_full ? 0 : 1);
    struct nj_task_class c;
    struct job holds, j;

    nj_task_class_init(&c, "/row", row->type);
    if (row->stacks == TAKEN)
        cr_assert_eq(job_offer(&holds, r, &r->blocking, waits), NJ_MODE_EPC_PARKED);
    r->workers_full = row->workers_full;
    cr_assert_eq(job_offer(&j, r, &c, NULL), row->mode, "row %zu", i);
    cr_assert_eq(j.n_run, row->n_run, "row %zu", i);
    cr_assert_eq(j.n_rejected, row->mode == NJ_MODE_REJECTED, "row %zu", i);
    if (row->mode == NJ_MODE_PEC_WORKER) {
        cr_assert_eq(consumed(&c), 0, "the task has not returned");
        nj_ewyk_account_worker_run(r->e, &c, 1);
    }
    if (row->mode != NJ_MODE_PEC_QUEUE)
        cr_assert_eq(c.n[row->mode], 1, "row %zu", i);
    if (j.n_run) {
        cr_assert_eq(j.on_fiber, row->mode == NJ_MODE_EPC_INLINE, "row %zu", i);
        cr_assert_eq(j.tagged, !j.on_fiber, "row %zu", i); /* EWYK 5.31 */
    }
    rig_free(r);
}

Test(sched_ewyk_fiber_scheduler, modes)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++)
        check_row(&rows[i], i);
}

Test(sched_ewyk_fiber_scheduler, a_task_that_parks_is_counted_as_such)
{
    struct rig *r = rig_new(2, 0);
    struct job j[2];

    cr_assert_eq(job_offer(&j[0], r, &r->blocking, waits), NJ_MODE_EPC_PARKED);
    cr_assert_eq(job_offer(&j[1], r, &r->either, waits), NJ_MODE_EPC_PARKED);
    cr_assert_eq(nj_ewyk_gauges(r->e).n_fibers_in_use, 2);
    for (int i = 0; i < 2; i++)
        nj_fiber_wake(j[i].w, NJ_WAKE_OK);
    cr_assert_eq(nj_ewyk_next_due(r->e), 0);
    cr_assert_eq(nj_ewyk_run(r->e, r->now, 10), 2);
    cr_assert(nj_ewyk_is_idle(r->e));
    cr_assert_eq(nj_ewyk_gauges(r->e).n_fibers_high_water, 2);
    cr_assert_eq(r->blocking.n[NJ_MODE_EPC_PARKED] + r->either.n[NJ_MODE_EPC_PARKED], 2);
    rig_free(r);
}

/* EWYK 5.28 */
Test(sched_ewyk_fiber_scheduler, counters)
{
    struct rig *r = rig_new(0, 4);
    struct job j[10];

    for (int i = 0; i < 10; i++) /* without stacks */
        job_offer(&j[i], r, i % 2 ? &r->either : &r->blocking, NULL);
    for (unsigned i = 0; i < r->n_at_worker; i++)
        nj_ewyk_account_worker_run(r->e, r->at_worker[i]->class_of, 0);
    cr_assert_eq(r->either.n[NJ_MODE_PIC], 5);
    cr_assert_eq(r->blocking.n[NJ_MODE_PEC_WORKER], 5);
    cr_assert_eq(consumed(&r->either) + consumed(&r->blocking), 10);
    for (int i = 0; i < 10; i++)
        job_offer(&j[i], r, &r->non_blocking, NULL);
    cr_assert_eq(r->non_blocking.n[NJ_MODE_PC], 10);
    cr_assert_eq(consumed(&r->non_blocking), 10);
    nj_task_class_reset_counters(&r->non_blocking);
    cr_assert_eq(consumed(&r->non_blocking), 0);
    cr_assert_eq(job_offer(&j[0], r, &r->non_blocking, NULL), NJ_MODE_PC);
    cr_assert_eq(consumed(&r->non_blocking), 1);
    rig_free(r);
}

/* --- one is always left ----------------------------------------------------------------------- */

/* EWYK 5.12, EWYK 5.13, EWYK 5.56: the tasks on all stacks wait endlessly; all other work
 * continues. */
Test(sched_ewyk_fiber_scheduler, all_stacks_blocked_for_ever)
{
    enum { STACKS = 5, QUEUE = 3 };
    struct rig *r = rig_new(STACKS, QUEUE);
    struct job stuck[STACKS], queued[QUEUE], j;

    for (int i = 0; i < STACKS; i++)
        cr_assert_eq(job_offer(&stuck[i], r, &r->blocking, waits), NJ_MODE_EPC_PARKED);
    for (int i = 0; i < QUEUE; i++)
        cr_assert_eq(job_offer(&queued[i], r, &r->blocking, NULL), NJ_MODE_PEC_QUEUE);
    cr_assert_eq(nj_ewyk_next_due(r->e), NJ_NEVER, "a queue without a stack is no reason to spin");
    for (int i = 0; i < 1000; i++) {
        cr_assert_eq(job_offer(&j, r, &r->non_blocking, NULL), NJ_MODE_PC);
        cr_assert_eq(job_offer(&j, r, &r->either, NULL), NJ_MODE_PIC);
        cr_assert_eq(job_offer(&j, r, &r->blocking, NULL), NJ_MODE_REJECTED);
        cr_assert_eq(nj_ewyk_run(r->e, r->now += NJ_MS, 10), 0);
    }
    /* One is released: the queue moves, in order. */
    nj_fiber_wake(stuck[2].w, NJ_WAKE_OK);
    cr_assert_eq(nj_ewyk_run(r->e, r->now, 10), 1 + QUEUE);
    for (int i = 0; i < QUEUE; i++) {
        cr_assert_eq(queued[i].n_run, 1);
        cr_assert(i == 0 || queued[i].order == queued[i - 1].order + 1);
    }
    cr_assert_eq(r->blocking.n[NJ_MODE_PEC_QUEUE], QUEUE);
    rig_free(r);
}

/* EWYK 5.4: tasks start in the order of the offers, for each type, parked or not. */
Test(sched_ewyk_fiber_scheduler, tasks_start_in_order)
{
    struct rig *r = rig_new(4, 4);
    struct nj_task_class *c[] = {&r->blocking, &r->non_blocking, &r->either};
    struct job j[12];

    for (int i = 0; i < 12; i++) {
        job_offer(&j[i], r, c[i % 3], i % 4 == 0 && i % 3 != 1 ? waits : NULL);
        cr_assert_eq(j[i].order, (unsigned)i + 1);
    }
    rig_free(r);
}

/* A BLOCKING task does not overtake the queued ones, also when a stack becomes free for a moment.
 */
Test(sched_ewyk_fiber_scheduler, the_queue_comes_first)
{
    struct rig *r = rig_new(1, 4);
    struct job stuck, j[3];

    job_offer(&stuck, r, &r->blocking, waits);
    job_offer(&j[0], r, &r->blocking, NULL);
    job_offer(&j[1], r, &r->blocking, NULL);
    nj_fiber_wake(stuck.w, NJ_WAKE_OK);
    cr_assert_eq(nj_ewyk_run(r->e, r->now, 1), 2, "one resumed, one started");
    cr_assert(j[0].n_run == 1 && j[1].n_run == 0);
    cr_assert_eq(job_offer(&j[2], r, &r->blocking, NULL), NJ_MODE_PEC_QUEUE);
    cr_assert_eq(nj_ewyk_next_due(r->e), 0);
    cr_assert_eq(nj_ewyk_run(r->e, r->now, 10), 2);
    cr_assert(j[1].order < j[2].order);
    rig_free(r);
}

/* A step resumes a limited number of fibers, and the next steps the remaining ones. EWYK 5.55 */
Test(sched_ewyk_fiber_scheduler, resumes_no_more_than_it_shall)
{
    enum { N = 5 };
    struct rig *r = rig_new(N, 1);
    struct job j[N];
    unsigned n_ended = 0;

    for (unsigned i = 0; i < N; i++)
        job_offer(&j[i], r, &r->blocking, waits);
    for (unsigned i = 0; i < N; i++)
        cr_assert(nj_fiber_wake(j[i].w, NJ_WAKE_OK));
    cr_assert_eq(nj_ewyk_run(r->e, r->now, 2), 2);
    for (unsigned i = 0; i < N; i++)
        n_ended += j[i].n_ended;
    cr_assert_eq(n_ended, 2);
    cr_assert_eq(nj_ewyk_run(r->e, r->now, 10), N - 2);
    rig_free(r);
}

/* EWYK 5.50: a rejection leaves no state behind. */
Test(sched_ewyk_fiber_scheduler, after_a_rejection)
{
    struct rig *r = rig_new(1, 0);
    struct job stuck, j;

    job_offer(&stuck, r, &r->blocking, waits);
    for (int i = 0; i < 100; i++) {
        cr_assert_eq(job_offer(&j, r, &r->blocking, NULL), NJ_MODE_REJECTED);
        cr_assert_eq(j.n_rejected, 1); /* EWYK 5.49 */
    }
    nj_fiber_wake(stuck.w, NJ_WAKE_OK);
    nj_ewyk_run(r->e, r->now, 10);
    cr_assert_eq(job_offer(&j, r, &r->blocking, NULL), NJ_MODE_EPC_INLINE);
    cr_assert_eq(nj_ewyk_gauges(r->e).n_waiting, 0);
    rig_free(r);
}

/* --- tasks that applications offer
 * ------------------------------------------------------------------ */

struct child {
    struct job job;
    struct nj_task_class *of;
    enum nj_run_mode mode;
    unsigned n_run_on_return;
    void (*does)(struct job *);
};

static void offers(struct job *j)
{
    struct child *c = j->arg;

    c->mode = job_offer(&c->job, j->rig, c->of, c->does);
    c->n_run_on_return = c->job.n_run;
}

/* EWYK 5.37, EWYK 5.22: inside a task, on a fiber or inline, no other task runs within the offer.
 */
Test(sched_ewyk_fiber_scheduler, an_application_never_becomes_the_producer)
{
    struct rig *r = rig_new(2, 4);
    struct nj_task_class *class_of[] = {&r->non_blocking, &r->either, &r->blocking,
                                        &r->os_blocking};
    const enum nj_run_mode then[] = {NJ_MODE_PC, NJ_MODE_EPC_INLINE, NJ_MODE_EPC_INLINE,
                                     NJ_MODE_PEC_WORKER};

    for (int from = 0; from < 2; from++)
        for (size_t i = 0; i < NJ_ARRAY_LEN(then); i++) {
            struct child child = {.of = class_of[i]};
            struct job parent;
            uint64_t before = class_of[i]->n[then[i]];

            job_init(&parent, r, from ? &r->blocking : &r->non_blocking, offers);
            before += class_of[i] == parent.task.class_of; /* and the parent's mode is the same */
            parent.arg = &child;
            nj_ewyk_offer(r->e, &parent.task);
            cr_assert_eq(child.mode, NJ_MODE_PEC_QUEUE);
            cr_assert_eq(child.n_run_on_return, 0);
            cr_assert_eq(nj_ewyk_next_due(r->e), 0);
            cr_assert_eq(nj_ewyk_run(r->e, r->now, 10), 1);
            if (then[i] == NJ_MODE_PEC_WORKER)
                nj_ewyk_account_worker_run(r->e, class_of[i], 0);
            cr_assert_eq(class_of[i]->n[then[i]], before + 1, "type %zu", i);
            cr_assert_eq(child.job.n_run, then[i] != NJ_MODE_PEC_WORKER);
        }
    rig_free(r);
}

struct endless {
    unsigned n_left;
    uintptr_t lowest, highest; /* frames of the task */
};

static void offers_itself(struct job *j)
{
    struct endless *x = j->arg;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);

    x->lowest = here < x->lowest ? here : x->lowest;
    x->highest = here > x->highest ? here : x->highest;
    if (--x->n_left > 0)
        cr_assert_eq(nj_ewyk_offer(j->rig->e, &j->task), NJ_MODE_PEC_QUEUE);
}

/* EWYK 5.36: a million demands from within, and the stack stays where it is. */
Test(sched_ewyk_fiber_scheduler, no_recursion)
{
    struct rig *r = rig_new(2, 4);
    struct nj_task_class *class_of[] = {&r->non_blocking, &r->either, &r->blocking};

    for (int i = 0; i < 3; i++) {
        struct endless x = {.n_left = 1000000, .lowest = UINTPTR_MAX};
        struct job j;
        job_init(&j, r, class_of[i], offers_itself);
        j.arg = &x;
        nj_ewyk_offer(r->e, &j.task);
        while (nj_ewyk_next_due(r->e) == 0)
            cr_assert_eq(nj_ewyk_run(r->e, r->now, 10), 1, "a chain does not hold the root");
        cr_assert_eq(j.n_run, 1000000);
        cr_assert_leq(x.highest - x.lowest, 4096, "type %d", i);
    }
    rig_free(r);
}

/* EWYK 5.34: a connection is upgraded in a NON_BLOCKING task and a new strategy begins there. */
static void upgrades(struct job *j)
{
    struct child *c = j->arg;
    struct rig *inner = c->job.rig;

    c->mode = job_offer(&c->job, inner, &inner->blocking, c->does);
    c->n_run_on_return = c->job.n_ended;
    cr_assert(nj_noblock_is_set(), "and the tag is ours again");
    cr_assert_null(nj_fiber_self());
}

Test(sched_ewyk_fiber_scheduler, an_upgrade_never_runs_a_blocking_task_inline)
{
    for (uint32_t n_stacks = 0; n_stacks < 2; n_stacks++) {
        struct rig *outer = rig_new(1, 4), *inner = rig_new(n_stacks, 4);
        struct child c = {.does = waits, .job = {.rig = inner}};
        struct job j;

        job_init(&j, outer, &outer->non_blocking, upgrades);
        j.arg = &c;
        cr_assert_eq(nj_ewyk_offer(outer->e, &j.task), NJ_MODE_PC);
        cr_assert_eq(j.n_ended, 1);
        cr_assert_eq(c.mode, n_stacks ? NJ_MODE_EPC_PARKED : NJ_MODE_PEC_WORKER);
        cr_assert_eq(c.n_run_on_return, 0);
        rig_free(inner);
        rig_free(outer);
    }
}

/* --- tasks that must not block
 * ---------------------------------------------------------------------- */

static struct rig *forgiving(void)
{
    struct rig *r = calloc(1, sizeof *r);
    struct nj_ewyk_config config = rig_config(r, 1, 4);

    config.would_block = NJ_EWYK_WOULD_BLOCK_COUNTED;
    return rig_from(r, &config);
}

static void waits_tagged(struct job *j)
{
    bool before = nj_noblock_enter();
    waits(j);
    nj_noblock_leave(before);
    cr_assert_eq(nj_noblock_is_set(), before);
}

/* EWYK 5.33: counted, and it did not wait; inline and on a fiber. */
Test(sched_ewyk_fiber_scheduler, would_block_is_counted)
{
    struct rig *r = forgiving();
    struct job j;

    cr_assert_eq(job_offer(&j, r, &r->non_blocking, waits), NJ_MODE_PC);
    cr_assert_eq(j.why, NJ_WAKE_WOULD_BLOCK);
    cr_assert_eq(r->non_blocking.n_would_block, 1);
    cr_assert_eq(job_offer(&j, r, &r->blocking, waits_tagged), NJ_MODE_EPC_INLINE);
    cr_assert_eq(j.why, NJ_WAKE_WOULD_BLOCK);
    cr_assert_eq(r->blocking.n_would_block, 1);
    cr_assert_eq(nj_fiber_park(NULL, NJ_NEVER), NJ_WAKE_WOULD_BLOCK); /* the root itself */
    cr_assert_eq(nj_ewyk_gauges(r->e).n_would_block, 3);
    rig_free(r);
}

/* EWYK 5.33: located, by the name of the class. */
static void check_fatal(bool on_fiber, const char *expected)
{
    int out[2], status;
    char said[400] = "";

    cr_assert_eq(pipe(out), 0);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(out[1], 2);
        struct rig *r = calloc(1, sizeof *r);
        struct nj_ewyk_config config = rig_config(r, 1, 4);
        struct job j;
        config.would_block = NJ_EWYK_WOULD_BLOCK_FATAL;
        rig_from(r, &config);
        job_offer(&j, r, on_fiber ? &r->blocking : &r->non_blocking, waits_tagged);
        _exit(0);
    }
    close(out[1]);
    for (ssize_t n, at = 0; (n = read(out[0], said + at, sizeof said - 1 - (size_t)at)) > 0;)
        at += n;
    close(out[0]);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "status %x", status);
    cr_assert_not_null(strstr(said, expected), "%s", said);
}

Test(sched_ewyk_fiber_scheduler, would_block_is_fatal_if_so_told)
{
    check_fatal(false, "/non-blocking would park in a context that must not block");
    check_fatal(true, "/blocking would park in a context that must not block");
}

static void leaves_a_mess(struct job *j)
{
    cr_assert_eq(errno, 0);
    cr_assert_eq(fegetround(), FE_TONEAREST);
    errno = EDOM;
    fesetround(FE_DOWNWARD);
    nj_noblock_leave(false);
}

/* EWYK 5.48: an inline task, too, leaves no state to the next task or to the producer. */
Test(sched_ewyk_fiber_scheduler, inline_tasks_leave_nothing_behind)
{
    struct rig *r = rig_new(0, 4);
    struct job j;

    errno = ENOENT;
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(job_offer(&j, r, &r->non_blocking, leaves_a_mess), NJ_MODE_PC);
        cr_assert_eq(errno, ENOENT);
        cr_assert_eq(fegetround(), FE_TONEAREST);
        cr_assert(j.tagged && nj_noblock_is_set());
    }
    rig_free(r);
}

/* --- the end ---------------------------------------------------------------------------------- */

static void stops(struct job *j)
{
    nj_ewyk_stop(j->rig->e);
}

/* EWYK 5.51, EWYK 5.49: for every caller of stop: a waiting task is rejected once, a running one
 * continues. */
Test(sched_ewyk_fiber_scheduler, stop)
{
    for (int from = 0; from < 3; from++) {
        struct rig *r = rig_new(2, 8);
        struct job stuck[2], queued[3], late, stopper;
        struct child handed = {.of = &r->non_blocking};

        job_offer(&stuck[0], r, &r->blocking, waits);
        job_init(&late, r, &r->blocking, offers);
        late.arg = &handed;
        nj_ewyk_offer(r->e, &late.task); /* offered by an application, not consumed yet */
        if (from == 2)
            job_offer(&stopper, r, &r->blocking, stops);
        job_offer(&stuck[1], r, &r->blocking, waits);
        for (int i = 0; i < 3; i++)
            job_offer(&queued[i], r, &r->blocking, NULL);
        if (from == 1)
            job_offer(&stopper, r, &r->non_blocking, stops);
        if (from == 0)
            nj_ewyk_stop(r->e);
        nj_ewyk_run(r->e, r->now, 10);
        cr_assert_eq(handed.job.n_run, 0);
        cr_assert_eq(handed.job.n_rejected, 1);
        for (int i = 0; i < 3; i++)
            cr_assert(queued[i].n_run == 0 && queued[i].n_rejected == 1, "stopped by %d", from);
        cr_assert_eq(job_offer(&late, r, &r->non_blocking, NULL), NJ_MODE_REJECTED);
        cr_assert_not(nj_ewyk_is_idle(r->e));
        nj_fiber_wake(stuck[0].w, NJ_WAKE_OK);
        nj_ewyk_run(r->e, r->now, 10);
        cr_assert(stuck[0].n_ended == 1 && stuck[0].why == NJ_WAKE_OK);
        nj_ewyk_cancel_fibers(r->e);
        nj_ewyk_run(r->e, r->now, 10);
        cr_assert(nj_ewyk_is_idle(r->e));
        cr_assert_eq(stuck[1].n_run + stuck[1].n_rejected, 1);
        rig_free(r);
    }
}

/* EWYK 5.18: idle for a month, then one event. */
Test(sched_ewyk_fiber_scheduler, after_a_long_idle_time)
{
    struct rig *r = rig_new(1, 4);
    struct job stuck, j;

    job_offer(&stuck, r, &r->blocking, waits);
    r->now += 30 * 24 * 3600 * NJ_SEC;
    cr_assert_eq(nj_ewyk_run(r->e, r->now, 10), 0);
    cr_assert_eq(job_offer(&j, r, &r->blocking, NULL), NJ_MODE_PEC_QUEUE);
    nj_fiber_wake(stuck.w, NJ_WAKE_OK);
    cr_assert_eq(nj_ewyk_run(r->e, r->now, 10), 2);
    cr_assert(stuck.n_ended == 1 && j.n_ended == 1);
    rig_free(r);
}

/* --- wake-ups from other threads -------------------------------------------------------------- */

#define RING 64u
#define JOBS 20000u

/* To the worker and back, each line with one writer: the server uses rings for that. */
struct lines {
    _Atomic uint32_t to_worker, to_lcore;
    struct nj_waiter *slot[RING];
};

static void *worker(void *arg)
{
    struct lines *l = arg;

    for (uint32_t i = 0; i < JOBS; i++) {
        while (atomic_load_explicit(&l->to_worker, memory_order_acquire) <= i)
            sched_yield();
        atomic_store_explicit(&l->to_lcore, i + 1, memory_order_release);
    }
    return NULL;
}

static void asks_worker(struct job *j)
{
    struct lines *l = j->arg;
    uint32_t n = atomic_load_explicit(&l->to_worker, memory_order_relaxed);

    l->slot[n % RING] = &j->w;
    atomic_store_explicit(&l->to_worker, n + 1, memory_order_release);
    waits(j);
}

/* EWYK 5.60: the root polls for tasks that workers finished; no wake-up is lost, and none needs a
 * system call. */
Test(sched_ewyk_fiber_scheduler, completions_of_workers_wake)
{
    struct rig *r = rig_new(RING / 2, 0);
    struct lines l = {0};
    struct job *jobs = calloc(JOBS, sizeof *jobs);
    uint32_t offered = 0, seen = 0;
    pthread_t t;

    cr_assert_eq(pthread_create(&t, NULL, worker, &l), 0);
    while (seen < JOBS) {
        if (offered < JOBS && offered - seen < RING / 2) {
            job_init(&jobs[offered], r, &r->blocking, asks_worker);
            jobs[offered].arg = &l;
            if (nj_ewyk_offer(r->e, &jobs[offered++].task) == NJ_MODE_REJECTED)
                cr_assert(false, "a stack is free");
        }
        sched_yield(); /* there may be one core for both */
        for (; seen < atomic_load_explicit(&l.to_lcore, memory_order_acquire); seen++)
            cr_assert(nj_fiber_wake(*l.slot[seen % RING], NJ_WAKE_OK));
        nj_ewyk_run(r->e, r->now, RING);
    }
    pthread_join(t, NULL);
    cr_assert(nj_ewyk_is_idle(r->e));
    cr_assert_eq(r->blocking.n[NJ_MODE_EPC_PARKED], JOBS);
    free(jobs);
    rig_free(r);
}
