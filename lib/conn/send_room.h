/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much may be queued for a peer, and whether its input is read: the mbufs for sending are
 * shared between the connections of a shard. All calls belong to the shard's lcore.
 */
#pragma once

#include "base/limits.h"
#include "conn/conn.h"

/* With fewer mbufs left than this, no session is asked for output, so that segments queued by TCP
 * can still be sent. */
#define NJ_TX_POOL_LOW     256u
/* A connection with queued output leaves this part of the pool to connections without, and to
 * segments. So peers that do not read are stopped before the pool is empty for all. Of this part a
 * client gets a share: see nj__conn_may_send(). */
#define NJ_TX_POOL_RESERVE 8u

/* A session is asked for output while the connection's send queue is below 1/NJ_TX_SHARES of the
 * mbufs left and below NJ_TX_SHARE_MAX. 64 KiB take 10 mbufs in frames of 16 KiB, up to 250 in
 * small frames. Each NJ_TX_SHARE_BYTES of the congestion window add one: a frame of 16 KiB takes
 * two mbufs, and two windows' worth may be queued. */
#define NJ_TX_SHARES      32u
#define NJ_TX_SHARE_MAX   64u
#define NJ_TX_SHARE_BYTES 4096u

/* With less room than this a session is not asked for output, and input is not read. The longest
 * response head fits: a redirect whose location is a path of NJ_PATH_MAX with every byte escaped.
 */
#define NJ_SEND_ROOM_MIN (4 * NJ_PATH_MAX)

/* Mbufs left for sending. While many are left, those in the caches of lcores are not included:
 * reading 128 caches takes as many cache misses. */
uint32_t nj__tx_mbufs_left(const struct nj_conns *cs);
/* As many mbufs of the pool are the reserve (NJ_TX_POOL_RESERVE). */
uint32_t nj__tx_mbufs_reserve(const struct rte_mempool *tx_pool);

/* Mbufs for sending are short (conns->tx_short): does the client hold less than its share of the
 * reserve? */
bool nj__conn_has_send_share(const struct nj_conn *c);

/* Mbufs for sending are short: may the session be asked for output? Its client has a share, and the
 * connection has nothing in its send queue. */
static inline bool nj__conn_may_send(const struct nj_conn *c)
{
    return nj_tcp_send_queue_mbufs(c->tcb) == 0 && nj__conn_has_send_share(c);
}

/* Limits the mbufs queued for one peer; the fewer are left, the lower the limit. Small frames take
 * many mbufs for few bytes, and a few dozen peers that do not read them would take the whole pool.
 * A connection above the limit has bytes in the queue, so an ACK wakes it. */
static inline bool nj__conn_exceeds_mbuf_share(const struct nj_conn *c)
{
    uint32_t n_left = c->conns->n_tx_mbufs_left, n_kept = c->conns->n_tx_reserve;
    uint32_t share = (n_left > n_kept ? n_left - n_kept : 0) / NJ_TX_SHARES;
    uint32_t most = NJ_TX_SHARE_MAX + c->tcb->cwnd / NJ_TX_SHARE_BYTES;
    return nj_tcp_send_queue_mbufs(c->tcb) > (share < most ? share : most);
}

/* Bytes that may be queued; 0 when there is too little room, or the mbuf limit is reached. */
static inline uint32_t nj__conn_send_room(const struct nj_conn *c)
{
    uint32_t room = nj_tcp_send_room(c->tcb);
    return room < NJ_SEND_ROOM_MIN || nj__conn_exceeds_mbuf_share(c) ? 0 : room;
}

/* Must output wait until the peer acknowledges bytes? */
bool nj__conn_is_send_full(const struct nj_conn *c);

/* Returns false while input must wait: the peer does not read our output, so its input is not
 * read either. */
static inline bool nj__conn_may_read(const struct nj_conn *c)
{
    switch ((enum nj_conn_state)c->state) {
    case NJ_CONN_H2: /* without mbufs, too: an upload goes on, and responses wait in HTTP/2 */
        return !c->failed && nj__conn_send_room(c) > 0;
    case NJ_CONN_H1:
        return !c->failed && nj_h1_may_read(c->active->h1) && nj__conn_send_room(c) > 0;
    case NJ_CONN_SNIFF: /* the answer may be a reply of TLS or of HTTP/1.1, which asks for no room
                         */
        return nj_likely(!c->conns->tx_short) || nj__conn_may_send(c);
    case NJ_CONN_LINGER:
        break;
    }
    return true;
}
