/* SPDX-License-Identifier: BSD-3-Clause */
/* Frees mbufs when the pools run low, and memory of sessions. Resets peers that do not acknowledge
 * output, and connections that hold received mbufs or memory; the shard keeps them on lists, so
 * they are found at once. */
#include "conn/abuse_reason_counts.h"
#include "conn/conn_held.h"
#include "conn/conn_life.h"
#include "conn/send_room.h"
#include "conn/session.h"
#include "telem/counters_conn.h"

/* Time without an ACK until a peer is reset: while only the reserve of mbufs for sending is left,
 * and while fewer than NJ_TX_POOL_LOW are. */
#define SHED_TIMEOUT_SHORT (15 * NJ_SEC)
#define SHED_TIMEOUT_LOW   (5 * NJ_SEC)
#define WAKE_MAX           32u          /* connections that wait for mbufs, per step */
#define UNACKED_GRAIN      (1 * NJ_SEC) /* resolution of the time of the last ACK */
#define SHED_MAX           32u          /* resets per step */
#define SHED_SCAN          256u         /* connections visited per step */
#define HOLDERS_SCAN       64u          /* connections compared for each reset */
/* A peer that completes its records may hold mbufs for so long, while fewer than 7/8 are held. */
#define HELD_GRACE         (50 * NJ_MS)
#define HOLDERS_RESET_MAX  64u /* resets per step: each may free one mbuf only */
#define MEMORY_RESET_MAX   8u  /* resets per step: each frees a session at least */
/* Part of the memory of sessions that clients share for buffers: as many sessions as there are
 * connections by default (65,536 of 28 KiB) take the rest. */
#define MEMORY_SHARED      8u

/* ---- mbufs for sending ---- */

/* While the send queue has bytes, an ACK wakes the connection. */
void nj__pressure_wait(struct nj_conn *c)
{
    bool has_input = nj__conn_has_input(c) && !nj__conn_may_read(c);
    bool has_output = nj__conn_has_session(c) && !nj__session_is_idle(c);

    if (c->state == NJ_CONN_LINGER || !(has_input || has_output) ||
        nj_tcp_send_queue_mbufs(c->tcb) > 0 || nj__conn_has_send_share(c))
        return;
    struct nj_conn_active *active = nj__conn_active(c);
    if (!nj_list_linked(&active->tx_wait))
        nj_list_push_back(&c->conns->tx_waiting, &active->tx_wait);
}

void nj__pressure_wake_waiting(struct nj_conns *cs)
{
    for (uint32_t i = 0; i < WAKE_MAX && nj_unlikely(!nj_list_empty(&cs->tx_waiting)); i++) {
        struct nj_conn_active *active =
            nj_container_of(cs->tx_waiting.next, struct nj_conn_active, tx_wait);
        nj_list_del(&active->tx_wait);
        nj_tcp_note_ready(cs->tcp, active->conn->tcb, 0);
    }
}

static void list_unacked(struct nj_conn_active *active, nj_ns now)
{
    nj_list_del(&active->unacked);
    active->unacked_ms = nj__ms_of(now);
    nj_list_push_back(&active->conn->conns->unacked, &active->unacked);
}

/* Since the previous check. */
static bool has_acked(struct nj_conn_active *active)
{
    uint32_t una = active->conn->tcb->snd_una, was = active->unacked_una;

    active->unacked_una = una;
    return una != was;
}

/* Keeps conns->unacked in the order of the last ACK. A connection that was moved within
 * UNACKED_GRAIN stays: its neighbours on the list are not in the cache. A connection whose ACK was
 * not reported stays too; nj__pressure_reset_unacking() notices the ACK. */
static void track_unacked(struct nj_conn *c, nj_ns now)
{
    struct nj_conn_active *active = c->active;

    if (!active) /* no input yet, so no output either */
        return;
    bool owes = nj_tcp_send_queue_mbufs(c->tcb) > 0, listed = nj_list_linked(&active->unacked);
    bool late = nj__ms_of(now) - active->unacked_ms >= UNACKED_GRAIN / NJ_MS;
    if (!owes)
        nj_list_del(&active->unacked);
    else if ((has_acked(active) && late) || !listed)
        list_unacked(active, now);
}

/* Held: bytes to send that are not acknowledged | connection, in mbufs; of the last 1/8, client |
 * 1/32 of the free send mbufs beyond the last 1/8; 1/4 of the free ones of the last 1/8, for
 * connections that hold none | `--send-timeout`; 15 s while less than 1/8 is free, 5 s while fewer
 * than 256 are | conn_timeout, conn_shed */
void nj__pressure_reset_unacking(struct nj_conns *cs, nj_ns now)
{
    uint32_t n_shed = 0;
    nj_ns timeout = cs->n_tx_mbufs_left < NJ_TX_POOL_LOW ? SHED_TIMEOUT_LOW : SHED_TIMEOUT_SHORT;

    for (uint32_t i = 0; i < SHED_SCAN && n_shed < SHED_MAX && !nj_list_empty(&cs->unacked); i++) {
        struct nj_conn_active *active =
            nj_container_of(cs->unacked.next, struct nj_conn_active, unacked);
        if (nj_tcp_send_queue_mbufs(active->conn->tcb) == 0) {
            nj_list_del(&active->unacked);
        } else if (has_acked(active)) {
            list_unacked(active, now);
        } else if (nj__ms_of(now) - active->unacked_ms < timeout / NJ_MS) {
            return;
        } else {
            nj__abuse_record(cs, NJ_C_conn_shed, nj__conn_remote(active->conn));
            nj__conn_reset(active->conn, now);
            n_shed++;
        }
    }
}

/* ---- received mbufs ---- */

static struct nj_conn *conn_of(const struct nj_xfer *x)
{
    return nj_container_of(x->tcb->user, struct nj_conn, user);
}

static void reset_for(struct nj_conn *c, nj_counter why, nj_ns now)
{
    nj__abuse_record(c->conns, why, nj__conn_remote(c));
    nj__conn_reset(c, now);
}

static bool is_held(const struct nj_conns *cs, uint32_t n_eighths)
{
    uint32_t eighth = cs->tcp->cfg.held_max / 8;
    return eighth > 0 && cs->held_mbufs.n_held > eighth * n_eighths;
}

/* One client alone may hold more: it takes nothing from others. */
static bool too_many_are_held(const struct nj_conns *cs)
{
    return is_held(cs, cs->held_mbufs.n_clients > 1 ? 6 : 7);
}

/* Held: received segments that wait: incomplete TLS records, segments received out of order, input
 * of peers that do not read, input of HTTP/1 that waits for us | client, in mbufs | equal shares of
 * half of the receive mbufs of the lcore, once 3/4 are held for 50 ms, or 7/8; 256 mbufs for a
 * connection | `--header-timeout` for a record, `--body-timeout` beside an open request;
 * `--preface-timeout` before the preface | conn_rx_limit, h1_slow, h2_abuse_slow,
 * conn_timeout */
static uint32_t reset_holders_of_mbufs(struct nj_conns *cs, nj_ns now)
{
    uint32_t n = 0;

    for (; n < HOLDERS_RESET_MAX && too_many_are_held(cs); n++) {
        nj_ns grace = is_held(cs, 7) ? 0 : HELD_GRACE;
        nj_ns until = now > grace ? now - grace : 0;
        struct nj_holder *h = nj_held_worst(&cs->held_mbufs, cs->tcp->cfg.held_max / 2,
                                            HOLDERS_SCAN, nj__ms_of(until));
        if (!h)
            break;
        reset_for(conn_of(nj_container_of(h, struct nj_xfer, held_mbufs)), NJ_C_conn_rx_limit, now);
    }
    return n;
}

/* Their memory is free in the next step. Sessions count for no client. */
/* Held: incomplete frames, header blocks, heads and trailers, and response heads that the peer does
 * not read | client, in KiB | equal shares of 256 MiB, once 3/4 of 2 GiB for each lcore are used;
 * 128 KiB and 1,280 KiB for a connection | `--header-timeout`; `--send-timeout` |
 * conn_memory_limit, h1_head_timeout, h2_abuse_slow, h2_abuse_continuations, h2_abuse_unread */
static uint32_t reset_holders_of_memory(struct nj_conns *cs, nj_ns now)
{
    uint32_t n = 0, n_shared = (uint32_t)(cs->session_memory.bytes_max / 1024 / MEMORY_SHARED);

    for (; n < MEMORY_RESET_MAX && nj_alloc_is_short(&cs->session_memory); n++) {
        struct nj_holder *h = nj_held_worst(&cs->held_memory, n_shared, HOLDERS_SCAN, 0);
        if (!h)
            break;
        reset_for(conn_of(nj_container_of(h, struct nj_xfer, held_memory)), NJ_C_conn_memory_limit,
                  now);
    }
    return n;
}

static bool nothing_is_held(const struct nj_conns *cs)
{
    return nj_list_empty(&cs->held_mbufs.holders) && nj_list_empty(&cs->held_memory.holders);
}

uint32_t nj__pressure_reset_holders(struct nj_conns *cs, nj_ns now)
{
    if (nj_likely(nothing_is_held(cs)))
        return 0;
    return reset_holders_of_mbufs(cs, now) + reset_holders_of_memory(cs, now);
}

nj_ns nj__pressure_next_at(const struct nj_conns *cs)
{
    bool short_of_mbufs = !nj_list_empty(&cs->held_mbufs.holders) && too_many_are_held(cs);
    bool short_of_memory =
        !nj_list_empty(&cs->held_memory.holders) && nj_alloc_is_short(&cs->session_memory);
    bool waits = !nj_list_empty(&cs->tx_waiting);
    return short_of_mbufs || short_of_memory || waits ? 0 : NJ_NEVER;
}

void nj__pressure_track(struct nj_conn *c, nj_ns now)
{
    track_unacked(c, now);
    nj__conn_track_held(c, now);
}
