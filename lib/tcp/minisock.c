/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions common to all kinds of flows, and to the two kinds of minisocks. Minisocks follow RFC
 * 9293 3.10.7.4 as far as they need it. */
#include "tcp/seq.h"
#include "tcp/tcp_internal.h"
#include "telem/counters_tcp.h"

#define STRAY_MS (NJ_TCP_STRAY_ACK_INTERVAL / NJ_MS)

/* The interval counts as elapsed, so that the first unacceptable segment is answered. */
void nj__flow_init_kind(struct nj_flow *f, enum nj_flow_kind kind, nj_ns now)
{
    f->kind = (uint8_t)kind;
    f->stray_ack_ms = (uint16_t)(now / NJ_MS - STRAY_MS);
}

/* The 16-bit clock wraps every 65 s. An ACK may then be suppressed wrongly, for 100 ms. */
bool nj__flow_may_ack_stray(struct nj_flow *f, nj_ns now)
{
    uint16_t ms = (uint16_t)(now / NJ_MS);
    if ((uint16_t)(ms - f->stray_ack_ms) < STRAY_MS)
        return false;
    f->stray_ack_ms = ms;
    return true;
}

enum nj_tcp_verdict nj__minisock_reject_stray(struct nj_minisock *b, struct nj_tcp_arrival *a,
                                              nj_counter why, nj_ns now)
{
    bool quiet = (a->seg.flags & NJ_TCP_RST) || !nj__flow_may_ack_stray(&b->flow, now);
    return nj__tcp_note_why(a, quiet ? NJ_VERDICT_DROP : NJ_VERDICT_DROP_ACK, why);
}

enum nj_tcp_verdict nj__minisock_check_paws(struct nj_minisock *b, struct nj_tcp_arrival *a,
                                            nj_ns now)
{
    const struct nj_seg *seg = &a->seg;

    if (!(b->flow.flags & NJ_MINISOCK_TS) || !seg->opts.has_ts || (seg->flags & NJ_TCP_RST))
        return NJ_VERDICT_PASS;
    if (nj_seq_lt(seg->opts.ts_val, b->ts_recent))
        return nj__minisock_reject_stray(b, a, NJ_C_drop_tcp_paws, now);
    return NJ_VERDICT_PASS;
}

void nj__flow_fill_timestamp(const struct nj_tcp *tcp, const struct nj_flow *f,
                             struct nj_tcp_opts *o, nj_ns now)
{
    if (f->kind == NJ_FLOW_TCB) {
        const struct nj_tcb *t = (const struct nj_tcb *)f;
        o->has_ts = t->ts_on;
        o->ts_val = nj__tcp_ts_now(t, now);
        o->ts_ecr = t->ts_recent;
    } else {
        o->has_ts = f->flags & NJ_MINISOCK_TS;
        o->ts_val = nj__tcp_ts_clock_ms(now) + nj__tcp_ts_offset_of_tuple(tcp, &f->tuple);
        o->ts_ecr = ((const struct nj_minisock *)f)->ts_recent;
    }
}
