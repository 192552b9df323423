/* SPDX-License-Identifier: BSD-3-Clause */
/* The quantum: how many bytes a response is granted at once. */
#include "shape/shaper_internal.h"

uint32_t nj__paced_min_grant(const struct nj_paced *f)
{
    return (uint32_t)nj_min_u64(NJ_QUANTUM_MIN_BYTES, nj__paced_remaining(f));
}

uint32_t nj__paced_next_grant_bytes(const struct nj_shape *s, const struct nj_paced *f)
{
    uint64_t q = nj__paced_own_limit(f)->quantum, most;
    uint64_t free = nj__paced_unlimited_bytes(f);
    if (free > q)
        q = nj_min_u64(free, NJ_QUANTUM_MAX_BYTES);
    most = q;
    for (const struct nj__node *n = &f->group->node; n; n = n->parent) {
        uint64_t n_share = n->backlog_run == s->run ? n->n_backlog : n->n_waiting;
        n_share = n_share ? n_share : 1;
        if (n->rate && q * n_share > n->share_bytes)
            q = n->share_bytes / n_share;
    }
    if (q < NJ_QUANTUM_MIN_BYTES)
        q = NJ_QUANTUM_MIN_BYTES;
    q = nj_min_u64(q + f->carried_bytes, most);
    return (uint32_t)nj_min_u64(q, nj__paced_remaining(f));
}
