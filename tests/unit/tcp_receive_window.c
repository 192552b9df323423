/* SPDX-License-Identifier: BSD-3-Clause */
/* The advertised window while received mbufs are short (RFC 9293 3.8.6.2.2); sentences 47, 50. */
#include "base/prng.h"

#include "support/tcp_dsl.h"
#include "telem/counters.h"

#define HELD_MAX 1000u

/* A connection with a scaled window, among others that hold `n` mbufs. */
static void open_among(struct world *w, uint32_t n)
{
    nj_dsl_init(w, NULL);
    w->tcp.cfg.held_max = HELD_MAX;
    nj_dsl_open_with(w, &(struct dsl_seg){.mss = 1460, .wscale_p1 = 8});
    w->tcp.n_held += n;
}

Test(tcp_receive_window, pressure)
{
    static const struct {
        uint32_t held, max;
        enum nj_rcv_pressure want;
    } row[] = {{1000, 0, NJ_RCV_PRESSURE_NONE},
               {0, 1, NJ_RCV_PRESSURE_NONE},
               {500, 1000, NJ_RCV_PRESSURE_NONE},
               {501, 1000, NJ_RCV_PRESSURE_SOME},
               {875, 1000, NJ_RCV_PRESSURE_SOME},
               {876, 1000, NJ_RCV_PRESSURE_HIGH},
               {UINT32_MAX / 2, UINT32_MAX, NJ_RCV_PRESSURE_NONE},
               {UINT32_MAX, UINT32_MAX, NJ_RCV_PRESSURE_HIGH}};
    for (unsigned i = 0; i < NJ_ARRAY_LEN(row); i++) {
        struct nj_tcp tcp = {.n_held = row[i].held, .cfg.held_max = row[i].max};
        cr_expect_eq(nj__rcv_pressure(&tcp), row[i].want, "row %u", i);
    }
}

/* The peer fills the window and the user reads: once the old window is used up, the window is that
 * of the pressure, and the stream continues. */
Test(tcp_receive_window, offers_less_under_pressure)
{
    static const struct {
        uint32_t held, least, most;
    } row[] = {{0, 256 * 1024 - 2920, 256 * 1024 + 8},
               {600, 64 * 1024 - 2920, 64 * 1024 + 8},
               {900, 2 * 1460, 4 * 1460 + 8}};
    for (unsigned i = 0; i < NJ_ARRAY_LEN(row); i++) {
        struct world w;
        open_among(&w, row[i].held);
        for (uint32_t seq = 1; seq < 1000000;) {
            uint32_t wnd = nj__tcp_rcv_wnd(w.tcb), n = wnd < 1460 ? wnd : 1460;
            cr_assert_gt(n, 0, "the peer is stuck at %u", seq);
            SEND(&w, .flags = A | P, .seq = seq, .ack = 1, .len = n);
            seq += n;
            if (w.n_out)
                nj_dsl_run(&w, MS);
            if (seq > 500000)
                cr_assert(wnd >= row[i].least - 1460 && wnd <= row[i].most, "row %u: %u", i, wnd);
            w.n_out = w.next_out = 0;
        }
        cr_expect_geq(w.n_read, 999999);
        w.tcp.n_held -= row[i].held;
        nj_dsl_fini(&w);
    }
}

/* RFC 9293 3.8.6; sentence 47: the advertised edge stays, first alone, then while the memory
 * pressure of other connections changes. */
Test(tcp_receive_window, edge_stays_while_pressure_changes)
{
    const uint64_t seed = 0x47;
    struct world w;
    struct nj_prng r;
    uint32_t edge = 1 + 65535, seq = 1, others = 0;

    nj_prng_init(&r, seed);
    fprintf(stderr, "seed %#lx\n", (unsigned long)seed);
    open_among(&w, 0);
    w.no_read = true;
    for (unsigned i = 0; i < 6000; i++) {
        bool alone = i < 3000;
        struct dsl_out *o;
        uint32_t wnd = nj__tcp_rcv_wnd(w.tcb), n = nj_prng_below(&r, 1461);
        w.tcp.n_held -= others;
        others = alone ? 0 : nj_prng_below(&r, HELD_MAX);
        w.tcp.n_held += others;
        SEND(&w, .flags = A, .seq = seq, .ack = 1, .len = n < wnd ? n : wnd);
        seq = w.tcb->rcv_nxt - w.irs;
        nj_dsl_read(&w, nj_prng_below(&r, alone ? 1300 : 2000)); /* first less than arrives */
        nj_dsl_run(&w, nj_prng_below(&r, 30) * MS);
        while ((o = nj_dsl_take(&w))) {
            uint32_t next = o->rel_ack + ((uint32_t)o->seg.wnd << NJ_TCP_WSCALE);
            cr_assert_geq(next, edge, "moved left by %u", edge - next);
            edge = next;
        }
        w.n_out = w.next_out = 0;
    }
    cr_expect_gt(seq, 100000);
    w.tcp.n_held -= others;
    nj_dsl_read(&w, UINT32_MAX);
    nj_dsl_fini(&w);
}

/* With no mbufs left, in-order data is accepted if the connection holds no other mbuf. */
Test(tcp_receive_window, due_byte_is_taken_when_all_is_held)
{
    struct world w;
    open_among(&w, HELD_MAX);
    for (uint32_t i = 0; i < 20; i++)
        SEND(&w, .flags = A | P, .seq = 1 + i * 1000, .ack = 1, .len = 1000);
    cr_expect_eq(w.n_read, 20000);
    SEND(&w, .flags = A, .seq = 30001, .ack = 1, .len = 1000); /* not due: there is no room */
    cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_reassembly), 1);
    w.tcp.n_held -= HELD_MAX;
    nj_dsl_fini(&w);
}

/* The user takes no byte of a record of TLS before its last one: the window is never closed within
 * a record (RFC 8446 5.2), however short mbufs are. */
Test(tcp_receive_window, room_for_a_record_under_pressure)
{
    enum { RECORD = 5 + 16384 + 256 };
    struct world w;

    open_among(&w, 900);
    nj_tcp_expect_records(w.tcb);
    cr_expect_eq(nj__rcv_pressure(&w.tcp), NJ_RCV_PRESSURE_HIGH);
    w.tcb->rcv_adv = w.tcb->rcv_nxt; /* the first window is used up */
    nj__tcp_next_window_field(&w.tcp, w.tcb);
    cr_expect_geq(nj__tcp_rcv_wnd(w.tcb), RECORD);
    cr_expect_leq(nj__tcp_rcv_wnd(w.tcb), RECORD + 2 * 1460 + 8);
    w.tcp.n_held -= 900;
    nj_dsl_fini(&w);
}
