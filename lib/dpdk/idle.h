/* SPDX-License-Identifier: BSD-3-Clause */
/* What an lcore does while its shard has no work: it spins, pauses, sleeps or waits for an
 * interrupt. */
#ifndef NJ_DPDK_IDLE_H
#define NJ_DPDK_IDLE_H

#include <nightjar/server.h>

#include "base/types.h"

struct nj_idler {
    enum nj_idle mode;
    bool interrupts;      /* of the receive queue below; else NJ_IDLE_INTERRUPT sleeps */
    uint16_t port, queue; /* with interrupts */
    uint32_t n_steps;     /* without work */
    nj_ns since;          /* when that began */
};

/* `interrupts`: the lcore polls receive queue `queue` of a started port, and the queue has
 * interrupts. On the lcore, once. */
void nj_idle_begin(struct nj_idler *i, enum nj_idle mode, bool interrupts, uint16_t port,
                   uint16_t queue);

/* A step without work ended at `now`; the shard's next timer is at `next`. Returns at the latest
 * when that is due, or 1 ms later: packets of other lcores and answers of threads do not wake the
 * lcore. On the lcore. */
void nj_idle_wait(struct nj_idler *i, nj_ns now, nj_ns next);

/* There was work. */
static inline void nj_idle_over(struct nj_idler *i)
{
    i->n_steps = 0;
}

/* Can this CPU wait for a time with less power (WAITPKG, WFET)? Else NJ_IDLE_PAUSE spins. */
bool nj_idle_has_pause(void);

#endif
