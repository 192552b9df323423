/* SPDX-License-Identifier: BSD-3-Clause */
#include "conn/send_room.h"

#include <rte_mempool.h>

/* A client gets mbufs of the reserve while more than so many times as many as it holds are free. 64
 * clients that acknowledge nothing leave 4/68 of it. */
#define LEFT_TO_OTHERS 4u

uint32_t nj__tx_mbufs_left(const struct nj_conns *cs)
{
    const struct rte_mempool *mp = cs->tcp->cfg.mp;
    uint32_t n = rte_mempool_get_ops(mp->ops_index)->get_count(mp);
    return n > mp->size / 4 ? n : rte_mempool_avail_count(mp);
}

uint32_t nj__tx_mbufs_reserve(const struct rte_mempool *tx_pool)
{
    uint32_t n = tx_pool->size / NJ_TX_POOL_RESERVE;
    return n > NJ_TX_POOL_LOW ? n : NJ_TX_POOL_LOW;
}

bool nj__conn_has_send_share(const struct nj_conn *c)
{
    const struct nj_conns *cs = c->conns;
    const struct nj_addr *remote = nj__conn_remote(c);

    if (cs->n_tx_mbufs_left < NJ_TX_POOL_LOW)
        return false;
    uint32_t n_left = cs->n_tx_mbufs_left - NJ_TX_POOL_LOW;
    return nj__is_trusted_proxy(cs, remote) ||
           nj_held_of(&cs->held_output, nj__client_key(cs, remote)) < n_left / LEFT_TO_OTHERS;
}

bool nj__conn_is_send_full(const struct nj_conn *c)
{
    /* Records are sealed when TCP can send them: a queue that waits for the peer is shorter. */
    if (nj_unlikely(c->is_tls) && nj_tcp_send_wanted(c->tcb) == 0)
        return true;
    return nj__conn_send_room(c) == 0;
}
