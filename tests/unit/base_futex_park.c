/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that sleeps and threads that wake it, at each step of the kernel's call. The test
 * implements the futex. A call that would sleep endlessly fails. */
#include <criterion/criterion.h>

#include <errno.h>
#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long futex(long number, void *word, int op, uint32_t value, const struct timespec *timeout,
                  void *unused, int unused_too);

#define syscall futex
#include "base/futex_park.c"
#undef syscall

static struct {
    _Atomic uint32_t word;
    uint32_t n_waits, n_wakes;
    uint32_t unparks_before, unparks_within; /* the kernel compares the word; it sleeps */
} w;

static void unpark(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        nj_unpark(&w.word);
}

static long futex(long number, void *word, int op, uint32_t value, const struct timespec *timeout,
                  void *unused, int unused_too)
{
    (void)unused, (void)unused_too;
    cr_assert(number == SYS_futex && word == &w.word);
    if (op == FUTEX_WAKE_PRIVATE) {
        w.n_wakes++;
        return 1;
    }
    cr_assert_eq(op, FUTEX_WAIT_PRIVATE);
    w.n_waits++;
    unpark(w.unparks_before);
    if (atomic_load(&w.word) != value) {
        errno = EAGAIN;
        return -1;
    }
    w.n_wakes = 0;
    unpark(w.unparks_within);
    if (w.n_wakes)
        return 0;
    cr_assert(timeout, "no thread wakes it");
    errno = ETIMEDOUT;
    return -1;
}

Test(base_futex_park, nobody_sleeps)
{
    uint32_t seen = atomic_load(&w.word);

    unpark(3);
    cr_assert(nj_park(&w.word, seen, NJ_NEVER), "woken before it slept");
    cr_assert(w.n_waits == 0 && w.n_wakes == 0, "no system call");
}

Test(base_futex_park, woken_just_before_it_sleeps)
{
    w.unparks_before = 1;
    cr_assert(nj_park(&w.word, atomic_load(&w.word), NJ_NEVER));
    cr_assert(w.n_waits == 1 && w.n_wakes == 1);
}

Test(base_futex_park, woken)
{
    for (uint32_t i = 0; i < 3; i++) {
        w.unparks_within = 1 + i;
        cr_assert(nj_park(&w.word, atomic_load(&w.word), i == 1 ? NJ_SEC : NJ_NEVER));
        cr_assert_eq(w.n_waits, i + 1);
    }
    w.n_wakes = 0;
    unpark(1);
    cr_assert_eq(w.n_wakes, 0, "it is awake");
}

Test(base_futex_park, late)
{
    cr_assert(!nj_park(&w.word, atomic_load(&w.word), NJ_SEC));
    unpark(1);
    cr_assert_eq(w.n_wakes, 0, "it is awake");
    uint32_t seen = atomic_load(&w.word);
    cr_assert(!nj_park(&w.word, seen, 1));
    cr_assert_eq(atomic_load(&w.word), seen, "waiting is no wake-up");
}
