/* SPDX-License-Identifier: BSD-3-Clause */
/* What an lcore does all day: step its shard. */
#ifndef NJ_DPDK_LCORE_LOOP_H
#define NJ_DPDK_LCORE_LOOP_H

#include <pthread.h>
#include <stdatomic.h>

#include "dpdk/idle_lcore.h"
#include "dpdk/shard_rings.h"
#include "dpdk/tsc_clock.h"
#include "shard/shard.h"

enum nj_phase {
    NJ_PHASE_START, /* nobody runs yet */
    NJ_PHASE_RUN,
    NJ_PHASE_DRAIN, /* GOAWAY, finish what runs */
    NJ_PHASE_ABORT, /* reset what is left */
    NJ_PHASE_STOP,  /* leave the loop */
};

/* Written by the main thread, then by the supervisor; read by every lcore. */
struct nj_control {
    _Atomic enum nj_phase phase;
};

struct nj_lcore {
    unsigned id;  /* as the EAL numbers them */
    unsigned cpu; /* where it runs; the first, when it may run on several */
    int node;     /* NUMA node of that CPU */
    struct nj_shard *shard;
    const struct nj_clock *clock;
    const struct nj_control *control;
    struct nj_fabric_end *end;
    struct nj_waker *waker;
    struct nj_rx rx;      /* what it polls */
    enum nj_idle idle;    /* what it does without work */
    _Atomic bool drained; /* written by the lcore: nothing is on its way any more */
    enum nj_lcore_state {
        NJ_LCORE_IDLE,
        NJ_LCORE_FAILED, /* it has no id of the EAL, and does not run */
        NJ_LCORE_LEFT,   /* it has let go of its shard */
        NJ_LCORE_LAUNCHED,
        NJ_LCORE_RUNS,
    } _Atomic state;  /* written by the lcore from NJ_LCORE_RUNS on */
    pthread_t thread; /* of the main lcore */
    /* The program's, see nightjar/server.h; NULL: none. */
    void (*init)(unsigned lcore_id, void *ctx), (*fini)(unsigned lcore_id, void *ctx);
    void *hook_ctx;
};

/* The lcores that the EAL was given, the main one among them. Fills in `id`, `cpu`, `node` of up to
 * `n_max` and returns how many there are. Any thread. */
uint32_t nj_lcores_list(struct nj_lcore *lcores, uint32_t n_max);

/*
 * Run a shard on each lcore until NJ_PHASE_STOP, and return when all have begun. The main lcore's
 * thread belongs to the program, so its shard runs on a thread of its own: on the same CPUs, and
 * registered with the EAL, which gives it an id for the caches of mempools. Returns 0; or -1 with
 * the reason in `why`, and then NJ_PHASE_STOP and nj_lcores_wait() are still to come. One thread.
 */
int nj_lcores_start(struct nj_lcore *lcores, uint32_t n, char *why, size_t why_bytes);

/* Wait until all have left, at most `wait_ms`. Returns how many have not: they are in a handler,
 * and use their shard when it returns. The thread that started them, after NJ_PHASE_STOP. */
uint32_t nj_lcores_wait(struct nj_lcore *lcores, uint32_t n, uint32_t wait_ms);

#endif
