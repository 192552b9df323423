/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Graceful end of all connections. HTTP/2 (RFC 9113 6.8): a GOAWAY with the highest stream id, then
 * one with the last stream that was seen. Requests in flight when the peer reads the first one are
 * served. HTTP/1 (RFC 9112 9.6): the open request is the last one, see write_output() in
 * conn_turn.c.
 */
#include "conn/conn.h"
#include "conn/conn_life.h"

#define GOAWAY_DELAY (500 * NJ_MS) /* between the two GOAWAYs: some round trips */
#define GOAWAY_WAIT  (10 * NJ_SEC) /* the same in an upgrade, while a PING is unanswered */

/* The first GOAWAY, unless an upgrade that was not completed has sent it. If another process
 * accepts connections meanwhile, requests that the peer sent before it read this are answered here:
 * all have come when it acknowledges the PING. */
static void announce_goaway(const struct nj_conns *cs, struct nj_h2 *h2)
{
    if (nj_h2_has_sent_goaway(h2))
        return;
    nj_h2_goaway(h2);
    if (cs->yields)
        nj_h2_ping(h2);
}

static void expect_goaways(struct nj_conns *cs, nj_ns now)
{
    cs->goaway_at = now + GOAWAY_DELAY;
    cs->goaway_wait_ends_at = now + GOAWAY_WAIT;
}

void nj__drain_new(struct nj_conns *cs, struct nj_h2 *h2)
{
    nj_ns last_at = cs->goaway_at;

    announce_goaway(cs, h2);
    if (!cs->yields) {
        nj_h2_goaway(h2);
        return;
    }
    expect_goaways(cs, cs->now);
    if (last_at < cs->goaway_at)
        cs->goaway_at = last_at; /* other connections do not wait for this one */
}

/* Connections on no list are about to be freed. */
static void announce_goaways(struct nj_conns *cs, nj_ns now)
{
    for (enum nj_conn_wait i = 0; i < NJ_N_CONN_WAITS; i++)
        for (struct nj_list *n = cs->waits_for[i].next, *next; n != &cs->waits_for[i]; n = next) {
            struct nj_conn *c = nj_container_of(n, struct nj_conn, node);
            next = n->next; /* a broken TLS connection leaves the list */
            if (c->state == NJ_CONN_SNIFF && !cs->yields && !nj__conn_has_news(c))
                nj__conn_begin_linger(c, now);
            else if (c->state == NJ_CONN_H2)
                announce_goaway(cs, c->active->h2);
            nj_tcp_note_ready(cs->tcp, c->tcb, 0);
        }
}

/* Returns the number of connections that must still acknowledge a PING. */
static uint32_t send_last_goaways(struct nj_conns *cs, nj_ns now)
{
    bool may_wait = cs->yields && now < cs->goaway_wait_ends_at;
    uint32_t n_waiting = 0;

    for (enum nj_conn_wait i = 0; i < NJ_N_CONN_WAITS; i++)
        for (struct nj_list *n = cs->waits_for[i].next; n != &cs->waits_for[i]; n = n->next) {
            struct nj_conn *c = nj_container_of(n, struct nj_conn, node);
            if (c->state != NJ_CONN_H2)
                continue;
            if (may_wait && nj_h2_is_ping_unanswered(c->active->h2)) {
                n_waiting++;
            } else {
                nj_h2_goaway(c->active->h2);
                nj_tcp_note_ready(cs->tcp, c->tcb, 0);
            }
        }
    return n_waiting;
}

uint32_t nj__drain_tick(struct nj_conns *cs, nj_ns now)
{
    if (!cs->draining || now < cs->goaway_at)
        return 0;
    cs->goaway_at = send_last_goaways(cs, now) > 0 ? now + GOAWAY_DELAY : NJ_NEVER;
    return 1;
}

static void begin_drain(struct nj_conns *cs, nj_ns now)
{
    cs->draining = true;
    expect_goaways(cs, now);
    announce_goaways(cs, now);
}

void nj_conns_drain(struct nj_conns *cs, nj_ns now)
{
    if (cs->tcp->draining || cs->yields)
        return;
    cs->tcp->draining = true;
    begin_drain(cs, now);
}

void nj_conns_yield(struct nj_conns *cs, bool yields, nj_ns now)
{
    cs->yields = yields;
    if (yields)
        begin_drain(cs, now);
    else
        cs->draining = cs->tcp->draining;
}
