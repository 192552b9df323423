/* SPDX-License-Identifier: BSD-3-Clause */
/* How an lcore waits while its shard has no work: it spins, pauses, sleeps or waits for an
 * interrupt. One nj_idle_state belongs to one lcore; only that lcore calls these functions. */
#pragma once

#include <nightjar/server.h>

#include "base/types.h"
#include "dpdk/fd_waits.h"
#include "dpdk/port.h"
#include "dpdk/wakeup.h"

/* The longest sleep. Events without a wake-up wait at most this long: telemetry gauges, and packets
 * of a driver that reports none. */
#define NJ_IDLE_SLEEP_MAX (50 * NJ_MS)

struct nj_idle_state {
    enum nj_idle mode;
    struct nj_wakeup *waker;
    struct nj_rx_source rx;
    const struct nj_fd_waits *fds;
    bool armed;          /* `waker`, and the interrupt where there is one */
    uint32_t n_steps;    /* steps since the last work or event of the receive queue */
    uint32_t n_spurious; /* consecutive wake-ups by the receive queue without a packet */
    nj_ns since;         /* time of the first of these steps */
};

/* `waker` wakes this lcore; `rx` is the queue that it polls; `fds` (NULL: none) are descriptors
 * that end a sleep. Once, on the lcore, after the port has started. */
void nj_idle_init(struct nj_idle_state *i, enum nj_idle mode, struct nj_wakeup *waker,
                  const struct nj_rx_source *rx, const struct nj_fd_waits *fds);
void nj_idle_fini(struct nj_idle_state *i);

/* Called after a step without work at `now`; the shard's next timer is due at `next`. In the first
 * millisecond without work, and the first 16 steps, it returns after at most 5 us. Then it returns
 * when that timer is due, after NJ_IDLE_SLEEP_MAX, or on a wake-up. Before the first sleep it arms
 * the waker and returns once, so that one more step checks all inputs. On the lcore. */
void nj_idle_wait(struct nj_idle_state *i, nj_ns now, nj_ns next);

void nj__idle_disarm_wakeup(struct nj_idle_state *i);

/* Called after a step with work: the next wait begins with spinning. */
static inline void nj_idle_note_work(struct nj_idle_state *i)
{
    i->n_steps = 0;
    i->n_spurious = 0;
    if (nj_unlikely(i->armed))
        nj__idle_disarm_wakeup(i);
}

/* Does the CPU have a low-power timed wait (WAITPKG, WFET)? Without it NJ_IDLE_PAUSE spins. */
bool nj_idle_has_power_pause(void);
