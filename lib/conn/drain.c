/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Graceful end of all connections (RFC 9113 6.8): a GOAWAY with the highest stream id, then one
 * with the last stream that was seen. Requests in flight when the peer reads the first one are
 * served.
 */
#include "conn/conn.h"
#include "shard/shard_conn_internal.h"

#define GOAWAY_DELAY (500 * NJ_MS) /* between the two GOAWAYs: some round trips */
#define GOAWAY_WAIT  (10 * NJ_SEC) /* the same in an upgrade, while a PING is unanswered */

/* The first GOAWAY, unless an upgrade that was not completed has sent it. If another process
 * accepts connections meanwhile, requests that the peer sent before it read this are answered here:
 * all have come when it acknowledges the PING. */
static void announce_goaway(const struct nj_shard *s, struct nj_h2 *h2)
{
    if (nj_h2_has_sent_goaway(h2))
        return;
    nj_h2_goaway(h2);
    if (s->role == NJ_PORT_YIELDS)
        nj_h2_ping(h2);
}

static void expect_goaways(struct nj_shard *s, nj_ns now)
{
    s->goaway_at = now + GOAWAY_DELAY;
    s->goaway_wait_ends_at = now + GOAWAY_WAIT;
}

void nj__drain_new(struct nj_shard *s, struct nj_h2 *h2)
{
    nj_ns last_at = s->goaway_at;

    announce_goaway(s, h2);
    if (s->role != NJ_PORT_YIELDS) {
        nj_h2_goaway(h2);
        return;
    }
    expect_goaways(s, s->now);
    if (last_at < s->goaway_at)
        s->goaway_at = last_at; /* other connections do not wait for this one */
}

/* Connections on no list are about to be freed. */
static void announce_goaways(struct nj_shard *s, nj_ns now)
{
    for (enum nj_conn_wait i = 0; i < NJ_N_CONN_WAITS; i++)
        for (struct nj_list *n = s->waits_for[i].next, *next; n != &s->waits_for[i]; n = next) {
            struct nj_conn *c = nj_container_of(n, struct nj_conn, node);
            next = n->next; /* a broken TLS connection leaves the list */
            if (c->state == SNIFF && s->role != NJ_PORT_YIELDS)
                nj__conn_begin_linger(c, now);
            else if (c->state == H2)
                announce_goaway(s, c->active->h2);
            nj_tcp_note_ready(&s->tcp, c->tcb, 0);
        }
}

/* Returns the number of connections that must still acknowledge a PING. */
static uint32_t send_last_goaways(struct nj_shard *s, nj_ns now)
{
    bool may_wait = s->role == NJ_PORT_YIELDS && now < s->goaway_wait_ends_at;
    uint32_t n_waiting = 0;

    for (enum nj_conn_wait i = 0; i < NJ_N_CONN_WAITS; i++)
        for (struct nj_list *n = s->waits_for[i].next; n != &s->waits_for[i]; n = n->next) {
            struct nj_conn *c = nj_container_of(n, struct nj_conn, node);
            if (c->state != H2)
                continue;
            if (may_wait && nj_h2_is_ping_unanswered(c->active->h2)) {
                n_waiting++;
            } else {
                nj_h2_goaway(c->active->h2);
                nj_tcp_note_ready(&s->tcp, c->tcb, 0);
            }
        }
    return n_waiting;
}

uint32_t nj__drain_tick(struct nj_shard *s, nj_ns now)
{
    if (!s->draining || now < s->goaway_at)
        return 0;
    s->goaway_at = send_last_goaways(s, now) > 0 ? now + GOAWAY_DELAY : NJ_NEVER;
    return 1;
}

static void begin_drain(struct nj_shard *s, nj_ns now)
{
    s->draining = true;
    expect_goaways(s, now);
    announce_goaways(s, now);
}

void nj_shard_drain(struct nj_shard *s, nj_ns now)
{
    if (s->tcp.draining || s->role == NJ_PORT_YIELDS)
        return;
    s->tcp.draining = true;
    begin_drain(s, now);
}

void nj__conns_yield(struct nj_shard *s, bool yields, nj_ns now)
{
    if (yields)
        begin_drain(s, now);
    else
        s->draining = s->tcp.draining;
}
