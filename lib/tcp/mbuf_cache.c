/* SPDX-License-Identifier: BSD-3-Clause */
/* A cache of empty mbufs for outgoing data. A bulk allocation costs about as much as a single one
 * (rte_pktmbuf_alloc_bulk), and cached mbufs can be prefetched. */
#include <rte_mbuf.h>

#include "tcp/tcp_internal.h"
#include "telem/counters_packet.h"

uint32_t nj__mbuf_cache_fill(struct nj_tcp *tcp)
{
    struct rte_mempool *mp = tcp->cfg.mp;
    struct rte_mbuf **end = &tcp->fresh[tcp->n_mbuf_cache];
    uint32_t n = NJ_TCP_MBUF_CACHE_MAX - tcp->n_mbuf_cache;

    if (rte_pktmbuf_alloc_bulk(mp, end, n) == 0)
        tcp->n_mbuf_cache += n;
    else if (tcp->n_mbuf_cache == 0 &&
             (*end = rte_pktmbuf_alloc(mp))) /* the last ones of the pool */
        tcp->n_mbuf_cache = 1;
    return tcp->n_mbuf_cache;
}

struct rte_mbuf *nj__mbuf_cache_refill_get(struct nj_tcp *tcp)
{
    if (nj__mbuf_cache_fill(tcp) > 0)
        return tcp->fresh[--tcp->n_mbuf_cache];
    nj_count(tcp->cfg.counters, NJ_C_mbuf_none);
    return NULL;
}

void nj__mbuf_cache_drain(struct nj_tcp *tcp)
{
    rte_pktmbuf_free_bulk(tcp->fresh, tcp->n_mbuf_cache);
    tcp->n_mbuf_cache = 0;
}
