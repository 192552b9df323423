/* SPDX-License-Identifier: BSD-3-Clause */
/* Lcores that each run the poll loop of one shard: launch, phases, and end. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "dpdk/idle_lcore.h"
#include "dpdk/run_phase.h"
#include "dpdk/shard_rings.h"
#include "dpdk/tsc_clock.h"
#include "shard/shard.h"

/* Written by the main thread, then by the supervisor; read by every lcore. */
struct nj_lcore_control {
    _Atomic enum nj_run_phase phase;
};

struct nj_lcore {
    unsigned id;  /* the EAL's lcore id */
    unsigned cpu; /* the CPU of the lcore; the first of several */
    int node;     /* NUMA node of that CPU */
    struct nj_shard *shard;
    const struct nj_tsc_clock *clock;
    const struct nj_lcore_control *control;
    struct nj_shard_endpoint *end;
    struct nj_wakeup *waker;
    struct nj_fd_waits *fds; /* descriptors that its handlers await */
    struct nj_rx_source rx;  /* the receive queue that it polls */
    enum nj_idle idle;       /* how it waits without work */
    _Atomic bool drained;    /* written by the lcore: no connection is busy; cleared by
                              the thread that sets NJ_PHASE_YIELD or NJ_PHASE_DRAIN */
    enum nj_lcore_state {
        NJ_LCORE_IDLE,
        NJ_LCORE_FAILED, /* rte_thread_register() failed; the loop does not run */
        NJ_LCORE_LEFT,   /* the loop has ended and no longer uses the shard */
        NJ_LCORE_LAUNCHED,
        NJ_LCORE_RUNS,
    } _Atomic state;  /* written by the lcore from NJ_LCORE_RUNS on */
    pthread_t thread; /* of the main lcore */
    /* Hooks of the program, see nightjar/server.h; NULL: none. */
    void (*init)(unsigned lcore_id, void *ctx), (*fini)(unsigned lcore_id, void *ctx);
    void *hook_ctx;
    void (*confine)(void); /* restricts the thread, before its first step; NULL: none */
};

/* Lists the lcores of the EAL, including the main lcore. Fills in `id`, `cpu` and `node` of up to
 * `n_max` and returns the number of lcores. Any thread. */
uint32_t nj_lcores_list(struct nj_lcore *lcores, uint32_t n_max);

/*
 * Runs a shard on each lcore until NJ_PHASE_STOP. Returns when all loops have begun. The main
 * lcore's thread belongs to the program, so its shard runs on a new thread on the same CPUs. That
 * thread is registered with the EAL, so that it has an lcore id for mempool caches. Returns 0, or
 * -1 with the reason in `why`; the caller then sets NJ_PHASE_STOP and calls nj_lcores_wait(). One
 * thread.
 */
int nj_lcores_start_loops(struct nj_lcore *lcores, uint32_t n, char *why, size_t why_bytes);

/* Waits at most `wait_ms` until all loops have ended. Returns the number of lcores that still run:
 * these are in a handler, and use their shard when it returns. To be called by the thread that
 * started them, after NJ_PHASE_STOP. */
uint32_t nj_lcores_wait(struct nj_lcore *lcores, uint32_t n, uint32_t wait_ms);

/* From now on nj_lcore_id() returns `id` on the calling thread, which runs a shard without the
 * functions above. Returns what it returned before. */
unsigned nj_lcore_set_id(unsigned id);
