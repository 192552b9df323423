/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SYN-RECEIVED after a passive open (RFC 9293 3.10.7.4, RFC 4987 3.5). A half-open connection,
 * whose address may be spoofed, takes 128 bytes; its control block is made when the handshake
 * completes.
 */
#include "base/assert.h"
#include "tcp/seq.h"
#include "tcp/tcp_internal.h"
#include "telem/counters_tcp.h"

#define TICK_MAX 64u /* SYN-ACKs retransmitted per tick; the rest follows in the next */

/* Held: half-open connections | all clients, in connections | 4,096 for each lcore; then SYN
 * cookies, which hold nothing | 63 s | tcp_cookie_sent */

void nj__syn_parse(const struct nj_tcp *tcp, const struct nj_seg *seg, struct nj_minisock *b)
{
    bool ecn = (seg->flags & (NJ_TCP_ECE | NJ_TCP_CWR)) == (NJ_TCP_ECE | NJ_TCP_CWR);

    b->rcv_nxt = seg->seq + 1;
    b->ts_recent = seg->opts.ts_val;
    b->flow.flags = (uint8_t)((seg->opts.has_ts ? NJ_MINISOCK_TS : 0) |
                              (seg->opts.has_wscale ? NJ_MINISOCK_WSCALE : 0) |
                              (seg->opts.sack_permitted ? NJ_MINISOCK_SACK : 0) |
                              (tcp->cfg.ecn && ecn ? NJ_MINISOCK_ECN : 0));
}

/* The window of a SYN-ACK is never scaled (RFC 7323 2.2). ECE without CWR accepts ECN (RFC 3168
 * 6.1.1). */
bool nj__syn_send_synack(struct nj_tcp *tcp, const struct nj_minisock *b, uint32_t ts_val,
                         nj_ns now)
{
    uint8_t f = b->flow.flags;
    struct nj_tcp_emit e = {
        .tuple = b->flow.tuple,
        .seq = b->snd_nxt - 1,
        .ack = b->rcv_nxt,
        .wnd = NJ_TCP_SYN_WINDOW,
        .flags = NJ_TCP_SYN | NJ_TCP_ACK | (f & NJ_MINISOCK_ECN ? NJ_TCP_ECE : 0),
        .opts = {.has_mss = true,
                 .mss = nj__tcp_our_mss(tcp, &b->flow.tuple),
                 .has_wscale = f & NJ_MINISOCK_WSCALE,
                 .wscale = NJ_TCP_WSCALE,
                 .sack_permitted = f & NJ_MINISOCK_SACK,
                 .has_ts = f & NJ_MINISOCK_TS,
                 .ts_val = ts_val,
                 .ts_ecr = b->ts_recent},
    };
    return nj__tcp_send_no_tcb(tcp, &e, now);
}

static void answer_syn(struct nj_tcp *tcp, struct nj_syn *s, nj_ns now)
{
    uint32_t ts = nj__tcp_ts_clock_ms(now) + nj__tcp_ts_offset_of_tuple(tcp, &s->bare.flow.tuple);

    if (s->n_sent < UINT8_MAX)
        s->n_sent++;
    nj__syn_send_synack(tcp, &s->bare, ts, now); /* if it fails, the time-out retries */
}

/* All entries of a list have the same time-out, so each list is sorted by deadline. */
static void wait_for_ack(struct nj_tcp *tcp, struct nj_syn *s, nj_ns now)
{
    s->due = now + (NJ_TCP_RTO_INITIAL << s->n_waits);
    nj_list_push_back(&tcp->syn_due[s->n_waits], &s->node);
}

struct nj_flow *nj__syn_new(struct nj_tcp *tcp, const struct nj_tcp_arrival *a, nj_ns now)
{
    struct nj_syn *s = nj_pool_take(&tcp->syns);
    const struct nj_seg *seg = &a->seg;

    NJ_ASSERT(s != NULL); /* the pool holds a full backlog */
    s->bare.flow.tuple = seg->tuple;
    s->bare.flow.hash = nj_flow_hash(&tcp->flows, &seg->tuple);
    nj__flow_init_kind(&s->bare.flow, NJ_FLOW_SYN, now);
    nj__syn_parse(tcp, seg, &s->bare);
    uint32_t iss = nj__tcp_isn(tcp, &seg->tuple, now);
    if (a->follows && nj_seq_lt(iss, a->iss_min))
        iss = a->iss_min;
    s->bare.snd_nxt = iss + 1;
    s->peer_mss = seg->opts.has_mss ? seg->opts.mss : 0;
    s->peer_wscale = seg->opts.wscale;
    s->first_at = now;
    nj_list_init(&s->node);
    nj_flow_insert(&tcp->flows, &s->bare.flow);
    tcp->n_half_open++;
    answer_syn(tcp, s, now);
    wait_for_ack(tcp, s, now);
    return &s->bare.flow;
}

/* Free the object. The caller removes or replaces the flow table's entry. */
static void free_syn(struct nj_tcp *tcp, struct nj_syn *s)
{
    nj_list_del(&s->node);
    nj_pool_put(&tcp->syns, s);
    tcp->n_half_open--;
}

static void remove_syn(struct nj_tcp *tcp, struct nj_syn *s)
{
    nj_flow_remove(&tcp->flows, &s->bare.flow);
    free_syn(tcp, s);
}

void nj__syn_abort(struct nj_tcp *tcp, struct nj_syn *s, nj_ns now)
{
    nj__tcp_send_rst_at(tcp, &s->bare.flow, s->bare.snd_nxt, s->bare.rcv_nxt, now);
    nj_count(tcp->cfg.counters, NJ_C_tcp_aborted);
    remove_syn(tcp, s);
}

enum nj_tcp_verdict nj__syn_input(struct nj_tcp *tcp, struct nj_syn *s, struct nj_tcp_arrival *a,
                                  nj_ns now)
{
    const struct nj_seg *seg = &a->seg;
    enum nj_tcp_verdict v;

    /* RFC 9293 3.10.7.4 first: a retransmitted SYN, since our SYN-ACK was lost. The time-out is not
     * restarted, so a peer cannot stay in the backlog by repeating SYNs. */
    if ((seg->flags & (NJ_TCP_SYN | NJ_TCP_ACK | NJ_TCP_RST)) == NJ_TCP_SYN &&
        seg->seq + 1 == s->bare.rcv_nxt) {
        answer_syn(tcp, s, now);
        return NJ_VERDICT_DONE;
    }
    if ((v = nj__minisock_check_paws(&s->bare, a, now)) != NJ_VERDICT_PASS)
        return v;
    if (!nj_seq_acceptable(seg->seq, nj_seg_len(seg), s->bare.rcv_nxt, NJ_TCP_SYN_WINDOW))
        return nj__minisock_reject_stray(&s->bare, a, NJ_C_drop_tcp_window, now);
    if (seg->flags & NJ_TCP_RST) { /* RFC 9293 3.10.7.4 second */
        if (seg->seq != s->bare.rcv_nxt)
            return nj__tcp_note_why(a, NJ_VERDICT_DROP_CHALLENGE, NJ_C_drop_tcp_reset);
        nj_count(tcp->cfg.counters, NJ_C_tcp_reset_in);
        remove_syn(tcp, s);
        return NJ_VERDICT_GONE;
    }
    if (seg->flags & NJ_TCP_SYN) { /* RFC 9293 3.10.7.4 fourth: back to LISTEN */
        remove_syn(tcp, s);
        return NJ_VERDICT_ANEW;
    }
    if (!(seg->flags & NJ_TCP_ACK))
        return nj__tcp_note_why(a, NJ_VERDICT_DROP, NJ_C_drop_tcp_flags);
    if (seg->ack != s->bare.snd_nxt)
        return nj__tcp_note_why(a, NJ_VERDICT_DROP_RST, NJ_C_drop_tcp_ack);
    return NJ_VERDICT_PASS;
}

struct nj_tcb *nj__syn_make_tcb(struct nj_tcp *tcp, struct nj_syn *s, nj_ns now)
{
    uint8_t f = s->bare.flow.flags;
    struct nj_handshake h = {
        .iss = s->bare.snd_nxt - 1,
        .irs = s->bare.rcv_nxt - 1,
        .opts = {.has_mss = s->peer_mss != 0,
                 .mss = s->peer_mss,
                 .has_wscale = f & NJ_MINISOCK_WSCALE,
                 .wscale = s->peer_wscale,
                 .has_ts = f & NJ_MINISOCK_TS,
                 .ts_val = s->bare.ts_recent,
                 .sack_permitted = f & NJ_MINISOCK_SACK},
        .ecn = f & NJ_MINISOCK_ECN,
        .sent_at = s->n_sent == 1 ? s->first_at : 0, /* Karn */
        .n_waits = s->n_waits,
        .n_sent = s->n_sent,
    };
    struct nj_tcb *t = nj__tcb_new_syn_received(tcp, &s->bare.flow, NULL, &h, now);
    if (t)
        free_syn(tcp, s);
    return t;
}

/* Time-out of one SYN-ACK: RFC 9293 3.10.8, RFC 6298 5.5. */
static void time_out(struct nj_tcp *tcp, struct nj_syn *s, nj_ns now)
{
    nj_list_del(&s->node);
    if (s->n_waits == NJ_TCP_SYNACK_RETRIES) {
        nj_count(tcp->cfg.counters, NJ_C_tcp_aborted);
        remove_syn(tcp, s);
        return;
    }
    s->n_waits++;
    nj_count(tcp->cfg.counters, NJ_C_tcp_retransmit);
    answer_syn(tcp, s, now);
    wait_for_ack(tcp, s, now);
}

void nj__syn_tick(struct nj_tcp *tcp, nj_ns now)
{
    uint32_t n_left = TICK_MAX;

    for (unsigned i = 0; i < NJ_ARRAY_LEN(tcp->syn_due); i++) {
        while (!nj_list_empty(&tcp->syn_due[i]) && n_left > 0) {
            struct nj_syn *s = nj_container_of(tcp->syn_due[i].next, struct nj_syn, node);
            if (now < s->due)
                break;
            time_out(tcp, s, now);
            n_left--;
        }
    }
}

nj_ns nj__syn_next_deadline(const struct nj_tcp *tcp)
{
    nj_ns next = NJ_NEVER;

    for (unsigned i = 0; i < NJ_ARRAY_LEN(tcp->syn_due); i++) {
        if (nj_list_empty(&tcp->syn_due[i]))
            continue;
        const struct nj_syn *s = nj_container_of(tcp->syn_due[i].next, struct nj_syn, node);
        next = s->due < next ? s->due : next;
    }
    return next;
}
