/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue of packets for a simulated machine. */
#pragma once

#include <rte_mbuf.h>

#define SIM_QUEUE_MAX 1024u

struct sim_queue {
    uint32_t head, n, n_max;
    struct rte_mbuf *m[SIM_QUEUE_MAX];
};

static inline bool nj_sim_queue_push(struct sim_queue *q, struct rte_mbuf *m)
{
    if (q->n == q->n_max)
        return false;
    q->m[(q->head + q->n++) % SIM_QUEUE_MAX] = m;
    return true;
}

static inline uint32_t nj_sim_queue_take(struct sim_queue *q, struct rte_mbuf **m, uint32_t n)
{
    uint32_t taken = 0;
    for (; taken < n && q->n > 0; taken++, q->n--) {
        m[taken] = q->m[q->head];
        q->head = (q->head + 1) % SIM_QUEUE_MAX;
    }
    return taken;
}
