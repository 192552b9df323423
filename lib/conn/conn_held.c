/* SPDX-License-Identifier: BSD-3-Clause */
#include "conn/conn_held.h"

#include "conn/conn_tls.h"
#include "conn/session.h"

/* `n` units of one account. */
static void set_held(struct nj_conn *c, struct nj_held_shares *a, struct nj_holder *h, uint32_t n)
{
    const struct nj_addr *remote = nj__conn_remote(c);

    nj_held_set(a, h, nj__client_key(c->conns, remote),
                nj__is_trusted_proxy(c->conns, remote) ? 0 : n);
}

/* KiB of buffers of the session, rounded down: part of a frame with a few fields counts as none. */
static uint32_t held_memory_kib(const struct nj_conn *c)
{
    return nj__conn_has_session(c) ? nj__session_buffered_bytes(c) / 1024 : 0;
}

/* Since when the first unread byte waits. A record that is incomplete is not older than its first
 * byte, unless segments wait behind a hole. */
static void set_held_since(struct nj_conn *c, nj_ns now)
{
    struct nj_xfer *x = c->tcb->x;
    nj_ns since = NJ_NEVER;

    if (c->is_tls && !x->reasm)
        since = nj__conn_tls_unfinished_record_since(c, now);
    if (since != NJ_NEVER || x->held_mbufs.n == 0)
        x->held_mbufs.since_ms = nj__ms_of(since != NJ_NEVER ? since : now);
}

static void set_all_held(struct nj_conn *c, uint32_t n_mbufs, uint32_t kib, uint32_t n_output)
{
    struct nj_xfer *x = c->tcb->x; /* TCP keeps it while c->holds */

    if (!x)
        return;
    if (n_mbufs != x->held_mbufs.n)
        set_held(c, &c->conns->held_mbufs, &x->held_mbufs, n_mbufs);
    if (kib != x->held_memory.n)
        set_held(c, &c->conns->held_memory, &x->held_memory, kib);
    if (n_output != x->held_output.n)
        set_held(c, &c->conns->held_output, &x->held_output, n_output);
    if (x->held_output.n > 0)
        nj_tcp_set_ack_events(c->tcb, true);
    c->holds = x->held_mbufs.n > 0 || x->held_memory.n > 0 || x->held_output.n > 0;
}

void nj__conn_count_held(struct nj_conn *c, nj_ns now)
{
    const struct nj_xfer *x = c->tcb->x;

    if (x && x->rcvq.n_mbufs > 0)
        set_held_since(c, now);
    set_all_held(c, x ? x->rcvq.n_mbufs : 0, held_memory_kib(c),
                 x && c->conns->tx_short ? x->sndq.n_mbufs : 0);
}

void nj__conn_forget_held(struct nj_conn *c)
{
    if (c->holds)
        set_all_held(c, 0, 0, 0);
}
