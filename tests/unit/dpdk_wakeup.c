/* SPDX-License-Identifier: BSD-3-Clause */
/* An lcore that sleeps until another thread has work for it: no wake-up is lost. Run it under
 * ThreadSanitizer too. The sleeps of these tests are an hour long, so a lost wake-up exceeds the
 * test's time-out. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#define RTE_USE_C11_MEM_MODEL
#include <rte_pause.h>
#include <rte_ring.h>

#include "dpdk/wakeup.h"

#define HOUR      (3600 * NJ_SEC)
#define GIVERS    3
#define N_THINGS  20000u
#define RING_SIZE 64u

struct giver {
    pthread_t thread;
    struct rte_ring *ring;
    struct nj_wakeup *waker;
    _Atomic uintptr_t taken; /* the last that was taken */
    uint32_t seed;
};

static struct rte_ring *ring_new(void)
{
    struct rte_ring *r = aligned_alloc(NJ_CACHE_LINE, (size_t)rte_ring_get_memsize(RING_SIZE));

    cr_assert_eq(rte_ring_init(r, "things", RING_SIZE, RING_F_SP_ENQ | RING_F_SC_DEQ), 0);
    return r;
}

/* Mostly the next item is sent only after the last one was taken, and some time later. So it often
 * meets a thread that is about to sleep. */
static void *give(void *arg)
{
    struct giver *g = arg;

    for (uintptr_t k = 1; k <= N_THINGS; k++) {
        while (rte_ring_sp_enqueue(g->ring, (void *)k) != 0)
            sched_yield();
        nj_wakeup_signal(g->waker);
        g->seed = g->seed * 1103515245u + 12345u;
        if (g->seed >> 30 == 0)
            continue;
        while (atomic_load_explicit(&g->taken, memory_order_relaxed) != k)
            sched_yield();
        for (uint32_t i = g->seed >> 20 & 0x3ff; i > 0; i--)
            rte_pause();
    }
    return NULL;
}

static uint32_t take(struct giver *g)
{
    uint32_t n = 0;
    void *thing;

    while (rte_ring_sc_dequeue(g->ring, &thing) == 0) {
        uintptr_t before = atomic_load_explicit(&g->taken, memory_order_relaxed);
        cr_assert_eq((uintptr_t)thing, before + 1);
        atomic_store_explicit(&g->taken, (uintptr_t)thing, memory_order_relaxed);
        n++;
    }
    return n;
}

Test(dpdk_wakeup, no_wake_up_is_lost)
{
    struct giver givers[GIVERS];
    struct nj_wakeup w;
    uint64_t n_taken = 0, n_slept = 0;

    cr_assert(nj_wakeup_open(&w));
    for (uint32_t i = 0; i < GIVERS; i++) {
        givers[i] = (struct giver){.ring = ring_new(), .waker = &w, .seed = i + 1};
        cr_assert_eq(pthread_create(&givers[i].thread, NULL, give, &givers[i]), 0);
    }
    while (n_taken < (uint64_t)GIVERS * N_THINGS) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < GIVERS; i++)
            n += take(&givers[i]);
        n_taken += n;
        if (n > 0) {
            nj_wakeup_disarm(&w);
        } else if (!nj_wakeup_is_armed(&w)) {
            nj_wakeup_arm(&w);
        } else {
            n_slept++;
            nj_wakeup_wait(&w, -1, -1, HOUR);
        }
    }
    cr_expect_gt(n_slept, 0);
    for (uint32_t i = 0; i < GIVERS; i++) {
        pthread_join(givers[i].thread, NULL);
        free(givers[i].ring);
    }
    nj_wakeup_close(&w);
}

static bool has_rung(struct nj_wakeup *w)
{
    uint64_t n;
    return read(w->fd, &n, sizeof n) == sizeof n;
}

Test(dpdk_wakeup, who_is_awake_is_not_rung)
{
    struct nj_wakeup w;

    cr_assert(nj_wakeup_open(&w));
    nj_wakeup_signal(&w);
    cr_expect_not(has_rung(&w));
    nj_wakeup_arm(&w);
    nj_wakeup_disarm(&w);
    nj_wakeup_signal(&w);
    cr_expect_not(has_rung(&w));
    nj_wakeup_close(&w);
}

Test(dpdk_wakeup, one_of_several_rings)
{
    struct nj_wakeup w;

    cr_assert(nj_wakeup_open(&w));
    nj_wakeup_arm(&w);
    nj_wakeup_signal(&w);
    cr_expect_not(nj_wakeup_is_armed(&w));
    nj_wakeup_signal(&w);
    cr_expect_eq(nj_wakeup_wait(&w, -1, -1, HOUR), 0); /* and takes the ring */
    cr_expect_not(has_rung(&w));
    nj_wakeup_close(&w);
}

Test(dpdk_wakeup, a_file_wakes_too)
{
    struct nj_wakeup w;
    int ends[2];

    cr_assert(nj_wakeup_open(&w));
    cr_assert_eq(pipe(ends), 0);
    cr_assert_eq(write(ends[1], "x", 1), 1);
    nj_wakeup_arm(&w);
    cr_expect_neq(nj_wakeup_wait(&w, ends[0], -1, HOUR), 0);
    cr_expect(nj_wakeup_is_armed(&w), "no other thread did");
    cr_expect_eq(nj_wakeup_wait(&w, -1, -1, NJ_US), 0); /* the time is over */
    close(ends[0]);
    close(ends[1]);
    nj_wakeup_close(&w);
}
