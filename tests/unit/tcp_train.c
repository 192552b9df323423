/* SPDX-License-Identifier: BSD-3-Clause */
/* Bursts: segments sent in one call have the same boundaries as if sent one by one. */
#include "tcp/cc/congestion.h"

#include "support/tcp_dsl.h"
#include "support/tcp_flight.h"
#include "telem/counters.h"

static void open_train(struct world *w, struct dsl_options o)
{
    open_flight_with(w, &o, &(struct dsl_seg){.sack_ok = true, .ecn_syn = o.ecn});
    w->wnd = 65535;
    w->tcp.cfg.tx = (struct nj_tx_offload){.tso = false}; /* none that is cut by the device */
    SEND(w, .flags = A, .seq = 1, .ack = 1);
}

/* Room for w.room segments in all. */
static uint32_t what_is_left(void *ctx)
{
    struct world *w = ctx;
    return w->n_out < w->room ? w->room - w->n_out : 0;
}

Test(tcp_train, ends_at_the_congestion_window)
{
    struct world w;
    open_train(&w, (struct dsl_options){0});
    w.tcb->cwnd = 7 * MSS + 900;
    WRITE(&w, 20 * MSS);
    expect_full(&w, 0, 7);
    NOTHING(&w);
    cr_expect_eq(w.tcb->x->n_runs, 1);
    cr_expect_eq(w.tcb->x->n_flight, 7 * MSS);
    nj_dsl_fini(&w);
}

Test(tcp_train, ends_at_the_peers_window)
{
    struct world w;
    open_train(&w, (struct dsl_options){0});
    w.wnd = 5 * MSS + 400;
    SEND(&w, .flags = A, .seq = 1, .ack = 1);
    WRITE(&w, 20 * MSS);
    expect_full(&w, 0, 5);
    NOTHING(&w);
    nj_dsl_fini(&w);
}

/* PSH and FIN are on the last segment of more data than one call sends. */
Test(tcp_train, ends_with_the_stream)
{
    struct world w;
    open_train(&w, (struct dsl_options){0});
    w.tcb->cwnd = 60 * MSS;
    nj_dsl_write(&w, 40 * MSS + 10);
    CLOSE(&w);
    expect_full(&w, 0, 40);
    cr_expect(EXPECT(&w, .flags = FA, .seq = AT(40), .ack = 1, .len = 10)->seg.flags & P);
    NOTHING(&w);
    for (uint32_t i = 0; i < 40; i++)
        cr_expect_not(w.out[w.n_out - 2 - i].seg.flags & P);
    nj_dsl_fini(&w);
}

Test(tcp_train, ends_with_the_room_of_the_device)
{
    struct world w;
    open_train(&w, (struct dsl_options){0});
    w.tcp.cfg.room = what_is_left;
    w.room = w.n_out + 3;
    WRITE(&w, 8 * MSS);
    expect_full(&w, 0, 3);
    NOTHING(&w);
    w.room += 100;
    nj_dsl_step(&w);
    expect_full(&w, 3, 5);
    nj_dsl_fini(&w);
}

static struct rte_mbuf *kept[8];
static uint32_t n_kept;

static void keep(void *ctx, struct rte_mbuf *m, const struct nj_ip_meta *ip, nj_ns now)
{
    (void)ctx, (void)ip, (void)now;
    kept[n_kept++] = m;
}

/* Three mbufs are left, in the cache and the pool; one attempt fails. */
Test(tcp_train, ends_with_the_mbufs)
{
    struct world w;
    struct rte_mbuf *hog[512];
    uint32_t n = 0;
    open_train(&w, (struct dsl_options){0});
    nj_dsl_write(&w, 8 * MSS);
    while ((hog[n] = nj__mbuf_get(&w.tcp)))
        n++;
    w.tcp.fresh[w.tcp.n_mbuf_cache++] = hog[--n];
    w.tcp.fresh[w.tcp.n_mbuf_cache++] = hog[--n];
    rte_pktmbuf_free(hog[--n]);
    uint64_t had = nj_dsl_count(&w, NJ_C_mbuf_none);
    struct nj_tcp_config was = w.tcp.cfg;
    w.tcp.cfg.emit = keep;
    nj_tcp_output_pending(&w.tcp, w.now);
    w.tcp.cfg.emit = was.emit;
    cr_expect_eq(n_kept, 3);
    cr_expect_eq(w.tcb->snd_nxt - w.tcb->snd_una, 3 * MSS);
    cr_expect_eq(w.tcb->x->n_flight, 3 * MSS);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_mbuf_none), had + 1);
    rte_pktmbuf_free_bulk(hog, n);
    rte_pktmbuf_free_bulk(kept, n_kept);
    nj_dsl_step(&w);
    expect_full(&w, 3, 5);
    nj_dsl_fini(&w);
}

/* RFC 2018 3: only the last segment, which is short, has room for SACK blocks. */
Test(tcp_train, blocks_are_in_the_short_one)
{
    struct world w;
    open_train(&w, (struct dsl_options){0});
    w.sack = false;
    nj_dsl_write(&w, 3 * MSS + 100);
    SEND(&w, .flags = A, .seq = 501, .ack = 1, .len = 500);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    expect_full(&w, 0, 3);
    for (uint32_t i = 0; i < 3; i++)
        cr_expect_eq(w.out[w.n_out - 2 - i].seg.opts.n_sack, 0);
    w.sack = true;
    EXPECT(&w, .flags = A, .seq = AT(3), .ack = 1, .len = 100, .sack = {{501, 1001}});
    nj_dsl_fini(&w);
}

/* Lost segments are retransmitted in one burst, limited by the window. */
Test(tcp_train, of_what_was_lost)
{
    struct world w;
    open_train(&w, (struct dsl_options){0});
    fly(&w, 20, 0);
    nj_dsl_run(&w, 100 * MS);
    ACKED(&w, 0, SEGS(15, 20)); /* five have left the network: five may go (RFC 9937) */
    expect_full(&w, 0, 5);
    NOTHING(&w);
    cr_expect_eq(w.tcb->x->n_runs, 4, "one at once, and four as one run");
    cr_expect_eq(w.tcb->x->n_flight, 5 * MSS);
    cr_expect_eq(w.tcb->x->n_lost, 10 * MSS);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_retransmit), 5);
    nj_dsl_fini(&w);
}
