/* SPDX-License-Identifier: BSD-3-Clause */
/* Frees mbufs when the pools run low. Resets peers that do not acknowledge output, and peers that
 * send but do not read; the shard keeps both on lists, so they are found at once. */
#include <rte_mempool.h>

#include "conn/abuse_reason_counts.h"
#include "conn/conn.h"
#include "shard/shard_conn_internal.h"

#define SHED_TIMEOUT   (5 * NJ_SEC) /* without an ACK */
#define UNACKED_GRAIN  (1 * NJ_SEC) /* resolution of the time of the last ACK */
#define SHED_MAX       32u          /* resets per step */
#define SHED_SCAN      256u         /* connections visited per step */
#define UNREAD_TIMEOUT (1 * NJ_SEC) /* of waiting input */
#define UNREAD_SCAN    32u          /* connections visited per step, the longest waiting first */

/* ---- mbufs for sending ---- */

uint32_t nj__pressure_tx_left(const struct nj_shard *s)
{
    const struct rte_mempool *mp = s->cfg.tx_pool;
    uint32_t n = rte_mempool_get_ops(mp->ops_index)->get_count(mp);
    return n > mp->size / 4 ? n : rte_mempool_avail_count(mp);
}

static uint32_t ms_of(nj_ns now)
{
    return (uint32_t)(now / NJ_MS);
}

static void list_unacked(struct nj_conn_active *active, nj_ns now)
{
    nj_list_del(&active->unacked);
    active->unacked_ms = ms_of(now);
    nj_list_push_back(&active->conn->shard->unacked, &active->unacked);
}

/* Since the previous check. */
static bool has_acked(struct nj_conn_active *active)
{
    uint32_t una = active->conn->tcb->snd_una, was = active->unacked_una;

    active->unacked_una = una;
    return una != was;
}

/* Keeps shard->unacked in the order of the last ACK. A connection that was moved within
 * UNACKED_GRAIN stays: its neighbours on the list are not in the cache. A connection whose ACK was
 * not reported stays too; nj__pressure_reset_unacking() notices the ACK. */
static void track_unacked(struct nj_conn *c, nj_ns now)
{
    struct nj_conn_active *active = c->active;

    if (!active) /* no input yet, so no output either */
        return;
    bool owes = nj_tcp_send_queue_mbufs(c->tcb) > 0, listed = nj_list_linked(&active->unacked);
    bool late = ms_of(now) - active->unacked_ms >= UNACKED_GRAIN / NJ_MS;
    if (!owes)
        nj_list_del(&active->unacked);
    else if ((has_acked(active) && late) || !listed)
        list_unacked(active, now);
}

void nj__pressure_reset_unacking(struct nj_shard *s, nj_ns now)
{
    uint32_t n_shed = 0;

    for (uint32_t i = 0; i < SHED_SCAN && n_shed < SHED_MAX && !nj_list_empty(&s->unacked); i++) {
        struct nj_conn_active *active =
            nj_container_of(s->unacked.next, struct nj_conn_active, unacked);
        if (nj_tcp_send_queue_mbufs(active->conn->tcb) == 0) {
            nj_list_del(&active->unacked);
        } else if (has_acked(active)) {
            list_unacked(active, now);
        } else if (ms_of(now) - active->unacked_ms < SHED_TIMEOUT / NJ_MS) {
            return;
        } else {
            nj__abuse_record(s, NJ_C_conn_shed, &active->conn->tcb->flow.tuple.remote);
            nj__conn_reset(active->conn, now);
            n_shed++;
        }
    }
}

/* ---- received mbufs ---- */

/* Keeps shard->unread in the order in which input began to wait. A peer that reads slowly has some
 * of its input processed, but holds as many mbufs as before. */
static void track_unread(struct nj_conn *c, nj_ns now)
{
    struct nj_conn_active *active = c->active;

    if (c->state != H2)
        return;
    if (!nj__conn_has_input(c)) {
        nj_list_del(&active->unread);
    } else if (!nj_list_linked(&active->unread) && !nj__conn_may_read(c)) {
        active->unread_at = now;
        nj_list_push_back(&c->shard->unread, &active->unread);
    }
}

/* TCP is about to refuse new connections (NJ_RCV_PRESSURE_HIGH). */
static bool rx_mbufs_are_low(const struct nj_shard *s)
{
    return s->tcp.cfg.held_max && s->tcp.n_held > s->tcp.cfg.held_max / 4 * 3;
}

/* Of the connections whose input has waited for UNREAD_TIMEOUT, the one that holds most mbufs; or
 * NULL. A connection with an empty send queue is not at fault: it waits because mbufs are short
 * (pool_low). */
static struct nj_conn *largest_unread(struct nj_shard *s, nj_ns now)
{
    struct nj_conn *worst = NULL;
    struct nj_list *n = s->unread.next;
    uint32_t most = 0;

    for (uint32_t i = 0; i < UNREAD_SCAN && n != &s->unread; i++, n = n->next) {
        struct nj_conn_active *active = nj_container_of(n, struct nj_conn_active, unread);
        if (now - active->unread_at < UNREAD_TIMEOUT)
            break;
        uint32_t n_mbufs = active->conn->tcb->x->rcvq.n_mbufs;
        if (nj_tcp_send_queue_mbufs(active->conn->tcb) == 0 || n_mbufs <= most)
            continue;
        worst = active->conn;
        most = n_mbufs;
    }
    return worst;
}

uint32_t nj__pressure_reset_unreading_peer(struct nj_shard *s, nj_ns now)
{
    struct nj_conn *c = rx_mbufs_are_low(s) ? largest_unread(s, now) : NULL;

    if (!c)
        return 0;
    nj__abuse_record(s, NJ_C_conn_rx_limit, &c->tcb->flow.tuple.remote);
    nj__conn_reset(c, now);
    return 1;
}

nj_ns nj__pressure_next_at(const struct nj_shard *s)
{
    if (!rx_mbufs_are_low(s) || nj_list_empty(&s->unread))
        return NJ_NEVER;
    return nj_container_of(s->unread.next, struct nj_conn_active, unread)->unread_at +
           UNREAD_TIMEOUT;
}

void nj__pressure_track(struct nj_conn *c, nj_ns now)
{
    track_unacked(c, now);
    track_unread(c, now);
}
