/* SPDX-License-Identifier: BSD-3-Clause */
/* One thread that sleeps until there is work, others that add work and wake the thread, and the
 * kernel's futex according to its manual. The other worlds use the sleep of system.c. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "models.h"
#include "system.h"

struct timespec;
static long model_syscall(long number, _Atomic uint32_t *word, int operation, uint32_t is,
                          const struct timespec *time, const void *unused, int unused_too);
#define syscall   model_syscall
#define nj_park   real_park
#define nj_unpark real_unpark
#include "base/futex_park.c"

enum { PLACE_LOOK = EXPLORE_N_PLACES, PLACE_FUTEX, PLACE_BRING };

static struct {
    const struct model_park *model;
    _Atomic uint32_t n_wakes;
    uint8_t n_work, n_done, n_timeouts, n_early;
    bool asleep;
} w;

static bool may_wake(void *arg)
{
    (void)arg;
    return !w.asleep || w.n_timeouts || w.n_early;
}

/* The check of the word and falling asleep are one step; so are a wake-up and the search for
 * sleeping threads. */
static long model_syscall(long number, _Atomic uint32_t *word, int operation, uint32_t is,
                          const struct timespec *time, const void *unused, int unused_too)
{
    (void)number, (void)time, (void)unused, (void)unused_too;
    explore_step(PLACE_FUTEX, operation);
    if (operation == FUTEX_WAKE_PRIVATE) {
        w.asleep = false;
        return 0;
    }
    if (atomic_load(word) != is) {
        errno = EAGAIN;
        return -1;
    }
    explore_note("falls asleep");
    w.asleep = true;
    explore_wait(may_wake, NULL, PLACE_FUTEX);
    if (!w.asleep)
        return 0;
    bool times_out = w.n_timeouts && (!w.n_early || explore_choose(2));
    w.n_timeouts -= times_out;
    w.n_early -= !times_out;
    w.asleep = false;
    errno = times_out ? ETIMEDOUT : EINTR;
    return -1;
}

static void sleeper(void *arg)
{
    (void)arg;
    while (w.n_done < w.model->n_wakers) {
        uint32_t seen = atomic_load(&w.n_wakes);
        explore_step(PLACE_LOOK, seen);
        if (w.n_work > w.n_done) {
            w.n_done++;
            continue;
        }
        uint8_t n_timeouts = w.n_timeouts;
        if (!real_park(&w.n_wakes, seen, NJ_MS) && w.n_timeouts >= n_timeouts)
            explore_fail("the time is up that was not");
    }
}

static void waker(void *arg)
{
    (void)arg;
    explore_step(PLACE_BRING, 0);
    w.n_work++;
    real_unpark(&w.n_wakes);
}

static void begin(void *ctx)
{
    const struct model_park *m = ctx;

    w.model = m;
    w.n_timeouts = m->n_timeouts;
    w.n_early = m->n_early;
    explore_start(sleeper, NULL, 0);
    for (unsigned i = 0; i < m->n_wakers; i++)
        explore_start(waker, NULL, 1);
}

static uint64_t hash(const void *ctx)
{
    (void)ctx;
    return explore_mix((uint64_t)atomic_load(&w.n_wakes) << 8 | w.asleep,
                       (uint64_t)w.n_work << 24 | (uint64_t)w.n_done << 16 |
                           (uint64_t)w.n_timeouts << 8 | w.n_early);
}

static void on_end(void *ctx)
{
    (void)ctx;
    if (explore_n_stuck())
        explore_fail("a wake-up is lost");
}

struct explore_result model_park(const struct model_park *m, uint64_t states_max)
{
    struct explore_world world = {.begin = begin,
                                  .hash = hash,
                                  .end = on_end,
                                  .ctx = (void *)(uintptr_t)m,
                                  .memory = &w,
                                  .n_memory = sizeof w,
                                  .by_stack = true};
    return explore(&world, states_max);
}
