/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RFC 9293 3.10.7.4: segment arrival in a synchronized state. The steps are in the order of the
 * RFC; each returns a verdict, and only input.c acts on it. Step 3 (security compartments) has no
 * function, because IP options are ignored. Step 6 (urgent, RFC 9293 3.8.5) is ignored: urgent data
 * stays in the stream.
 */

#include "base/assert.h"
#include "tcp/cc/congestion.h"
#include "tcp/loss/recovery_state.h"
#include "tcp/seq.h"
#include "tcp/tcp_internal.h"
#include "telem/counters_tcp.h"

static uint32_t seconds(nj_ns t)
{
    return (uint32_t)(t / NJ_SEC);
}

/* RFC 7323 5.5: is TS.Recent too old to be compared? */
static bool ts_recent_expired(const struct nj_tcb *t, nj_ns now)
{
    return seconds(now) - t->ts_recent_s >= NJ_TCP_PAWS_IDLE / NJ_SEC;
}

/* RFC 7323 5.3 R1 - R3: protection against wrapped sequence numbers. RFC 7323 5.2: not for RST. RFC
 * 7323 3.2: a segment without the option should be dropped; it is accepted (docs/adr/0025). */
static enum nj_tcp_verdict check_paws(struct nj_tcb *t, struct nj_tcp_arrival *a, nj_ns now)
{
    const struct nj_seg *seg = &a->seg;

    if (!t->ts_on || !seg->opts.has_ts || (seg->flags & NJ_TCP_RST))
        return NJ_VERDICT_PASS;
    if (nj_seq_lt(seg->opts.ts_val, t->ts_recent) && !ts_recent_expired(t, now)) {
        bool quiet = nj_seg_len(seg) == 0 && !nj__flow_may_ack_stray(&t->flow, now);
        return nj__tcp_note_why(a, quiet ? NJ_VERDICT_DROP : NJ_VERDICT_DROP_ACK,
                                NJ_C_drop_tcp_paws);
    }
    return NJ_VERDICT_PASS;
}

/* RFC 7323 4.3 and 5.3 R3: update TS.Recent. Only after the checks of sequence number and ACK
 * field, or a forged segment could make PAWS drop the peer's data. Before trimming. After 24 days
 * any timestamp is accepted (RFC 7323 5.5). */
static void update_ts_recent(struct nj_tcp *tcp, struct nj_tcb *t, const struct nj_seg *seg,
                             nj_ns now)
{
    if (!t->ts_on)
        return;
    if (!seg->opts.has_ts) {
        nj_count(tcp->cfg.counters, NJ_C_tcp_ts_missing);
        return;
    }
    if (nj_seq_le(seg->seq, t->last_ack_sent) &&
        (nj_seq_le(t->ts_recent, seg->opts.ts_val) || ts_recent_expired(t, now))) {
        t->ts_recent = seg->opts.ts_val;
        t->ts_recent_s = seconds(now);
    }
}

/* Trim the segment to the receive window (RFC 9293 3.10.7.4 first). After the checks of RST and
 * SYN, since RFC 5961 applies to the original number. */
static void trim(const struct nj_tcb *t, struct nj_seg *seg)
{
    uint32_t wnd = nj__tcp_rcv_wnd(t);

    if (nj_seq_lt(seg->seq, t->rcv_nxt)) {
        uint32_t old = t->rcv_nxt - seg->seq;
        if (old > seg->payload_bytes)
            old = seg->payload_bytes; /* the rest is the FIN, which is still new or a duplicate */
        seg->seq += old;
        seg->payload_off += old;
        seg->payload_bytes -= old;
    }
    uint32_t edge = t->rcv_nxt + wnd;
    if (t->fin_seen && nj_seq_lt(t->x->fin_seq, edge))
        edge = t->x->fin_seq; /* no data follows a FIN */
    if (seg->payload_bytes > 0 && nj_seq_lt(edge, seg->seq + seg->payload_bytes)) {
        seg->payload_bytes = nj_seq_lt(seg->seq, edge) ? edge - seg->seq : 0;
        seg->flags &= (uint8_t)~NJ_TCP_FIN;
    }
}

/* Record duplicate text, to be reported by D-SACK (RFC 2883 4.1). True if there is some. */
static bool note_duplicate(struct nj_tcb *t, const struct nj_seg *seg)
{
    uint32_t end = seg->seq + seg->payload_bytes;

    if (seg->payload_bytes == 0 || (seg->flags & (NJ_TCP_SYN | NJ_TCP_RST)) ||
        !nj_seq_lt(seg->seq, t->rcv_nxt))
        return false;
    nj__sack_note_dsack(t, seg->seq, nj_seq_lt(end, t->rcv_nxt) ? end : t->rcv_nxt);
    return true;
}

/* Restart the idle and keepalive times (RFC 9293 3.8.4). Not for unacceptable segments, which may
 * be old or forged. */
static void note_peer_alive(struct nj_tcb *t, nj_ns now)
{
    t->heard_at = now;
    t->n_keepalives = 0;
}

/* Is this the peer's keepalive? It is unacceptable by design: the number is rcv_nxt - 1, with at
 * most one byte of old text, and it acknowledges all we sent. It proves that the peer is alive (RFC
 * 9293 3.8.4 MUST-26). */
static bool is_keepalive(const struct nj_tcb *t, const struct nj_seg *seg)
{
    return (seg->flags & (NJ_TCP_ACK | NJ_TCP_SYN | NJ_TCP_FIN | NJ_TCP_RST)) == NJ_TCP_ACK &&
           seg->seq == t->rcv_nxt - 1 && seg->payload_bytes <= 1 && seg->ack == t->snd_nxt;
}

/* RFC 9293 3.10.7.4 first: the sequence number, by table 6. */
static enum nj_tcp_verdict step1_sequence(struct nj_tcp *tcp, struct nj_tcb *t,
                                          struct nj_tcp_arrival *a, nj_ns now)
{
    struct nj_seg *seg = &a->seg;
    uint32_t wnd = nj__tcp_rcv_wnd(t), len;

    /* A retransmitted SYN: our SYN-ACK was lost. */
    if (t->state == NJ_TCP_SYN_RECEIVED && (seg->flags & NJ_TCP_SYN) && seg->seq == t->x->irs &&
        !(seg->flags & NJ_TCP_RST)) {
        if (!(seg->flags & NJ_TCP_ACK)) {
            /* Keep the time-out, or a peer could stay in the backlog by repeating SYNs. */
            nj_ns rexmit_at = t->x->rexmit_at;
            nj__tcp_send_syn(tcp, t, now);
            t->x->rexmit_at = rexmit_at;
            return NJ_VERDICT_DONE;
        }
        /* Simultaneous open: the SYN-ACK repeats the peer's SYN (RFC 9293 figure 7). */
        seg->flags &= (uint8_t)~NJ_TCP_SYN;
        seg->seq++;
        seg->wnd = (uint16_t)(seg->wnd >> t->snd_wscale); /* it is not scaled in a SYN */
    }
    enum nj_tcp_verdict v = check_paws(t, a, now);
    if (v != NJ_VERDICT_PASS)
        return v;
    len = nj_seg_len(seg);
    if (!nj_seq_acceptable(seg->seq, len, t->rcv_nxt, wnd)) {
        bool quiet = seg->flags & NJ_TCP_RST;
        if (t->state == NJ_TCP_TIME_WAIT && !quiet && (seg->flags & NJ_TCP_FIN))
            t->x->close_at = now + tcp->cfg.time_wait; /* retransmitted FIN: restart 2 MSL */
        if (is_keepalive(t, seg))
            note_peer_alive(t, now);
        if (len == 0 && !quiet)
            quiet = !nj__flow_may_ack_stray(&t->flow, now);
        note_duplicate(t, seg);
        return nj__tcp_note_why(a, quiet ? NJ_VERDICT_DROP : NJ_VERDICT_DROP_ACK,
                                NJ_C_drop_tcp_window);
    }
    if (wnd == 0 && len > 0)
        t->ack_now = true;
    if (note_duplicate(t, seg)) {
        t->ack_now = true;
        nj__tcb_note_output(tcp, t);
    }
    return NJ_VERDICT_PASS;
}

/* RFC 9293 3.10.7.4 second: RST, which must match rcv_nxt exactly (RFC 5961 3.2). */
static enum nj_tcp_verdict step2_reset(struct nj_tcp *tcp, struct nj_tcb *t,
                                       struct nj_tcp_arrival *a)
{
    if (!(a->seg.flags & NJ_TCP_RST))
        return NJ_VERDICT_PASS;
    if (t->state == NJ_TCP_TIME_WAIT) /* RFC 1337: no assassination */
        return nj__tcp_note_why(a, NJ_VERDICT_DROP, NJ_C_drop_tcp_reset);
    if (a->seg.seq != t->rcv_nxt)
        return nj__tcp_note_why(a, NJ_VERDICT_DROP_CHALLENGE, NJ_C_drop_tcp_reset);
    nj_count(tcp->cfg.counters, NJ_C_tcp_reset_in);
    nj__tcb_end(tcp, t);
    return NJ_VERDICT_GONE;
}

/* RFC 9293 3.10.7.4 fourth: a SYN in the window is answered with a challenge ACK (RFC 5961 4.2). */
static enum nj_tcp_verdict step4_syn(struct nj_tcp_arrival *a)
{
    if (!(a->seg.flags & NJ_TCP_SYN))
        return NJ_VERDICT_PASS;
    return nj__tcp_note_why(a, NJ_VERDICT_DROP_CHALLENGE, NJ_C_drop_tcp_reset);
}

/* RFC 9293 3.10.7.4 fifth. SEG.ACK is SND.UNA now. `advanced`: it was higher, so SND.WL2 was lower.
 * A higher ACK always updates the window, whatever its sequence number. Otherwise an old window
 * would be counted from the new snd_una and exceed the peer's advertisement. */
static void update_window(struct nj_tcb *t, const struct nj_seg *seg, bool advanced)
{
    if (advanced || nj_seq_le(t->snd_wl1, seg->seq)) {
        t->snd_wnd = (uint32_t)seg->wnd << t->snd_wscale;
        t->snd_wl1 = seg->seq;
        if (t->snd_wnd > t->snd_wnd_max)
            t->snd_wnd_max = t->snd_wnd;
    }
}

static void complete_handshake(struct nj_tcp *tcp, struct nj_tcb *t, const struct nj_seg *seg,
                               nj_ns now)
{
    nj__tcp_rto_handshake_done(t, now);
    t->snd_una = t->x->iss + 1;
    t->x->rexmit_at = NJ_NEVER;
    t->x->progress_at = now;
    t->snd_wl1 = seg->seq;
    t->snd_wnd = t->snd_wnd_max = (uint32_t)seg->wnd << t->snd_wscale;
    nj__tcb_set_state(tcp, t, NJ_TCP_ESTABLISHED);
    tcp->cfg.cc->opened(t);
    nj_count(tcp->cfg.counters, NJ_C_tcp_accepted);
    if (t->fin_queued) /* closed while a simultaneous open was under way (RFC 9293 3.10.4) */
        nj__tcb_set_state(tcp, t, NJ_TCP_FIN_WAIT_1);
    if (!t->is_orphan)
        nj_tcp_note_ready(tcp, t, NJ_TCP_EV_OPENED);
}

/* RFC 6298 3, Karn: no sample from retransmitted data, unless a timestamp identifies the copy. */
static void sample_rtt(struct nj_tcb *t, const struct nj_seg *seg, const struct nj_ack_result *news,
                       nj_ns now)
{
    if (news->oldest_once_at && !news->rexmit_acked) {
        nj__tcp_rtt_sample(t, now - news->oldest_once_at);
    } else if (t->ts_on && news->n_acked > 0 && seg->opts.ts_ecr != 0) {
        uint32_t ms = nj__tcp_ts_now(t, now) - seg->opts.ts_ecr;
        if (ms <= NJ_TCP_RTO_MAX / NJ_MS)
            nj__tcp_rtt_sample(t, ms * NJ_MS);
    } else if (news->n_acked > 0 && news->newest_once_at > news->newest_rexmit_at) {
        /* The newest covered data was sent only once, so the ACK was sent after its arrival.
         * Without this sample a backed-off RTO would persist while every ACK covers a
         * retransmission. */
        nj__tcp_rtt_sample(t, now - news->newest_once_at);
    }
}

/* New data is acknowledged. Returns true if our FIN is, too. */
static bool advance_una(struct nj_tcp *tcp, struct nj_tcb *t, const struct nj_seg *seg,
                        struct nj_ack_result *news, nj_ns now)
{
    struct nj_xfer *x = t->x;
    uint32_t n_acked = seg->ack - t->snd_una;
    uint32_t n_bytes = n_acked < x->sndq.n_bytes ? n_acked : x->sndq.n_bytes; /* less our FIN */

    news->n_acked = n_acked;
    if (n_acked >= t->snd_mss && t->mss_acked < t->snd_mss)
        t->mss_acked = t->snd_mss;
    nj__scoreboard_ack(tcp, t, seg->ack, news, now);
    nj__sndq_drop_acked(t, n_bytes);
    t->snd_una = seg->ack;
    t->ack_min = nj_seq_max(t->ack_min, seg->ack - t->snd_wnd_max);
    x->n_backoffs = 0;
    nj__tcp_rto_halve_on_ack(t);
    x->progress_at = now;
    if (t->user && !t->ack_events_off)
        nj_tcp_note_ready(tcp, t, NJ_TCP_EV_WRITABLE);
    return n_acked > n_bytes;
}

/* Process the ACK field and the SACK option. Returns true if our FIN is acknowledged. */
static bool process_ack(struct nj_tcp *tcp, struct nj_tcb *t, const struct nj_tcp_arrival *a,
                        nj_ns now)
{
    const struct nj_seg *seg = &a->seg;
    struct nj_xfer *x = t->x;
    struct nj_ack_result news = {0};
    uint32_t una = t->snd_una;
    bool fin = false, wnd_same = (uint32_t)seg->wnd << t->snd_wscale == t->snd_wnd;

    news.repeats = seg->ack == una && !a->had_text && wnd_same && t->snd_wnd > 0;
    x->flight_before_ack = t->snd_nxt - una;
    if (nj_seq_lt(una, seg->ack)) {
        /* RFC 7323 4.3: TSecr refers to the segment that advanced the left edge, not to data SACKed
         * beyond a hole. */
        x->echo = t->ts_on ? seg->opts.ts_ecr : 0;
        fin = advance_una(tcp, t, seg, &news, now);
        x->echo = 0;
    }
    if (t->sack_on && /* an old ACK may carry new blocks, too */
        nj__scoreboard_process_sack_opt(tcp, t, seg, &news, now))
        nj__recovery_dsack(t, &seg->opts.sack[0], &news);
    sample_rtt(t, seg, &news, now);
    if (!t->sack_on && news.repeats && x->n_flight > 0)
        nj__recovery_dupack(tcp, t, now);
    else if (una != t->snd_nxt || news.dsack || (news.repeats && x->tlp_out))
        nj__recovery_update_on_ack(tcp, t, seg, &news, una, now);
    x->flight_before_ack = 0;
    if (news.n_acked > 0) { /* RFC 6298 5.2, 5.3; RFC 8985 7.2 */
        x->rexmit_at = t->snd_una != t->snd_nxt ? now + x->rto : NJ_NEVER;
        nj__tlp_schedule(t, now);
    } else if (x->n_sacked > 0) {
        x->pto_at = NJ_NEVER;
    }
    return fin;
}

/* RFC 9293 3.10.7.4 fifth: state changes when our FIN is acknowledged. */
static enum nj_tcp_verdict fin_acked(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    switch ((enum nj_tcp_state)t->state) {
    case NJ_TCP_FIN_WAIT_1:
        nj__tcb_set_state(tcp, t, NJ_TCP_FIN_WAIT_2);
        if (t->is_orphan)
            t->x->close_at = now + NJ_TCP_FIN_WAIT_2_MAX;
        return NJ_VERDICT_PASS;
    case NJ_TCP_CLOSING:
        nj__tcb_enter_time_wait(tcp, t, now);
        return NJ_VERDICT_PASS;
    case NJ_TCP_LAST_ACK:
        nj_count(tcp->cfg.counters, NJ_C_tcp_closed);
        nj__tcb_end(tcp, t);
        return NJ_VERDICT_GONE;
    case NJ_TCP_CLOSED:
    case NJ_TCP_SYN_SENT:
    case NJ_TCP_SYN_RECEIVED:
    case NJ_TCP_ESTABLISHED:
    case NJ_TCP_FIN_WAIT_2:
    case NJ_TCP_CLOSE_WAIT:
    case NJ_TCP_TIME_WAIT:
        return NJ_VERDICT_PASS;
    }
    NJ_UNREACHABLE("state");
}

/* Data sent at a closed window may have been dropped by the peer: retransmit it, without a
 * congestion response. At most once per RTO, however often the peer closes its window. */
static void window_opened(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    struct nj_xfer *x = t->x;

    x->n_backoffs = 0;
    x->rexmit_at = t->snd_una != t->snd_nxt ? now + x->rto : NJ_NEVER;
    if (x->reopened_at && now - x->reopened_at < x->rto)
        return;
    x->reopened_at = now;
    nj__scoreboard_lose_until(tcp, t, t->snd_nxt);
}

/* RFC 9293 3.10.7.4 fifth, RFC 5961 5.2: is the ACK field acceptable? A segment that fails changes
 * no state. */
static enum nj_tcp_verdict step5_check_ack(const struct nj_tcb *t, struct nj_tcp_arrival *a)
{
    const struct nj_seg *seg = &a->seg;
    bool beyond = nj_seq_lt(t->snd_nxt, seg->ack);

    if (!(seg->flags & NJ_TCP_ACK))
        return nj__tcp_note_why(a, NJ_VERDICT_DROP, NJ_C_drop_tcp_flags);
    if (t->state == NJ_TCP_SYN_RECEIVED && (beyond || nj_seq_le(seg->ack, t->snd_una)))
        return nj__tcp_note_why(a, NJ_VERDICT_DROP_RST, NJ_C_drop_tcp_ack);
    if (beyond || nj_seq_lt(seg->ack, t->ack_min))
        return nj__tcp_note_why(a, NJ_VERDICT_DROP_CHALLENGE, NJ_C_drop_tcp_ack);
    return NJ_VERDICT_PASS;
}

/* RFC 9293 3.10.7.4 fifth: process an acceptable ACK field. */
static enum nj_tcp_verdict step5_process_ack(struct nj_tcp *tcp, struct nj_tcb *t,
                                             const struct nj_tcp_arrival *a, nj_ns now)
{
    const struct nj_seg *seg = &a->seg;

    if (t->state == NJ_TCP_SYN_RECEIVED)
        complete_handshake(tcp, t, seg, now);
    bool advances = nj_seq_lt(t->snd_una, seg->ack);
    bool fin = process_ack(tcp, t, a, now);
    if (nj_seq_le(t->snd_una, seg->ack)) {
        bool was_shut = t->snd_wnd == 0;
        update_window(t, seg, advances);
        if ((was_shut || t->snd_una == t->snd_nxt) && !t->is_orphan)
            t->x->progress_at = now; /* a peer that answers probes is alive (RFC 9293 3.8.6.1) */
        if (was_shut && t->snd_wnd > 0)
            window_opened(tcp, t, now);
    }
    nj__tcb_note_output(tcp, t);
    return fin ? fin_acked(tcp, t, now) : NJ_VERDICT_PASS;
}

/* Congestion marks of received segments with text (RFC 3168 6.1.3). */
static void process_ecn(struct nj_tcb *t, const struct nj_seg *seg)
{
    bool was = t->x->ce_seen;

    if (!t->ecn_on)
        return;
    if (seg->flags & NJ_TCP_CWR)
        t->x->ce_seen = false;
    if (seg->ecn == NJ_ECN_CE) /* after CWR: a mark on the same segment is new */
        t->x->ce_seen = true;
    if (t->x->ce_seen != was)
        t->ack_now = true; /* report the change at once */
}

/* RFC 9293 3.10.7.4 seventh: the segment text. It is delivered at once, with or without PSH. */
static enum nj_tcp_verdict step7_payload(struct nj_tcp *tcp, struct nj_tcb *t,
                                         struct nj_tcp_arrival *a, nj_ns now)
{
    const struct nj_seg *seg = &a->seg;

    if (seg->payload_bytes == 0)
        return NJ_VERDICT_PASS;
    if (t->fin_received) /* 3.10.7.4, CLOSE-WAIT and later: ignore */
        return NJ_VERDICT_PASS;
    if (t->is_orphan) { /* RFC 9293 3.6.1: data for an orphan */
        nj_count(tcp->cfg.counters, NJ_C_tcp_aborted);
        nj__tcp_send_rst_for(tcp, &t->flow, seg, now);
        nj__tcb_end(tcp, t);
        return NJ_VERDICT_GONE;
    }
    process_ecn(t, seg);
    if (t->x->reasm || seg->seq != t->rcv_nxt)
        nj__sack_note_block(t, seg->seq, seg->seq + seg->payload_bytes);
    if (seg->seq != t->rcv_nxt) {
        nj_count(tcp->cfg.counters, NJ_C_tcp_out_of_order);
        if (!nj__reasm_insert(tcp, t, a->m, seg))
            return nj__tcp_note_why(a, NJ_VERDICT_DROP_ACK, NJ_C_drop_tcp_reassembly);
        a->m = NULL;
        nj__tcp_send_ack(tcp, t, now); /* RFC 5681 4.2: an immediate duplicate ACK */
        nj_tcp_note_ready(tcp, t, 0);  /* the user accounts for what is held */
        return NJ_VERDICT_PASS;
    }
    /* In-order data is always accepted when nothing is held, or in exchange for out-of-order data.
     * Otherwise a full queue could never drain. */
    if (t->x->rcvq.n_mbufs > 0 && !nj__rcv_merge_for_room(tcp, t, seg->payload_bytes) &&
        !nj__reasm_drop_last(tcp, t))
        return nj__tcp_note_why(a, NJ_VERDICT_DROP_ACK, NJ_C_drop_tcp_reassembly);
    bool filled_hole = t->x->reasm != NULL;
    nj__rcvq_append(tcp, t, a->m, seg->payload_off, seg->payload_bytes);
    a->m = NULL;
    t->rcv_nxt += seg->payload_bytes;
    nj__reasm_move_ready(tcp, t);
    nj__ack_schedule(t, seg, filled_hole, now);
    nj__tcb_note_output(tcp, t);
    nj_tcp_note_ready(tcp, t, NJ_TCP_EV_READABLE);
    return NJ_VERDICT_PASS;
}

/* RFC 9293 3.10.7.4 eighth: FIN, once everything before it has arrived. */
static enum nj_tcp_verdict step8_fin(struct nj_tcp *tcp, struct nj_tcb *t, struct nj_tcp_arrival *a,
                                     nj_ns now)
{
    uint32_t fin_seq = a->seg.seq + a->seg.payload_bytes;
    if ((a->seg.flags & NJ_TCP_FIN) && !t->fin_seen &&
        nj_seq_le(nj__rcv_highest_end_seq(t), fin_seq)) {
        t->fin_seen = true; /* a FIN before bytes already received is ignored */
        t->x->fin_seq = fin_seq;
    }
    if (!t->fin_seen || t->fin_received || t->rcv_nxt != t->x->fin_seq) {
        /* A FIN alone, out of order or after the peer's FIN: an immediate ACK, as for text (RFC
         * 5681 4.2). Step 7 has sent the ACK of a FIN with text. */
        if ((a->seg.flags & NJ_TCP_FIN) && a->seg.payload_bytes == 0)
            nj__tcp_send_ack(tcp, t, now);
        return NJ_VERDICT_PASS;
    }
    t->fin_received = true;
    t->rcv_nxt++;
    t->ack_now = true;
    nj__tcb_note_output(tcp, t);
    if (!t->is_orphan)
        nj_tcp_note_ready(tcp, t, NJ_TCP_EV_PEER_FIN);

    switch ((enum nj_tcp_state)t->state) {
    case NJ_TCP_ESTABLISHED:
        nj__tcb_set_state(tcp, t, NJ_TCP_CLOSE_WAIT);
        break;
    case NJ_TCP_FIN_WAIT_1: /* our FIN is not acknowledged yet, see step 5 */
        nj__tcb_set_state(tcp, t, NJ_TCP_CLOSING);
        break;
    case NJ_TCP_FIN_WAIT_2:
        nj__tcb_enter_time_wait(tcp, t, now);
        break;
    case NJ_TCP_CLOSED:
    case NJ_TCP_SYN_SENT:
    case NJ_TCP_SYN_RECEIVED:
    case NJ_TCP_CLOSE_WAIT:
    case NJ_TCP_CLOSING:
    case NJ_TCP_LAST_ACK:
    case NJ_TCP_TIME_WAIT:
        break;
    }
    return NJ_VERDICT_PASS;
}

enum nj_tcp_verdict nj__tcp_input_synchronized(struct nj_tcp *tcp, struct nj_tcb *t,
                                               struct nj_tcp_arrival *a, nj_ns now)
{
    enum nj_tcp_verdict v;

    if ((v = step1_sequence(tcp, t, a, now)) != NJ_VERDICT_PASS)
        return v;
    if ((v = step2_reset(tcp, t, a)) != NJ_VERDICT_PASS)
        return v;
    if ((v = step4_syn(a)) != NJ_VERDICT_PASS)
        return v;
    if ((v = step5_check_ack(t, a)) != NJ_VERDICT_PASS)
        return v;
    update_ts_recent(tcp, t, &a->seg, now);
    note_peer_alive(t, now);
    a->had_text = nj_seg_len(&a->seg) > 0;
    trim(t, &a->seg);
    if ((v = step5_process_ack(tcp, t, a, now)) != NJ_VERDICT_PASS)
        return v;
    if ((v = step7_payload(tcp, t, a, now)) != NJ_VERDICT_PASS)
        return v;
    return step8_fin(tcp, t, a, now);
}
