/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual time (delays.h). Virtual threads are contexts of one thread of the system. The clock
 * advances to the due time of the next virtual thread. The pools run their own code; this file
 * replaces the functions of the system that they call: base/futex_park.h,
 * strategy/os_thread_mutex.h and clock_gettime().
 *
 * Only these take time: a task that computes or is stuck; the start and the wake-up of a thread
 * (WAKE_NS); a step of the driver (STEP_NS). Any number of threads compute at the same time. Polls
 * of empty rings take no time, so an idle worker sleeps at once, and each later task waits for a
 * wake-up. The delay of a task that arrives alone is therefore longer than in real time.
 *
 * A virtual thread switches to another one only when it waits. No thread waits while it holds the
 * pool's lock, so the lock needs no code.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "delays.h"
#include "sched/fiber.h"
#include "sched/stack_switch.h"
#include "base/futex_park.h"
#include "strategy/os_thread_mutex.h"

#define WAKE_NS     (5 * NJ_US)
#define STEP_NS     (2 * NJ_US)
#define THREADS_MAX 80u
#define STACK_BYTES (256u * 1024u)

struct thread {
    void *at; /* context, while the thread does not run */
    struct nj__switch_stack stack;
    void *(*fn)(void *arg);
    void *arg;
    nj_ns due;       /* when the thread continues; NJ_NEVER: when it is woken */
    const void *key; /* of the wake-up that it waits for, or NULL */
    nj_ns cpu;
    uint64_t turn; /* of threads with the same due time, the lowest turn runs first */
    bool done, woken;
    bool tag; /* a thread-local variable of lib/sched, saved while the thread does not run */
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
    t->turn = v.turn++;
    nj__sanitizer_start_switch(nj__sanitizer_is_there(), &t->stack, &v.root_stack);
    struct nj__transfer from = jump_fcontext(v.root, NULL);
    nj__sanitizer_finish_switch(nj__sanitizer_is_there(), &t->stack, &v.root_stack);
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

    nj__sanitizer_finish_switch(nj__sanitizer_is_there(), &t->stack, &v.root_stack);
    v.root = from.from;
    t->fn(t->arg);
    t->done = true;
    wake_all_at(t, v.now); /* threads that join it */
    to_root();
}

static void resume(struct thread *t)
{
    v.self = t;
    nj_noblock_leave(t->tag);
    nj__sanitizer_start_switch(nj__sanitizer_is_there(), &v.root_stack, &t->stack);
    struct nj__transfer from = jump_fcontext(t->at, NULL);
    nj__sanitizer_finish_switch(nj__sanitizer_is_there(), &v.root_stack, &t->stack);
    t->at = from.from;
}

static struct thread *start(void *(*fn)(void *arg), void *arg)
{
    NJ_CHECK(v.n_threads < THREADS_MAX);
    struct thread *t = &v.threads[v.n_threads++];

    *t = (struct thread){.fn = fn, .arg = arg, .due = v.now + WAKE_NS, .turn = v.turn++};
    t->stack.bottom = calloc(1, STACK_BYTES);
    t->stack.n_bytes = STACK_BYTES;
    NJ_CHECK(t->stack.bottom);
    nj__sanitizer_prepare_stack(&t->stack);
    t->at = make_fcontext((char *)(uintptr_t)t->stack.bottom + STACK_BYTES, STACK_BYTES, entry);
    return t;
}

/* The thread that runs next, or NULL: all threads are done or wait to be woken. */
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

/* --- system functions of the pools ------------------------------------------------------------ */

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

/* --- delays.h --------------------------------------------------------------------------------- */

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
        resume(t);
    }
    NJ_CHECK(v.threads[0].done); /* else all threads sleep and no thread can wake them */
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
