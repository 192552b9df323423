/* SPDX-License-Identifier: BSD-3-Clause */
/* Fibers: stacks, switches, waits; and many fibers at random against a model. */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "sched/fiber.h"
#include "support/fiber_root.h"

#define TICK ((nj_ns)1 << NJ_WHEEL_TICK_BITS)

static struct nj_fibers *new_fibers(uint32_t n_max)
{
    struct nj_fibers_config config = {.n_max = n_max, .now = 7 * NJ_SEC};
    struct nj_fibers *fs = nj_fibers_new(&config);
    cr_assert_not_null(fs);
    return fs;
}

/* The exit status of fn(arg) in a process of its own, whose stderr is `said`. */
static int in_child_saying(void (*fn)(void *arg), void *arg, int said)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGABRT, SIG_DFL);
        dup2(said, STDERR_FILENO);
        fn(arg);
        _exit(0);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    return status;
}

static int in_child(void (*fn)(void *arg), void *arg)
{
    int null = open("/dev/null", O_WRONLY), status = in_child_saying(fn, arg, null);

    close(null);
    return status;
}

/* A fiber that waits as configured and records what it saw. */
struct sleeper {
    struct nj_waiter w;
    nj_ns deadline;
    enum nj_wake_reason why;
    struct nj_fiber *self;
    unsigned step;
};

static void sleeper(void *arg)
{
    struct sleeper *s = arg;

    s->self = nj_fiber_self();
    s->step = 1;
    s->why = nj_fiber_park(&s->w, s->deadline);
    s->step = 2;
}

static void set_one(void *arg)
{
    *(int *)arg = 1;
}

/* --- start, park, wake ------------------------------------------------------------------------ */

Test(sched_fiber, runs_at_once_and_ends) /* EWYK 5.39 */
{
    struct nj_fibers *fs = new_fibers(1);
    int ran = 0;

    cr_assert_eq(fiber_start(fs, set_one, &ran), NJ_FIBER_ENDED);
    cr_assert_eq(ran, 1);
    cr_assert_eq(nj_fibers_in_use(fs), 0);
    cr_assert_eq(nj_fibers_high_water(fs), 1);
    cr_assert_null(nj_fiber_self());
    nj_fibers_free(fs);
}

Test(sched_fiber, wake_queues_and_run_resumes)
{
    struct nj_fibers *fs = new_fibers(1);
    struct sleeper s = {.deadline = NJ_NEVER};

    cr_assert_eq(fiber_start(fs, sleeper, &s), NJ_FIBER_PARKED);
    cr_assert_eq(nj_fibers_next_due(fs), NJ_NEVER);
    cr_assert(nj_fiber_wake(s.w, NJ_WAKE_OK));
    cr_assert_eq(s.step, 1, "not before the next run");
    cr_assert_eq(nj_fibers_next_due(fs), 0);
    cr_assert_eq(fibers_run(fs, 8 * NJ_SEC, 10), 1);
    cr_assert_eq(s.step, 2);
    cr_assert_eq(s.why, NJ_WAKE_OK);
    cr_assert_eq(fibers_run(fs, 8 * NJ_SEC, 10), 0);
    nj_fibers_free(fs);
}

/* EWYK 5.38: with no stack free fiber_start() fails at once. EWYK 5.40: the task is not run
 * later. */
Test(sched_fiber, none_free)
{
    struct nj_fibers *fs = new_fibers(2);
    struct sleeper s[2] = {{.deadline = NJ_NEVER}, {.deadline = NJ_NEVER}};
    int ran = 0;

    for (int i = 0; i < 2; i++)
        cr_assert_eq(fiber_start(fs, sleeper, &s[i]), NJ_FIBER_PARKED);
    for (int i = 0; i < 1000; i++)
        cr_assert_eq(fiber_start(fs, set_one, &ran), NJ_FIBER_NONE_FREE);
    for (int i = 0; i < 2; i++)
        cr_assert(nj_fiber_wake(s[i].w, NJ_WAKE_OK));
    cr_assert_eq(fibers_run(fs, 8 * NJ_SEC, 10), 2);
    cr_assert_eq(ran, 0);
    cr_assert_eq(fiber_start(fs, set_one, &ran), NJ_FIBER_ENDED);
    nj_fibers_free(fs);
}

Test(sched_fiber, without_any)
{
    struct nj_fibers *fs = new_fibers(0);
    int ran = 0;

    cr_assert_eq(fiber_start(fs, set_one, &ran), NJ_FIBER_NONE_FREE);
    cr_assert_eq(fibers_run(fs, 8 * NJ_SEC, 10), 0);
    nj_fibers_free(fs);
}

/* EWYK 5.58: a wake-up by a reference to a wait that is over wakes no fiber, not even the next task
 * on that stack. */
Test(sched_fiber, an_old_waiter_is_harmless)
{
    struct nj_fibers *fs = new_fibers(1);
    struct sleeper a = {.deadline = NJ_NEVER}, b = {.deadline = NJ_NEVER};

    fiber_start(fs, sleeper, &a);
    cr_assert(nj_fiber_wake(a.w, NJ_WAKE_OK));
    cr_assert_not(nj_fiber_wake(a.w, NJ_WAKE_OK), "woken already");
    fibers_run(fs, 8 * NJ_SEC, 10);
    cr_assert_not(nj_fiber_wake(a.w, NJ_WAKE_OK), "it has ended");
    fiber_start(fs, sleeper, &b);
    cr_assert_eq(a.self, b.self, "the same stack");
    cr_assert_not(nj_fiber_wake(a.w, NJ_WAKE_OK), "of another task");
    cr_assert_not(nj_fiber_wake((struct nj_waiter){0}, NJ_WAKE_OK), "of nobody");
    cr_assert(nj_fiber_wake(b.w, NJ_WAKE_CANCELLED));
    fibers_run(fs, 8 * NJ_SEC, 10);
    cr_assert_eq(b.why, NJ_WAKE_CANCELLED);
    nj_fibers_free(fs);
}

struct thrice {
    struct nj_waiter w[3];
    enum nj_wake_reason why[3];
};

static void park_thrice(void *arg)
{
    struct thrice *t = arg;
    for (int i = 0; i < 3; i++)
        t->why[i] = nj_fiber_park(&t->w[i], NJ_NEVER);
}

/* Also of a fiber that was woken but has not run yet: that wait was a success. */
Test(sched_fiber, cancellation_is_sticky)
{
    struct nj_fibers *fs = new_fibers(1);
    struct thrice t;
    struct nj_fiber *f;

    fiber_start(fs, park_thrice, &t);
    f = t.w[0].fiber;
    cr_assert(nj_fiber_wake(t.w[0], NJ_WAKE_OK));
    nj_fiber_cancel(f);
    cr_assert_eq(fibers_run(fs, 8 * NJ_SEC, 10), 1);
    cr_assert_eq(nj_fibers_in_use(fs), 0);
    cr_assert_eq(t.why[0], NJ_WAKE_OK);
    cr_assert_eq(t.why[1], NJ_WAKE_CANCELLED);
    cr_assert_eq(t.why[2], NJ_WAKE_CANCELLED);
    cr_assert_not(nj_fiber_wake(t.w[2], NJ_WAKE_OK));

    fiber_start(fs, park_thrice, &t); /* the next task there is not cancelled */
    cr_assert_eq(nj_fibers_in_use(fs), 1);
    nj_fiber_cancel(f);
    fibers_run(fs, 8 * NJ_SEC, 10);
    cr_assert_eq(t.why[0], NJ_WAKE_CANCELLED);
    cr_assert_eq(nj_fibers_in_use(fs), 0);
    nj_fibers_free(fs);
}

struct pair {
    struct nj_waiter w[2];
    unsigned n_woken;
};

static void wake_each_other(struct pair *p, int me)
{
    for (int i = 0; i < 3; i++) {
        nj_fiber_park(&p->w[me], NJ_NEVER);
        p->n_woken++;
        nj_fiber_wake(p->w[!me], NJ_WAKE_OK);
    }
}

static void first_of_pair(void *arg)
{
    wake_each_other(arg, 0);
}

static void second_of_pair(void *arg)
{
    wake_each_other(arg, 1);
}

/* A fiber that a resumed fiber wakes runs in the next call: two that wake each other do not prolong
 * a call. */
Test(sched_fiber, what_a_run_wakes_is_for_the_next)
{
    struct nj_fibers *fs = new_fibers(2);
    struct pair p = {0};

    fiber_start(fs, first_of_pair, &p);
    fiber_start(fs, second_of_pair, &p);
    cr_assert(nj_fiber_wake(p.w[0], NJ_WAKE_OK));
    for (unsigned i = 1; i <= 6; i++) {
        cr_assert_eq(fibers_run(fs, 8 * NJ_SEC, 10), 1);
        cr_assert_eq(p.n_woken, i);
    }
    cr_assert_eq(nj_fibers_in_use(fs), 0);
    nj_fibers_free(fs);
}

static void yield_five_times(void *arg)
{
    struct sleeper *s = arg;

    for (s->step = 0; s->step < 5; s->step++)
        s->why = nj_fiber_park(NULL, s->deadline);
}

/* A wait whose deadline has passed yields the core once. */
Test(sched_fiber, n_max_and_order)
{
    struct nj_fibers *fs = new_fibers(3);
    struct sleeper s[3];
    nj_ns now = 8 * NJ_SEC;

    fibers_run(fs, now, 1);
    for (int i = 0; i < 3; i++) {
        s[i].deadline = now;
        fiber_start(fs, yield_five_times, &s[i]);
    }
    cr_assert_eq(fibers_run(fs, now, 2), 2);
    cr_assert(s[0].step == 1 && s[1].step == 1 && s[2].step == 0);
    cr_assert_eq(fibers_run(fs, now, 2), 2);
    cr_assert(s[0].step == 2 && s[1].step == 1 && s[2].step == 1, "the others go first");
    while (nj_fibers_in_use(fs))
        fibers_run(fs, now, 100);
    nj_fibers_free(fs);
}

/* --- time ------------------------------------------------------------------------------------- */

Test(sched_fiber, short_waits_are_exact_long_ones_within_a_tick)
{
    static const nj_ns wait[] = {1, 999, 70 * NJ_US, TICK - 1, TICK, 5 * NJ_MS, 3 * NJ_SEC};

    for (size_t i = 0; i < NJ_ARRAY_LEN(wait); i++) {
        struct nj_fibers *fs = new_fibers(1);
        nj_ns from = 7 * NJ_SEC + 12345, due = from + wait[i];
        struct sleeper s = {.deadline = due};

        fibers_run(fs, from, 1);
        fiber_start(fs, sleeper, &s);
        cr_assert_leq(nj_fibers_next_due(fs), due + TICK);
        cr_assert_eq(fibers_run(fs, due - 1, 1), 0, "early");
        if (wait[i] < TICK)
            cr_assert_eq(nj_fibers_next_due(fs), due);
        fibers_run(fs, wait[i] < TICK ? due : due + TICK, 1);
        cr_assert_eq(s.step, 2, "%llu ns: late", (unsigned long long)wait[i]);
        cr_assert_eq(s.why, NJ_WAKE_TIMEOUT);
        cr_assert_eq(nj_fibers_next_due(fs), NJ_NEVER);
        nj_fibers_free(fs);
    }
}

static __attribute__((noinline)) void jump_back(jmp_buf *to)
{
    volatile char frame[300] = {0};
    longjmp(*to, 1 + frame[7]);
}

static void jumps(void *arg)
{
    jmp_buf to;

    nj_fiber_park(arg, NJ_NEVER);
    if (!setjmp(to))
        jump_back(&to);
    nj_fiber_park(arg, NJ_NEVER);
}

static void jump_in_fiber(void *fs)
{
    struct nj_waiter w;

    for (fiber_start(fs, jumps, &w); nj_fiber_wake(w, NJ_WAKE_OK);)
        fibers_run(fs, 8 * NJ_SEC, 1);
}

/* EWYK 5.31: a task that calls longjmp() within itself. AddressSanitizer complains unless it knows
 * the current stack. */
Test(sched_fiber, longjmp_within_a_task)
{
    struct nj_fibers *fs = new_fibers(1);
    FILE *said = tmpfile();

    in_child_saying(jump_in_fiber, fs, fileno(said));
    cr_assert_eq(lseek(fileno(said), 0, SEEK_END), 0, "something was said");
    jump_in_fiber(fs);
    cr_assert(nj_noblock_is_set() && !nj_fiber_self());
    fclose(said);
    nj_fibers_free(fs);
}

/* More short waits than the ordered list holds: in order, none early, none later than a tick. */
Test(sched_fiber, many_short_waits)
{
    enum { N = 100 };
    struct nj_fibers *fs = new_fibers(N);
    struct sleeper s[N];
    nj_ns now = 7 * NJ_SEC;

    for (nj_ns i = 0; i < N; i++) {
        s[i].deadline = now + (i * 37 % N + 1) * 10 * NJ_US;
        fiber_start(fs, sleeper, &s[i]);
    }
    while (nj_fibers_in_use(fs) > 0) {
        fibers_run(fs, now, N);
        for (int i = 0; i < N; i++) {
            cr_assert(s[i].step == 1 || s[i].deadline <= now, "%d is early", i);
            cr_assert(s[i].step == 2 || s[i].deadline + TICK > now, "%d is late", i);
        }
        cr_assert(nj_fibers_in_use(fs) == 0 || nj_fibers_next_due(fs) > now);
        now += 7 * NJ_US;
    }
    nj_fibers_free(fs);
}

/* --- what belongs to a context ---------------------------------------------------------------- */

struct ctx_test {
    struct nj_waiter w;
    bool at_start, tagged, after_switch, after;
    int first_errno, errno_after;
    int round_first, round_after;
};

static void tag_errno_fp(void *arg)
{
    struct ctx_test *t = arg;

    t->at_start = nj_noblock_is_set();
    t->first_errno = errno;
    t->round_first = fegetround();
    errno = EDOM;
    fesetround(FE_UPWARD);
    nj_fiber_park(&t->w, NJ_NEVER);
    t->errno_after = errno;
    t->round_after = fegetround();
    bool before = nj_noblock_enter();
    t->tagged = nj_noblock_is_set();
    nj_noblock_leave(before);
    t->after = nj_noblock_is_set();
}

/* EWYK 5.32, EWYK 5.48: tag, errno and rounding mode are each context's own, and new for a task. */
Test(sched_fiber, contexts_do_not_leak)
{
    struct nj_fibers *fs = new_fibers(2);
    struct ctx_test t[3] = {0};

    errno = ENOENT;
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(fiber_start(fs, tag_errno_fp, &t[i]), NJ_FIBER_PARKED);
        cr_assert_eq(errno, ENOENT);
        cr_assert_eq(fegetround(), FE_TONEAREST);
        cr_assert(nj_noblock_is_set(), "the root");
    }
    for (int i = 0; i < 2; i++)
        nj_fiber_wake(t[i].w, NJ_WAKE_OK);
    errno = ERANGE;
    fibers_run(fs, 8 * NJ_SEC, 10);
    cr_assert_eq(errno, ERANGE);
    cr_assert_eq(fegetround(), FE_TONEAREST);
    fiber_start(fs, tag_errno_fp, &t[2]); /* on a stack whose last task had other modes */
    for (int i = 0; i < 3; i++) {
        cr_assert_not(t[i].at_start);
        cr_assert_eq(t[i].first_errno, 0);
        cr_assert_eq(t[i].round_first, FE_TONEAREST);
    }
    for (int i = 0; i < 2; i++) {
        cr_assert(t[i].tagged && !t[i].after);
        cr_assert_eq(t[i].errno_after, EDOM);
        cr_assert_eq(t[i].round_after, FE_UPWARD);
    }
    nj_noblock_leave(false);
    cr_assert(nj_noblock_is_set(), "the root's value is unchanged");
    nj_fiber_cancel(t[2].w.fiber);
    fibers_run(fs, 8 * NJ_SEC, 10);
    nj_fibers_free(fs);
}

static void hold_tag(void *arg)
{
    struct ctx_test *t = arg;

    t->at_start = nj_noblock_enter();
    nj_noblock_leave(t->at_start);
    nj_fiber_park(&t->w, NJ_NEVER);
    t->after_switch = nj_noblock_is_set();
    nj_noblock_enter(); /* and not restored: its own business */
}

/* EWYK 5.31: the tag is restored on return; a task that did not clear it leaves none to the next
 * task. */
Test(sched_fiber, tag_is_gone_with_the_task)
{
    struct nj_fibers *fs = new_fibers(1);
    struct ctx_test t = {0};

    for (int i = 0; i < 2; i++) {
        cr_assert_eq(fiber_start(fs, hold_tag, &t), NJ_FIBER_PARKED);
        cr_assert(!t.at_start && !t.after_switch);
        nj_fiber_wake(t.w, NJ_WAKE_OK);
        fibers_run(fs, 8 * NJ_SEC, 10);
    }
    nj_fibers_free(fs);
}

/* --- stacks ----------------------------------------------------------------------------------- */

static bool sanitized(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#else
    return false;
#endif
}

static __attribute__((noinline)) unsigned recurse(volatile unsigned *deep)
{
    volatile unsigned here[64] = {++*deep};
    if (*deep == 0)
        return 0;
    return recurse(deep) + here[*deep % 64];
}

/* Where the stack of the overflowing fiber began, for the handler. */
static uintptr_t first_frame;

enum { NEAR = 42, FAR = 43 };

/* In the guard page: below the stack (four times as large with a sanitizer), but not by much. */
static void on_fault(int signal, siginfo_t *info, void *context)
{
    uintptr_t below = first_frame - (uintptr_t)info->si_addr;
    uint32_t factor = sanitized() ? 4 : 1;

    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    _exit(below <= factor * NJ_FIBER_STACK_BYTES + 2 * page ? NEAR : FAR);
}

static void overflow(void *arg)
{
    unsigned deep = 1;

    first_frame = (uintptr_t)__builtin_frame_address(0);
    *(unsigned *)arg = recurse(&deep);
}

static void overflow_in_fiber(void *arg)
{
    static uint8_t handler_stack[65536];
    stack_t alt = {.ss_sp = handler_stack, .ss_size = sizeof handler_stack};
    struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    unsigned out;

    sigaltstack(&alt, NULL);
    sigaction(SIGSEGV, &act, NULL);
    fiber_start(arg, overflow, &out);
}

/* EWYK 5.62: on each of the stacks, and before that of the neighbour is touched. */
Test(sched_fiber, overflow_hits_the_guard_page)
{
    struct nj_fibers *fs = new_fibers(3);
    struct sleeper s[2] = {{.deadline = NJ_NEVER}, {.deadline = NJ_NEVER}};

    for (int i = 0; i < 3; i++) {
        int status = in_child(overflow_in_fiber, fs);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == NEAR, "status %x", status);
        if (i < 2)
            fiber_start(fs, sleeper, &s[i]);
    }
    for (int i = 0; i < 2; i++)
        nj_fiber_cancel(s[i].self);
    fibers_run(fs, 8 * NJ_SEC, 10);
    nj_fibers_free(fs);
}

static void use_stack(void *arg)
{
    volatile char deep[20000];
    memset((char *)deep, 1, sizeof deep);
    *(int *)arg = deep[77];
}

/* EWYK 5.62: how deep the stacks were used is known in checked builds. */
Test(sched_fiber, stack_high_water)
{
    struct nj_fibers *fs = new_fibers(2);
    int out;

    cr_assert_eq(nj_fibers_stack_high_water(fs), 0);
    fiber_start(fs, set_one, &out);
#ifdef NJ_CHECKED
    size_t little = nj_fibers_stack_high_water(fs);
    cr_assert_lt(little, 16384);
    fiber_start(fs, use_stack, &out);
    cr_assert_geq(nj_fibers_stack_high_water(fs), 20000);
    cr_assert_leq(nj_fibers_stack_high_water(fs), 20000 + 16384);
#else
    fiber_start(fs, use_stack, &out);
#endif
    nj_fibers_free(fs);
}

struct place {
    struct nj_waiter w;
    uintptr_t frame;
};

static void note_place(void *arg)
{
    struct place *p = arg;

    p->frame = (uintptr_t)__builtin_frame_address(0);
    nj_fiber_park(&p->w, NJ_NEVER);
}

static void end_all(struct nj_fibers *fs, struct place *p, int n)
{
    for (int i = 0; i < n; i++)
        nj_fiber_cancel(p[i].w.fiber);
    cr_assert_eq(fibers_run(fs, 9 * NJ_SEC, (uint32_t)n), (uint32_t)n);
}

/* Neighbours begin in different sets of the L1 cache; and the last freed is the first used. */
Test(sched_fiber, tops_are_staggered_and_stacks_reused_hot)
{
    enum { N = 64 };
    struct nj_fibers *fs = new_fibers(N);
    struct place p[N], again;
    bool seen[64] = {0};

    for (int i = 0; i < N; i++)
        fiber_start(fs, note_place, &p[i]);
    for (int i = 0; i < N; i++)
        seen[p[i].frame / 64 % 64] = true;
    for (int i = 0; i < 64; i++)
        cr_assert(seen[i], "no stack begins in line %d of its page", i);
    end_all(fs, p, N);
    fiber_start(fs, note_place, &again);
    cr_assert_eq(again.frame, p[N - 1].frame);
    end_all(fs, &again, 1);
    nj_fibers_free(fs);
}

static bool resident(uintptr_t at)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    unsigned char in;

    cr_assert_eq(mincore((void *)(at / page * page), 1, &in), 0);
    return in & 1;
}

/* EWYK 5.45: memory of idle stacks is returned to the system, also while other stacks are in use.
 * The stacks can be used afterwards. */
Test(sched_fiber, trim_gives_memory_back)
{
    struct nj_fibers *fs = new_fibers(4);
    struct place p[4];
    int out = 0;

    for (int i = 0; i < 4; i++)
        fiber_start(fs, note_place, &p[i]);
    for (int i = 1; i < 4; i++) /* the last one is the hottest */
        nj_fiber_cancel(p[i].w.fiber);
    fibers_run(fs, 9 * NJ_SEC, 4);
    cr_assert_gt(nj_fibers_trim(fs, 1, UINT32_MAX), 0);
    cr_assert(resident(p[0].frame), "in use");
    cr_assert(resident(p[3].frame), "kept");
    cr_assert(!resident(p[1].frame) && !resident(p[2].frame));
    cr_assert_eq(nj_fibers_trim(fs, 0, 0), 0);
    cr_assert_eq(nj_fibers_trim(fs, 0, 1), 1);
    cr_assert_eq(nj_fibers_trim(fs, 0, UINT32_MAX), 0); /* all were */
    cr_assert(resident(p[0].frame) && !resident(p[3].frame));
    cr_assert_eq(fiber_start(fs, use_stack, &out), NJ_FIBER_ENDED);
    cr_assert_eq(out, 1);
    end_all(fs, p, 1);
    nj_fibers_free(fs);
}

/* --- one thread ------------------------------------------------------------------------------- */

static void *without_fibers(void *arg)
{
    bool *ok = arg;
    bool first = nj_noblock_is_set(), before = nj_noblock_enter();

    *ok = !first && !before && nj_noblock_is_set() && !nj_fiber_self();
    nj_noblock_leave(before);
    *ok = *ok && !nj_noblock_is_set();
    return NULL;
}

/* A worker, for one, may block. */
Test(sched_fiber, a_thread_without_fibers_has_a_tag_too)
{
    pthread_t t;
    bool ok = false;

    cr_assert_eq(pthread_create(&t, NULL, without_fibers, &ok), 0);
    pthread_join(t, NULL);
    cr_assert(ok);
}

struct other_thread {
    struct nj_fibers *fs;
    pthread_barrier_t parked, looked_at;
};

static void *own_a_fiber(void *arg)
{
    struct other_thread *o = arg;
    struct sleeper s = {.deadline = NJ_NEVER};

    fiber_start(o->fs, sleeper, &s);
    nj_fiber_wake(s.w, NJ_WAKE_OK);
    pthread_barrier_wait(&o->parked);
    pthread_barrier_wait(&o->looked_at);
    fibers_run(o->fs, 9 * NJ_SEC, 1);
    return NULL;
}

static void run_here(void *fs)
{
    fibers_run(fs, 9 * NJ_SEC, 1);
}

/* EWYK 5.57 */
Test(sched_fiber, never_on_another_thread)
{
    struct other_thread o = {.fs = new_fibers(1)};
    pthread_t t;

    pthread_barrier_init(&o.parked, NULL, 2);
    pthread_barrier_init(&o.looked_at, NULL, 2);
    cr_assert_eq(pthread_create(&t, NULL, own_a_fiber, &o), 0);
    pthread_barrier_wait(&o.parked);
#ifdef NJ_CHECKED
    int status = in_child(run_here, o.fs);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "status %x", status);
#else
    (void)run_here;
#endif
    pthread_barrier_wait(&o.looked_at);
    pthread_join(t, NULL);
    cr_assert_eq(nj_fibers_in_use(o.fs), 0);
    nj_fibers_free(o.fs);
}
