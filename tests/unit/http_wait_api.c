/* SPDX-License-Identifier: BSD-3-Clause */
/* Events that other threads set, while fibers await them, time out, and are cancelled. No wake-up
 * is lost, and none disturbs another wait. Run it under ThreadSanitizer too. Fibers that wait
 * without limit wait for ever if one is lost, which exceeds the test's time-out. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <nightjar/handler.h>

#include "base/prng.h"
#include "dpdk/fd_waits.h"
#include "support/fiber_root.h"
#include "threads/os_clock.h"

#if defined(__SANITIZE_THREAD__)
#define N_SETS 5000u
#else
#define N_SETS 15000u
#endif
#define FIBERS  8u
#define SETTERS 3u
#define HOUR    (3600 * NJ_SEC)

/* One fiber and what it is told: plain memory behind the event, so that ThreadSanitizer reports a
 * missing order. */
struct box {
    struct nj_event event; /* stays; more was posted */
    _Atomic uint32_t n_posted;
    uint32_t n_taken;
    _Atomic(struct call *) call; /* to be answered, by an event on the fiber's stack */
    uint32_t n_calls, n_timeouts, n_too_early;
    struct nj_prng prng;
    bool has_ended;
};

struct call {
    struct nj_event done;
    uint32_t answer; /* plain */
};

static struct {
    struct nj_fibers *fs;
    struct nj_wakeup waker;
    struct nj_fd_waits fd_waits;
    struct box box[FIBERS];
    _Atomic bool over;
    pthread_t setter[SETTERS];
    uint32_t n_slept;
} t;

static nj_ns now_ns(void)
{
    return nj_os_clock_gettime_ns(CLOCK_MONOTONIC);
}

/* Asks a thread for an answer: the event is on the stack, and is gone when it was awaited. */
static void call(struct box *b)
{
    struct call c = {.answer = 0};

    atomic_store_explicit(&b->call, &c, memory_order_release);
    cr_assert_eq(nj_await(&c.done, 0), 0);
    cr_assert_eq(c.answer, 42);
    b->n_calls++;
}

/* Takes all that is posted, and waits for more: mostly without limit, or for a short time. */
static void consume(void *box)
{
    struct box *b = box;

    for (;;) {
        nj_event_clear(&b->event);
        uint32_t n = atomic_load_explicit(&b->n_posted, memory_order_relaxed);
        if (n == N_SETS && b->n_taken == n)
            break;
        b->n_taken = n;
        if (nj_prng_below(&b->prng, 8) == 0)
            call(b);
        uint32_t dice = nj_prng_below(&b->prng, 4);
        if (n == N_SETS)
            continue;
        int rc = nj_await(&b->event, dice == 0 ? 1 + nj_prng_below(&b->prng, 30000) : 0);
        b->n_timeouts += rc == NJ_ERR_TIMEOUT;
        cr_assert(rc == 0 || (rc == NJ_ERR_TIMEOUT && dice == 0), "%d", rc);
        if (dice == 1) { /* a late signal must not end it */
            nj_ns since = nj_fiber_now();
            cr_assert_eq(nj_sleep(20 * NJ_US), 0);
            b->n_too_early += nj_fiber_now() < since + 20 * NJ_US;
        }
    }
    b->has_ended = true;
}

static void answer(struct box *b)
{
    struct call *c = atomic_exchange_explicit(&b->call, NULL, memory_order_acquire);

    if (!c)
        return;
    c->answer = 42;
    nj_event_set(&c->done);
}

static void *post(void *seed)
{
    struct nj_prng prng;
    bool any = true;

    nj_prng_init(&prng, (uintptr_t)seed);
    while (!atomic_load(&t.over)) {
        struct box *b = &t.box[nj_prng_below(&prng, FIBERS)];
        uint32_t n = atomic_load_explicit(&b->n_posted, memory_order_relaxed);
        if (n < N_SETS && atomic_compare_exchange_strong(&b->n_posted, &n, n + 1))
            nj_event_set(&b->event);
        answer(b);
        any = !any;
        for (uint32_t i = nj_prng_below(&prng, 64) * nj_prng_below(&prng, 16); i > 0; i--)
            nj_cpu_relax();
        if (nj_prng_below(&prng, 32) == 0)
            sched_yield();
    }
    return NULL;
}

static bool all_ended(void)
{
    for (uint32_t i = 0; i < FIBERS; i++)
        if (!t.box[i].has_ended)
            return false;
    return true;
}

/* As an lcore: runs fibers, arms its wake-up when there are none, looks once more and sleeps. */
static void serve(void)
{
    while (!all_ended()) {
        if (fibers_run(t.fs, now_ns(), 64) > 0) {
            nj_wakeup_disarm(&t.waker);
        } else if (!nj_wakeup_is_armed(&t.waker)) {
            nj_wakeup_arm(&t.waker);
        } else {
            nj_ns due = nj_fibers_next_due(t.fs), now = now_ns();
            t.n_slept++;
            nj_wakeup_wait(&t.waker, -1, -1, due == NJ_NEVER ? HOUR : due > now ? due - now : 0);
        }
    }
}

static void setup(void)
{
    memset(&t, 0, sizeof t);
    cr_assert(nj_wakeup_open(&t.waker) && nj_fd_waits_open(&t.fd_waits, &t.waker));
    t.fs = nj_fibers_new(&(struct nj_fibers_config){
        .n_max = FIBERS, .now = now_ns(), .waits = nj_fd_waits_ops(&t.fd_waits)});
    cr_assert(t.fs);
}

static void teardown(void)
{
    nj_fibers_free(t.fs);
    nj_fd_waits_close(&t.fd_waits);
    nj_wakeup_close(&t.waker);
}

TestSuite(http_wait_api, .init = setup, .fini = teardown, .timeout = 100);

Test(http_wait_api, events_of_other_threads)
{
    uint32_t n_calls = 0, n_timeouts = 0, n_too_early = 0;

    for (uint32_t i = 0; i < FIBERS; i++) {
        nj_prng_init(&t.box[i].prng, 7 + i);
        cr_assert_eq(fiber_start(t.fs, consume, &t.box[i]), NJ_FIBER_PARKED);
    }
    for (uintptr_t i = 0; i < SETTERS; i++)
        pthread_create(&t.setter[i], NULL, post, (void *)(i + 1));
    serve();
    atomic_store(&t.over, true);
    for (uint32_t i = 0; i < SETTERS; i++)
        pthread_join(t.setter[i], NULL);
    for (uint32_t i = 0; i < FIBERS; i++) {
        n_calls += t.box[i].n_calls;
        n_timeouts += t.box[i].n_timeouts;
        n_too_early += t.box[i].n_too_early;
    }
    fprintf(stderr, "%u sets, %u calls, %u time-outs, slept %u times\n", FIBERS * N_SETS, n_calls,
            n_timeouts, t.n_slept);
    cr_expect(n_calls > 0 && n_timeouts > 0 && t.n_slept > 0);
    cr_expect_eq(n_too_early, 0);
    cr_expect_eq(nj_fibers_await_counts(t.fs)[NJ_AWAIT_EVENT].n_now, 0);
}

/* --- one event ------------------------------------------------------------------------------- */

static struct {
    struct nj_event event;
    int rc[3];
    unsigned n_over;
} one;

static void await_it(void *timeout)
{
    unsigned i = one.n_over;
    int rc = nj_await(&one.event, (uintptr_t)timeout);

    one.rc[i < one.n_over ? one.n_over : i] = rc;
    one.n_over++;
}

static void *set_it(void *arg)
{
    nj_event_set(&one.event);
    return arg;
}

static void from_a_thread(void *(*fn)(void *arg))
{
    pthread_t thread;

    cr_assert_eq(pthread_create(&thread, NULL, fn, NULL), 0);
    pthread_join(thread, NULL);
}

Test(http_wait_api, it_remains_set_until_it_is_cleared)
{
    nj_ns now = now_ns();

    memset(&one, 0, sizeof one);
    cr_expect_not(nj_event_is_set(&one.event));
    cr_assert_eq(fiber_start(t.fs, await_it, NULL), NJ_FIBER_PARKED);
    cr_assert_eq(fiber_start(t.fs, await_it, NULL), NJ_FIBER_ENDED);
    cr_expect_eq(one.rc[0], NJ_ERR_INVALID, "another one waits for it");
    nj_event_clear(&one.event);
    cr_expect_eq(fibers_run(t.fs, now, 10), 0);
    from_a_thread(set_it);
    from_a_thread(set_it);
    cr_expect_eq(fibers_run(t.fs, now, 10), 1);
    cr_expect(one.n_over == 2 && one.rc[1] == 0);
    cr_expect(nj_event_is_set(&one.event));
    cr_assert_eq(fiber_start(t.fs, await_it, NULL), NJ_FIBER_ENDED);
    nj_event_clear(&one.event);
    cr_expect_not(nj_event_is_set(&one.event));
}

Test(http_wait_api, the_same_thread_sets_it)
{
    nj_ns now = now_ns();

    memset(&one, 0, sizeof one);
    cr_assert_eq(fiber_start(t.fs, await_it, NULL), NJ_FIBER_PARKED);
    nj_event_set(&one.event);
    cr_expect_eq(nj_fibers_next_due(t.fs), 0, "at once");
    cr_expect_eq(fibers_run(t.fs, now, 10), 1);
    cr_expect(one.n_over == 1 && one.rc[0] == 0);
}

/* Another thread clears it before the fiber runs: it was set all the same. */
Test(http_wait_api, set_and_cleared_at_once)
{
    nj_ns now = now_ns();

    memset(&one, 0, sizeof one);
    cr_assert_eq(fiber_start(t.fs, await_it, NULL), NJ_FIBER_PARKED);
    from_a_thread(set_it);
    nj_event_clear(&one.event);
    cr_expect_eq(fibers_run(t.fs, now, 10), 1);
    cr_expect(one.n_over == 1 && one.rc[0] == 0);
    cr_expect_not(nj_event_is_set(&one.event));
}

/* The time passes and the event is set before the fiber runs: it was set. */
Test(http_wait_api, set_while_the_time_passes)
{
    nj_ns now = now_ns();

    memset(&one, 0, sizeof one);
    cr_assert_eq(fiber_start(t.fs, await_it, (void *)(uintptr_t)NJ_MS), NJ_FIBER_PARKED);
    cr_expect_eq(nj__fibers_wake_due(t.fs, now + 10 * NJ_MS), 1);
    from_a_thread(set_it);
    cr_expect_eq(fibers_run(t.fs, now + 10 * NJ_MS, 10), 1);
    cr_expect(one.n_over == 1 && one.rc[0] == 0);

    /* Its signal comes late, to a fiber that waits for something else. */
    nj_event_clear(&one.event);
    cr_assert_eq(fiber_start(t.fs, await_it, (void *)(uintptr_t)NJ_MS), NJ_FIBER_PARKED);
    cr_expect_eq(fibers_run(t.fs, now + 20 * NJ_MS, 10), 1);
    cr_expect(one.n_over == 2 && one.rc[1] == NJ_ERR_TIMEOUT);
}
