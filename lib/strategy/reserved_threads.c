/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reserved threads, as Jetty's ReservedThreadExecutor: an array of seats, one for each thread.
 *
 * A seat is a word: FREE, WAITING (a thread waits there for a task), the address of a task, or
 * ROUSED (the thread shall return). A task is handed over by one compare-and-swap of WAITING, so an
 * accepted task always has a thread. A thread that gives up changes its seat from WAITING to FREE.
 * If that fails, it was given a task and runs it. There are no lists, and so no ABA problem.
 *
 * No thread sleeps that is needed elsewhere. A thread writes WAITING and then calls is_needed(). A
 * caller that needs a thread writes its request and then searches for WAITING in
 * nj_reserved_unreserve_one(). All four accesses are sequentially consistent, so one side sees the
 * other.
 *
 * `count` holds the seats in use, the wanted threads and the stop flag in one word. A thread raises
 * the seats in use before it takes a seat, so a free one exists. It frees its seat before it lowers
 * the number.
 */
#include "strategy/reserved_threads.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/futex_park.h"
#include "base/interleaving_points.h"
#include "strategy/strategy_thread_context.h"

enum { FREE, WAITING, ROUSED }; /* any other value is the address of a task */

struct seat {
    _Atomic uintptr_t state;
    _Atomic uint32_t n_wakes;
} NJ_CACHE_ALIGNED; /* a cache line each: different threads write them */

struct nj_reserved {
    struct nj_reserved_config config;
    _Atomic uint32_t count NJ_CACHE_ALIGNED;
    struct seat seats[];
};

#define N_SEATED  0xffffu  /* of count */
#define ONE_WANTS 0x10000u /* bits above: the wanted threads */
#define N_WANTED  0xfff0000u
#define STOPPED   0x80000000u

static uint32_t n_wanted(uint32_t count)
{
    return (count & N_WANTED) / ONE_WANTS;
}

/* --- the count -------------------------------------------------------------------------------- */

static uint32_t look(const struct nj_reserved *r)
{
    return atomic_load_explicit(&r->count, memory_order_acquire);
}

static bool change(struct nj_reserved *r, uint32_t *now, uint32_t next)
{
    NJ__SCHED_POINT(NJ__AT_SEAT_COUNT, *now);
    return atomic_compare_exchange_strong_explicit(&r->count, now, next, memory_order_acq_rel,
                                                   memory_order_acquire);
}

static bool may_want(const struct nj_reserved *r, uint32_t count)
{
    return !(count & STOPPED) && (count & N_SEATED) + n_wanted(count) < r->config.capacity;
}

static void want(struct nj_reserved *r)
{
    uint32_t now = look(r);

    while (may_want(r, now))
        if (change(r, &now, now + ONE_WANTS)) {
            if (r->config.wanted)
                r->config.wanted(r->config.ctx);
            return;
        }
}

/* Takes the place of a wanted thread. `again`: the thread was reserved before, and may also take a
 * place that is not wanted, if there is room. */
static bool join(struct nj_reserved *r, bool again)
{
    uint32_t now = look(r);

    while (!(now & STOPPED) && (n_wanted(now) || (again && may_want(r, now))))
        if (change(r, &now, n_wanted(now) ? now - ONE_WANTS + 1 : now + 1))
            return true;
    return false;
}

static bool release_place(struct nj_reserved *r, uint32_t n_min)
{
    uint32_t now = look(r);

    while ((now & N_SEATED) > n_min)
        if (change(r, &now, now - 1))
            return true;
    return false;
}

/* --- seats ------------------------------------------------------------------------------------ */

/* Takes the first free seat, so that at low load the last ones stay idle. A free seat exists; a
 * search that misses it saw other threads take seats. */
static struct seat *sit_down(struct nj_reserved *r)
{
    for (uint32_t i = 0;; i = (i + 1) % r->config.capacity) {
        uintptr_t is = FREE;
        NJ__SCHED_POINT(NJ__AT_SEAT, i);
        if (atomic_compare_exchange_strong_explicit(&r->seats[i].state, &is, WAITING,
                                                    memory_order_seq_cst, memory_order_relaxed))
            return &r->seats[i];
    }
}

static bool seat_change(struct seat *seat, uintptr_t is, uintptr_t next)
{
    return atomic_compare_exchange_strong_explicit(&seat->state, &is, next, memory_order_acq_rel,
                                                   memory_order_acquire);
}

/* Leaves the thread's own seat. False: another thread has changed it. */
static bool leave_seat(struct seat *seat)
{
    NJ__SCHED_POINT(NJ__AT_SEAT_LEAVE, 0);
    return seat_change(seat, WAITING, FREE);
}

/* Frees the seat and returns its new value; 0: no other thread has changed it. */
static uintptr_t take(struct nj_reserved *r, struct seat *seat)
{
    uintptr_t is = atomic_load_explicit(&seat->state, memory_order_acquire);

    if (is == WAITING)
        return 0;
    NJ__SCHED_POINT(NJ__AT_SEAT_FREE, 0);
    atomic_store_explicit(&seat->state, FREE, memory_order_release);
    release_place(r, 0);
    return is;
}

/* Called while the seat is WAITING, see the head of this file. */
static bool must_leave(struct nj_reserved *r)
{
    return (look(r) & STOPPED) || (r->config.is_needed && r->config.is_needed(r->config.ctx));
}

/* Returns the address of a task, ROUSED, or FREE when the thread gave up. */
static uintptr_t wait_for_task(struct nj_reserved *r)
{
    struct seat *seat = sit_down(r);

    for (;;) {
        uint32_t seen = atomic_load_explicit(&seat->n_wakes, memory_order_acquire);
        NJ__SCHED_POINT(NJ__AT_SEAT_LOOK, seen);
        uintptr_t got = take(r, seat);
        if (got)
            return got;
        bool leaves = must_leave(r);
        if (!leaves && nj_park(&seat->n_wakes, seen, r->config.idle_ns))
            continue;
        if (!leave_seat(seat))
            continue; /* it was given one */
        if (release_place(r, leaves ? 0 : r->config.n_min))
            return FREE;
        seat = sit_down(r); /* one of the few threads that stay */
    }
}

/* --- interface -------------------------------------------------------------------------------- */

struct nj_reserved *nj_reserved_new(const struct nj_reserved_config *config)
{
    size_t n_bytes = sizeof(struct nj_reserved) + config->capacity * sizeof(struct seat);
    struct nj_reserved *r =
        config->capacity <= NJ_RESERVED_MAX ? aligned_alloc(NJ_CACHE_LINE, n_bytes) : NULL;

    if (!r)
        return NULL;
    r->config = *config;
    atomic_init(&r->count, 0);
    for (uint32_t i = 0; i < config->capacity; i++) {
        atomic_init(&r->seats[i].state, FREE);
        atomic_init(&r->seats[i].n_wakes, 0);
    }
    return r;
}

void nj_reserved_free(struct nj_reserved *r)
{
    free(r);
}

bool nj_reserved_try_execute(struct nj_reserved *r, struct nj_task *task)
{
    uint32_t count = look(r);

    if (count & STOPPED)
        return false;
    for (uint32_t i = 0; (count & N_SEATED) && i < r->config.capacity; i++) {
        NJ__SCHED_POINT(NJ__AT_HAND_OVER, i);
        if (atomic_load_explicit(&r->seats[i].state, memory_order_relaxed) == WAITING &&
            seat_change(&r->seats[i], WAITING, (uintptr_t)task)) {
            nj_unpark(&r->seats[i].n_wakes);
            return true;
        }
    }
    want(r);
    return false;
}

bool nj_reserved_is_wanted(const struct nj_reserved *r)
{
    uint32_t count = look(r);
    return !(count & STOPPED) && n_wanted(count);
}

bool nj_reserved_serve(struct nj_reserved *r)
{
    for (bool again = false; join(r, again); again = true) {
        uintptr_t got = wait_for_task(r);
        if (got == FREE || got == ROUSED)
            return got == ROUSED;
        nj__run_task_in_clean_state((struct nj_task *)got);
    }
    return false;
}

bool nj_reserved_unreserve_one(struct nj_reserved *r)
{
    for (uint32_t i = 0; i < r->config.capacity; i++) {
        NJ__SCHED_POINT(NJ__AT_RELEASE, i);
        if (atomic_load_explicit(&r->seats[i].state, memory_order_seq_cst) == WAITING &&
            seat_change(&r->seats[i], WAITING, ROUSED)) {
            nj_unpark(&r->seats[i].n_wakes);
            return true;
        }
    }
    return false;
}

void nj_reserved_stop(struct nj_reserved *r)
{
    atomic_fetch_or_explicit(&r->count, STOPPED, memory_order_acq_rel);
    for (uint32_t i = 0; i < r->config.capacity; i++)
        nj_unpark(&r->seats[i].n_wakes);
}

void nj_reserved_count_and_wanted(const struct nj_reserved *r, uint32_t *n_reserved,
                                  uint32_t *n_wants)
{
    uint32_t count = look(r);
    *n_reserved = count & N_SEATED;
    *n_wants = n_wanted(count);
}
