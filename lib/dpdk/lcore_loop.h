/* SPDX-License-Identifier: BSD-3-Clause */
/* What an lcore does all day: step its shard. */
#ifndef NJ_DPDK_LCORE_LOOP_H
#define NJ_DPDK_LCORE_LOOP_H

#include <stdatomic.h>

#include "dpdk/clock.h"
#include "dpdk/fabric.h"
#include "dpdk/idle.h"
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
    _Atomic bool left;    /* written by the lcore: it has let go of its shard */
};

/* The lcores that the EAL was given, the main one among them. Fills in `id`, `cpu`, `node` of up to
 * `n_max` and returns how many there are. Main thread. */
uint32_t nj_lcores_list(struct nj_lcore *lcores, uint32_t n_max);

/* Run a shard on each lcore, the caller's included, until NJ_PHASE_STOP. Main thread. */
void nj_lcores_run(struct nj_lcore *lcores, uint32_t n);

#endif
