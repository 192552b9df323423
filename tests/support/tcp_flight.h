/* SPDX-License-Identifier: BSD-3-Clause */
/* Scripts about data in flight: an MSS of 1000, a round trip of 100 ms, SACK. */
#pragma once

#include "support/tcp_dsl.h"
#include "tcp/cc/congestion.h"
#include "tcp/loss/recovery_state.h"

#define MSS 1000u

/* The offset of the segment in the stream; the first one has number 0. */
#define AT(n) (1 + (n)*MSS)

/* Segments first .. end - 1, as a block. */
#define SEGS(first, end)                                                                           \
    {                                                                                              \
        AT(first), AT(end)                                                                         \
    }

static inline void open_flight_with(struct world *w, const struct dsl_options *options,
                                    const struct dsl_seg *syn)
{
    struct dsl_seg s = *syn;

    nj_dsl_init(w, options);
    s.flags = S;
    s.mss = (uint16_t)(MSS + (s.ts ? NJ_TCP_TS_BYTES : 0));
    nj_dsl_feed(w, &s);
    nj_dsl_step(w);
    EXPECT(w, .flags = SA, .ack = 1);
    w->ts = s.ts;
    nj_dsl_run(w, 100 * MS);
    SEND(w, .flags = A, .seq = 1, .ack = 1);
    w->sack = s.sack_ok;
}

static inline void open_flight(struct world *w, const struct nj_cc_ops *cc)
{
    open_flight_with(w, &(struct dsl_options){.cc = cc}, &(struct dsl_seg){.sack_ok = true});
}

/* Expect `n` full segments, the first being number `first`. */
static inline void expect_full(struct world *w, uint32_t first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        EXPECT(w, .flags = A, .seq = AT(first + i), .ack = 1, .len = MSS);
}

/* `n` segments in flight, sent just now, and `more` that wait. */
static inline void fly(struct world *w, uint32_t n, uint32_t more)
{
    w->tcb->cwnd = n * MSS;
    w->wnd = 65000;
    WRITE(w, (n + more) * MSS);
    expect_full(w, 0, n);
    NOTHING(w);
}

/* Check that exactly the runs in flight are in the order of time, and that RACK's overtaken runs
 * are before the others. */
static inline void expect_order(const struct nj_xfer *x)
{
    const struct nj_list *n = &x->by_send_time;
    const struct nj_sent_run *prev = NULL;
    uint32_t n_flying = 0, n_listed = 0;
    bool met = x->overtaken == &x->by_send_time;

    for (const struct nj_sent_run *r = nj_sent_run_first(x); r; r = nj_sent_run_next(x, r)) {
        cr_assert_eq(nj_list_linked(&r->by_send_time), r->fate == NJ_RUN_IN_FLIGHT);
        n_flying += r->fate == NJ_RUN_IN_FLIGHT;
    }
    while ((n = n->next) != &x->by_send_time && n_listed <= n_flying) {
        const struct nj_sent_run *r = nj_container_of(n, struct nj_sent_run, by_send_time);
        cr_assert_eq(r->fate, NJ_RUN_IN_FLIGHT);
        if (prev)
            cr_assert(nj_rack_sent_after(r->at, r->end, prev->at, prev->end), "out of order");
        if (!met)
            cr_assert(nj_rack_sent_after(x->rack_at, x->rack_end, r->at, r->end));
        met |= x->overtaken == n;
        prev = r;
        n_listed++;
    }
    cr_assert_eq(n_listed, n_flying);
    cr_assert(met, "the run that was overtaken last is not in flight");
}

/* All segments before number `acked` have arrived, and those in the blocks. */
#define ACKED(w, acked, ...) SEND(w, .flags = A, .seq = 1, .ack = AT(acked), .sack = {__VA_ARGS__})
