/* SPDX-License-Identifier: BSD-3-Clause */
/* What an lcore does while its shard has no work: it spins, pauses, sleeps or waits for an
 * interrupt. */
#ifndef NJ_DPDK_IDLE_LCORE_H
#define NJ_DPDK_IDLE_LCORE_H

#include <nightjar/server.h>

#include "base/types.h"
#include "dpdk/port.h"
#include "dpdk/wakeup.h"

/* The longest sleep. What nobody wakes for waits so long: a gauge that telemetry shows, or what a
 * driver brings without saying so. */
#define NJ_IDLE_LONGEST (50 * NJ_MS)

struct nj_idler {
    enum nj_idle mode;
    struct nj_waker *waker;
    struct nj_rx rx;
    bool armed;         /* `waker`, and the interrupt where there is one */
    uint32_t n_steps;   /* without work */
    uint32_t n_in_vain; /* times that the receive queue woke us, and no packet was there */
    nj_ns since;        /* when it began that there was no work */
};

/* `waker` wakes this lcore, and `rx` is what it polls; the port has been started. On the lcore,
 * once. */
void nj_idle_begin(struct nj_idler *i, enum nj_idle mode, struct nj_waker *waker,
                   const struct nj_rx *rx);
void nj_idle_end(struct nj_idler *i);

/* A step without work ended at `now`; the shard's next timer is at `next`. Returns at the latest
 * when that is due, or after NJ_IDLE_LONGEST; sooner when somebody wakes. Before it sleeps it
 * returns once, for the step that looks at everything after the waker was armed. On the lcore. */
void nj_idle_wait(struct nj_idler *i, nj_ns now, nj_ns next);

void nj__idle_rise(struct nj_idler *i);

/* There was work. */
static inline void nj_idle_over(struct nj_idler *i)
{
    i->n_steps = 0;
    i->n_in_vain = 0;
    if (nj_unlikely(i->armed))
        nj__idle_rise(i);
}

/* Can this CPU wait for a time with less power (WAITPKG, WFET)? Else NJ_IDLE_PAUSE spins. */
bool nj_idle_has_pause(void);

#endif
