/* SPDX-License-Identifier: BSD-3-Clause */
#include "system.h"

#include "explore.h"
#include "base/futex_park.h"
#include "strategy/os_thread_mutex.h"

#define STARTED_MAX 12u

/* A thread of the system's. */
struct started {
    void *(*fn)(void *arg);
    void *arg;
    bool done;
};

/* In the memory of the world, so that a backtrack restores it. */
static struct state {
    struct explore_system may;
    bool refused;
    uint32_t n_started;
    struct started started[STARTED_MAX];
} * all;

void explore_system_begin(void)
{
    all = explore_alloc(sizeof *all);
}

void explore_system(struct explore_system is)
{
    all->may = is;
}

bool explore_system_is_whole(void)
{
    return !all->refused;
}

uint64_t explore_system_hash(void)
{
    uint64_t h =
        (uint64_t)all->may.n_timeouts << 16 | all->may.n_early << 8 | all->may.n_no_threads;

    for (uint32_t i = 0; i < all->n_started; i++)
        h = explore_mix(h, all->started[i].done);
    return explore_mix(h, all->refused);
}

/* --- sleep ------------------------------------------------------------------------------------ */

struct sleeper {
    _Atomic uint32_t *n_wakes;
    uint32_t seen;
    bool has_end;
};

static bool may_wake(void *arg)
{
    struct sleeper *s = arg;

    return atomic_load(s->n_wakes) != s->seen || all->may.n_early ||
           (s->has_end && all->may.n_timeouts);
}

bool nj_park(_Atomic uint32_t *n_wakes, uint32_t seen, nj_ns timeout_ns)
{
    struct sleeper s = {n_wakes, seen, timeout_ns != NJ_NEVER};

    explore_wait(may_wake, &s, EXPLORE_AT_SLEEP);
    if (atomic_load(n_wakes) != seen)
        return true;
    bool times_out = s.has_end && all->may.n_timeouts;
    if (times_out && all->may.n_early)
        times_out = explore_choose(2);
    explore_note(times_out ? "slept for too long" : "wakes up early");
    if (times_out)
        all->may.n_timeouts--;
    else
        all->may.n_early--;
    return !times_out;
}

void nj_unpark(_Atomic uint32_t *n_wakes)
{
    explore_step(EXPLORE_AT_WAKE, 0);
    atomic_fetch_add(n_wakes, 1);
}

/* --- locks ------------------------------------------------------------------------------------ */

/* The first byte of the mutex is 1 while it is locked. */
static bool *held(struct nj__lock *l)
{
    return (bool *)&l->os;
}

static bool is_free(void *arg)
{
    return !*held(arg);
}

void nj__lock_init(struct nj__lock *l)
{
    *held(l) = false;
}

void nj__lock_fini(struct nj__lock *l)
{
    if (*held(l))
        explore_fail("a held lock is freed");
}

void nj__lock_take(struct nj__lock *l)
{
    explore_wait(is_free, l, NJ__AT_POOL_LOCK);
    *held(l) = true;
}

bool nj__lock_try(struct nj__lock *l)
{
    nj__sched_point(NJ__AT_POOL_LOCK, 1);
    if (*held(l))
        return false;
    return *held(l) = true;
}

void nj__lock_release(struct nj__lock *l)
{
    nj__sched_point(NJ__AT_POOL_RELEASE, 0);
    if (!*held(l))
        explore_fail("a lock is released that is not held");
    *held(l) = false;
}

/* --- threads ---------------------------------------------------------------------------------- */

static void start(void *arg)
{
    struct started *s = arg;

    s->fn(s->arg);
    s->done = true;
}

bool nj__thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg)
{
    if (all->may.n_no_threads && explore_choose(2)) {
        all->may.n_no_threads--;
        all->refused = true;
        explore_note("gets no thread of the system");
        return false;
    }
    if (all->n_started == STARTED_MAX)
        explore_fail("too many threads");
    *thread = all->n_started;
    struct started *s = &all->started[all->n_started++];
    *s = (struct started){fn, arg, false};
    explore_start(start, s, 0);
    return true;
}

static bool is_done(void *arg)
{
    return ((struct started *)arg)->done;
}

void nj__thread_join(pthread_t thread)
{
    explore_wait(is_done, &all->started[thread], EXPLORE_AT_JOIN);
}
