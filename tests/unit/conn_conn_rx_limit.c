/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that send and do not read: their received mbufs stay in the pool. */
#include <criterion/criterion.h>

#include "support/shard_rig.h"
#include "telem/counters.h"

enum { HEADERS = 1, PING = 6 };

#define HOARD_HELD                                                                                 \
    1024u /* received mbufs of the shard; a connection may hold a fifth of those left */

/* Sends as much as the shard accepts, in segments too large to be merged into the previous mbuf. */
static void send_pings(struct rig *r, struct rig_peer *p)
{
    uint8_t pings[16 * 17];
    uint32_t n = 0;

    while (n < sizeof pings)
        n += rig_h2(pings + n, PING, 0, 0, "12345678", 8);
    for (int i = 0; i < 256; i++) {
        if ((int32_t)(p->snd_una + p->srv_wnd - p->snd_nxt) < (int32_t)n)
            break;
        rig_send(r, p, pings, n);
        rig_settle(r);
    }
}

/* A peer that requests more than it reads, and keeps sending. */
static struct rig_peer *hoarder(struct rig *r, uint16_t port)
{
    struct rig_peer *p = rig_connect_h2(r, port);

    p->rcv_wnd = 0;
    rig_get(r, p, 1, "/big");
    rig_settle(r);
    send_pings(r, p);
    return p;
}

/* Peers that send and do not read hold the received mbufs, all from one address. When too many are
 * held, those with most mbufs are reset, so that others are accepted at any time. A peer with few
 * mbufs stays. */
Test(conn_conn_rx_limit, hoarders_are_shed)
{
    enum { N = 40 };
    struct rig *r = rig_alloc(8192, 8192);
    struct nj_shard_config config = rig_config(r);
    uint8_t ping[17];

    config.held_max = HOARD_HELD;
    rig_new_with(r, &config);
    struct rig_peer *p[N], *modest = rig_connect_h2(r, 999);
    modest->rcv_wnd = 0; /* waits first, with one mbuf */
    rig_get(r, modest, 1, "/big");
    rig_settle(r);
    rig_send(r, modest, ping, rig_h2(ping, PING, 0, 0, "12345678", 8));
    rig_settle(r);
    for (uint32_t i = 0; i < N; i++) {
        p[i] = hoarder(r, (uint16_t)(1000 + i));
        cr_expect(p[i]->got_synack, "%u", i);
        cr_expect_leq(r->s->tcp.n_held, HOARD_HELD / 8 * 7);
    }
    struct rig_peer *q = rig_connect_h2(r, 2001);
    rig_get(r, q, 1, "/index.html");
    rig_settle(r);
    cr_expect_eq(rig_h2_frames(q, HEADERS, NULL), 1);
    uint64_t n_gone = rig_count(r, NJ_C_conn_rx_limit);
    cr_expect(n_gone > 0 && n_gone < N, "%lu of %u", n_gone, N);
    cr_expect(!modest->got_rst && !q->got_rst);
    cr_expect(p[0]->got_rst && !p[N - 1]->got_rst, "those that hold most");
    rig_free(r);
}
