/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual time (delays.h): threads are contexts of one thread, and the clock goes to the next one
 * that has something to do. The pools are the real ones; only what they have from the system is
 * here: sched/futex_park.h, sched/os_thread_mutex.h, and clock_gettime().
 *
 * Code takes no time. What does: a task that computes or is stuck; a thread that is woken goes on
 * WAKE_NS later; a step of the driver takes STEP_NS. As many threads compute at once as like. A
 * thread that looks at an empty ring a thousand times does so in no time, so it sleeps at once, and
 * each task that comes then waits for a thread to wake up: delays of tasks that come alone are
 * longer than on the machine.
 *
 * A thread gives the processor to another one only where it waits, and nobody waits with the lock
 * of the pool: so there is never anything to do for a lock.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "delays.h"
#include "sched/fiber.h"
#include "sched/futex_park.h"
#include "sched/os_thread_mutex.h"
#include "sched/stack_switch.h"
#include "sched/strategy_thread_context.h"

#define WAKE_NS     (5 * NJ_US)
#define STEP_NS     (2 * NJ_US)
#define THREADS_MAX 80u
#define STACK_BYTES (256u * 1024u)

struct thread {
    void *at; /* its context while it does not run */
    struct nj__switch_stack lane;
    void *(*fn)(void *arg);
    void *arg;
    nj_ns due;       /* when it goes on; NJ_NEVER: when it is woken */
    const void *key; /* what it sleeps at */
    nj_ns cpu;
    uint64_t turn; /* of those that are due at one time the first goes first */
    bool done, woken;
    bool tag;                /* what a thread of its own would keep in ... */
    struct nj__frame *frame; /* ... thread-local memory */
};

static struct {
    struct thread threads[THREADS_MAX]; /* the first is the driver */
    uint32_t n_threads;
    struct thread *self;
    void *root;
    struct nj__switch_stack root_stack;
    nj_ns now;
    uint64_t turn;
} v;

/* --- contexts --------------------------------------------------------------------------------- */

static void to_root(void)
{
    struct thread *t = v.self;

    t->tag = nj_noblock_is_set();
    t->frame = nj__strategy_frame_top();
    t->turn = v.turn++;
    nj__sanitizer_start_switch(&t->lane, &v.root_stack);
    struct nj__transfer from = jump_fcontext(v.root, NULL);
    nj__sanitizer_finish_switch(&t->lane, &v.root_stack);
    v.root = from.from;
}

static void wake_all_at(const void *key, nj_ns due)
{
    for (uint32_t i = 0; i < v.n_threads; i++) {
        struct thread *t = &v.threads[i];
        if (t->done || t->key != key)
            continue;
        t->key = NULL;
        t->woken = true;
        t->due = due;
    }
}

static void entry(struct nj__transfer from)
{
    struct thread *t = v.self;

    nj__sanitizer_finish_switch(&t->lane, &v.root_stack);
    v.root = from.from;
    t->fn(t->arg);
    t->done = true;
    wake_all_at(t, v.now); /* who joins it */
    to_root();
}

static void go_on(struct thread *t)
{
    v.self = t;
    nj_noblock_leave(t->tag);
    nj__strategy_frame_set_top(t->frame);
    nj__sanitizer_start_switch(&v.root_stack, &t->lane);
    struct nj__transfer from = jump_fcontext(t->at, NULL);
    nj__sanitizer_finish_switch(&v.root_stack, &t->lane);
    t->at = from.from;
}

static struct thread *start(void *(*fn)(void *arg), void *arg)
{
    NJ_CHECK(v.n_threads < THREADS_MAX);
    struct thread *t = &v.threads[v.n_threads++];

    *t = (struct thread){.fn = fn, .arg = arg, .due = v.now + WAKE_NS, .turn = v.turn++};
    t->lane.bottom = malloc(STACK_BYTES);
    t->lane.n_bytes = STACK_BYTES;
    NJ_CHECK(t->lane.bottom);
    nj__sanitizer_prepare_stack(&t->lane);
    t->at = make_fcontext((char *)(uintptr_t)t->lane.bottom + STACK_BYTES, STACK_BYTES, entry);
    return t;
}

static struct thread *next(void)
{
    struct thread *first = NULL;

    for (uint32_t i = 0; i < v.n_threads; i++) {
        struct thread *t = &v.threads[i];
        if (t->done || t->due == NJ_NEVER)
            continue;
        if (!first || t->due < first->due || (t->due == first->due && t->turn < first->turn))
            first = t;
    }
    return first;
}

static void wait_until(nj_ns due)
{
    v.self->due = due;
    to_root();
}

/* --- what the pools have from the system ------------------------------------------------------ */

bool nj_park(_Atomic uint32_t *n_wakes, uint32_t seen, nj_ns timeout_ns)
{
    struct thread *t = v.self;

    if (atomic_load(n_wakes) != seen)
        return true;
    t->key = n_wakes;
    t->woken = false;
    wait_until(timeout_ns == NJ_NEVER ? NJ_NEVER : v.now + timeout_ns);
    t->key = NULL;
    return t->woken;
}

void nj_unpark(_Atomic uint32_t *n_wakes)
{
    atomic_fetch_add(n_wakes, 2);
    wake_all_at(n_wakes, v.now + WAKE_NS);
}

void nj__lock_init(struct nj__lock *l)
{
    (void)l;
}

void nj__lock_fini(struct nj__lock *l)
{
    (void)l;
}

void nj__lock_take(struct nj__lock *l)
{
    (void)l;
}

bool nj__lock_try(struct nj__lock *l)
{
    (void)l;
    return true;
}

void nj__lock_release(struct nj__lock *l)
{
    (void)l;
}

bool nj__thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg)
{
    *thread = (pthread_t)(start(fn, arg) - v.threads);
    return true;
}

void nj__thread_join(pthread_t thread)
{
    struct thread *t = &v.threads[thread];

    while (!t->done) {
        v.self->key = t;
        wait_until(NJ_NEVER);
    }
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
    nj_ns now = id == CLOCK_THREAD_CPUTIME_ID && v.self ? v.self->cpu : v.now;

    *ts = (struct timespec){(time_t)(now / NJ_SEC), (long)(now % NJ_SEC)};
    return 0;
}

/* --- the bench's time ------------------------------------------------------------------------- */

static int (*driver)(void);
static int status;

static void *drive(void *arg)
{
    status = driver();
    return arg;
}

int time_run(int (*main)(void))
{
    struct thread *t;

    driver = main;
    start(drive, NULL);
    while (!v.threads[0].done && (t = next())) {
        v.now = t->due > v.now ? t->due : v.now;
        go_on(t);
    }
    NJ_CHECK(v.threads[0].done); /* else all sleep, and nobody wakes them */
    return status;
}

nj_ns time_now(void)
{
    return v.now;
}

void time_burn(nj_ns ns)
{
    v.self->cpu += ns;
    wait_until(v.now + ns);
}

void time_block(nj_ns ns)
{
    wait_until(v.now + ns);
}

void time_step(void)
{
    wait_until(v.now + STEP_NS);
}

nj_ns time_cpu_of_others(void)
{
    return 0;
}

void time_place(void)
{
}
