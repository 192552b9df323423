/* SPDX-License-Identifier: BSD-3-Clause */
/* Frees mbufs when the pools run low. Resets peers that do not acknowledge output, and peers that
 * send but do not read; the shard keeps both on lists, so they are found at once. */
#include <rte_mempool.h>

#include "conn/abuse_counts.h"
#include "conn/conn.h"
#include "shard/shard_internal.h"

#define SHED_AFTER  (5 * NJ_SEC) /* without an ACK */
#define OWING_GRAIN (1 * NJ_SEC) /* resolution of the time of the last ACK */
#define SHED_MAX    32u          /* resets per step */
#define SHED_LOOK   256u         /* connections visited per step */
#define HOARD_AFTER (1 * NJ_SEC) /* of waiting input */
#define HOARD_LOOK  32u          /* connections visited per step, the longest waiting first */

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

static void list_owing(struct nj_talk *talk, nj_ns now)
{
    nj_list_del(&talk->owing);
    talk->owing_ms = ms_of(now);
    nj_list_push_back(&talk->conn->shard->owing, &talk->owing);
}

/* Since the previous check. */
static bool has_acked(struct nj_talk *talk)
{
    uint32_t una = talk->conn->tcb->snd_una, was = talk->owing_una;

    talk->owing_una = una;
    return una != was;
}

/* Keeps shard->owing in the order of the last ACK. A connection that was moved within OWING_GRAIN
 * stays: its neighbours on the list are not in the cache. A connection whose ACK was not reported
 * stays too; nj__pressure_shed() notices the ACK. */
static void note_owing(struct nj_conn *c, nj_ns now)
{
    struct nj_talk *talk = c->talk;

    if (!talk) /* no input yet, so no output either */
        return;
    bool owes = nj_tcp_queued_mbufs(c->tcb) > 0, listed = nj_list_linked(&talk->owing);
    bool late = ms_of(now) - talk->owing_ms >= OWING_GRAIN / NJ_MS;
    if (!owes)
        nj_list_del(&talk->owing);
    else if ((has_acked(talk) && late) || !listed)
        list_owing(talk, now);
}

void nj__pressure_shed(struct nj_shard *s, nj_ns now)
{
    uint32_t n_shed = 0;

    for (uint32_t i = 0; i < SHED_LOOK && n_shed < SHED_MAX && !nj_list_empty(&s->owing); i++) {
        struct nj_talk *talk = nj_container_of(s->owing.next, struct nj_talk, owing);
        if (nj_tcp_queued_mbufs(talk->conn->tcb) == 0) {
            nj_list_del(&talk->owing);
        } else if (has_acked(talk)) {
            list_owing(talk, now);
        } else if (ms_of(now) - talk->owing_ms < SHED_AFTER / NJ_MS) {
            return;
        } else {
            nj__abuse(s, NJ_C_conn_shed, &talk->conn->tcb->flow.tuple.remote);
            nj__conn_reset(talk->conn, now);
            n_shed++;
        }
    }
}

/* ---- received mbufs ---- */

/* Keeps shard->unread in the order in which input began to wait. A peer that reads slowly has some
 * of its input processed, but holds as many mbufs as before. */
static void note_unread(struct nj_conn *c, nj_ns now)
{
    struct nj_talk *talk = c->talk;

    if (c->state != H2)
        return;
    if (!nj__conn_has_input(c)) {
        nj_list_del(&talk->unread);
    } else if (!nj_list_linked(&talk->unread) && !nj__conn_may_read(c)) {
        talk->unread_at = now;
        nj_list_push_back(&c->shard->unread, &talk->unread);
    }
}

/* TCP is about to refuse new connections (NJ_PRESSURE_HIGH). */
static bool held_much(const struct nj_shard *s)
{
    return s->tcp.cfg.held_max && s->tcp.n_held > s->tcp.cfg.held_max / 4 * 3;
}

/* Of the connections whose input has waited for HOARD_AFTER, the one that holds most mbufs; or
 * NULL. A connection with an empty send queue is not at fault: it waits because mbufs are short
 * (pool_low). */
static struct nj_conn *worst_hoarder(struct nj_shard *s, nj_ns now)
{
    struct nj_conn *worst = NULL;
    struct nj_list *n = s->unread.next;
    uint32_t most = 0;

    for (uint32_t i = 0; i < HOARD_LOOK && n != &s->unread; i++, n = n->next) {
        struct nj_talk *talk = nj_container_of(n, struct nj_talk, unread);
        if (now - talk->unread_at < HOARD_AFTER)
            break;
        uint32_t n_mbufs = talk->conn->tcb->x->rcvq.n_mbufs;
        if (nj_tcp_queued_mbufs(talk->conn->tcb) == 0 || n_mbufs <= most)
            continue;
        worst = talk->conn;
        most = n_mbufs;
    }
    return worst;
}

uint32_t nj__pressure_tick(struct nj_shard *s, nj_ns now)
{
    struct nj_conn *c = held_much(s) ? worst_hoarder(s, now) : NULL;

    if (!c)
        return 0;
    nj__abuse(s, NJ_C_conn_hoard, &c->tcb->flow.tuple.remote);
    nj__conn_reset(c, now);
    return 1;
}

nj_ns nj__pressure_next(const struct nj_shard *s)
{
    if (!held_much(s) || nj_list_empty(&s->unread))
        return NJ_NEVER;
    return nj_container_of(s->unread.next, struct nj_talk, unread)->unread_at + HOARD_AFTER;
}

void nj__pressure_note(struct nj_conn *c, nj_ns now)
{
    note_owing(c, now);
    note_unread(c, now);
}
