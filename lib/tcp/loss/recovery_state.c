/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The states of loss recovery (enum nj_ca): RFC 5681, RFC 9937 (PRR), RFC 5682 (F-RTO), RFC 4015.
 *
 *              something is lost                     time-out
 *     OPEN ------------------------> RECOVERY ----------------------> LOSS
 *      |  ^ \___ECN-Echo___> CWR ___/   |                              |
 *      |  `---- high_seq is acknowledged, or it was spurious ----------'
 *
 * RECOVERY and CWR reduce cwnd in proportion to deliveries (PRR, RFC 9937). LOSS is slow start from
 * one segment. Without SACK, RFC 6582 applies in the same states: three duplicate ACKs replace
 * RACK, and a partial ACK indicates the next hole.
 */
#include "tcp/loss/recovery_state.h"

#include "tcp/cc/congestion.h"
#include "tcp/seq.h"
#include "tcp/tcp_internal.h"
#include "telem/counters_tcp.h"

#define DUPTHRESH 3u

/* Without SACK each duplicate ACK counts as a segment that has left the network; before recovery at
 * most two count (RFC 3042 2). */
uint32_t nj__pipe(const struct nj_tcb *t)
{
    const struct nj_xfer *x = t->x;
    uint32_t most = x->ca >= NJ_CA_RECOVERY ? UINT8_MAX : DUPTHRESH - 1;
    uint32_t n = t->sack_on ? 0 : x->dupacks < most ? x->dupacks : most;
    uint32_t gone = n * t->snd_mss;
    return gone < x->n_flight ? x->n_flight - gone : 0;
}

/* --- undo of spurious recovery: RFC 4015, RFC 2883, RFC 5682 --------------------------------- */

static void save_for_undo(struct nj_tcb *t)
{
    struct nj_xfer *x = t->x;

    if (x->ca >= NJ_CA_RECOVERY)
        return; /* one episode: keep the state before its first loss */
    x->undo_cwnd = t->cwnd;
    x->undo_ssthresh = t->ssthresh;
    x->undo_una = t->snd_una;
    x->undo_bytes = 0;
    x->undo_ts = 0;
}

/* Is it proven that the retransmissions were spurious? */
static bool is_spurious(const struct nj_tcb *t, const struct nj_seg *seg,
                        const struct nj_ack_result *news)
{
    const struct nj_xfer *x = t->x;

    if (x->undo_cwnd == 0 || x->undo_ts == 0)
        return false;
    if (news->dsack && x->undo_bytes <= 0) /* RFC 2883 5: all retransmissions were duplicates */
        return true;
    if (x->ca < NJ_CA_RECOVERY)
        return false;
    if (t->ts_on && news->n_acked > 0 && seg->opts.ts_ecr != 0 &&
        nj_seq_lt(seg->opts.ts_ecr, x->undo_ts)) /* RFC 3522: the original was acknowledged */
        return true;
    if (x->ca != NJ_CA_LOSS || x->frto == 0)
        return false;
    /* RFC 5682 3 and 2.1 step 3b: originals are delivered although they were marked as lost. */
    return t->sack_on ? news->lost_first_copy : x->frto == 2 && news->n_acked > 0;
}

static void undo_reduction(struct nj_tcp *tcp, struct nj_tcb *t)
{
    struct nj_xfer *x = t->x;

    nj_count(tcp->cfg.counters, NJ_C_tcp_undo);
    if (x->ca != NJ_CA_OPEN || t->cwnd < x->undo_cwnd)
        t->cwnd = x->undo_cwnd; /* in OPEN cwnd may have grown beyond it */
    t->ssthresh = x->undo_ssthresh;
    tcp->cfg.cc->undone(t);
    nj__scoreboard_unmark_all_lost(x);
    x->undo_cwnd = 0;
    x->ca = NJ_CA_OPEN;
    x->frto = 0;
    x->n_backoffs = 0;
    x->dupacks = 0;
    x->send_one_anyway = false;
}

void nj__recovery_dsack(struct nj_tcb *t, const struct nj_sack_block *b, struct nj_ack_result *news)
{
    struct nj_xfer *x = t->x;
    uint32_t n = b->end - b->first;

    if (!nj_seq_lt(b->first, b->end) || nj_seq_lt(t->snd_nxt, b->end) || n > t->snd_wnd_max)
        return;
    news->dsack = true;
    nj__rack_widen_window(t);
    /* Before the first retransmission the duplicate cannot be a retransmission, so it does not
     * count. */
    if (x->undo_cwnd && x->undo_ts != 0 && nj_seq_le(x->undo_una, b->first))
        x->undo_bytes -= (int32_t)n;
}

/* --- start and end of recovery --------------------------------------------------------------- */

/* `news`: the effect of the ACK that caused it, or zeros. */
static void begin_recovery(struct nj_tcp *tcp, struct nj_tcb *t, enum nj_ca ca,
                           const struct nj_ack_result *news, nj_ns now)
{
    struct nj_xfer *x = t->x;
    bool slowing = x->ca == NJ_CA_CWR; /* one reduction per round trip is enough */

    if (!slowing) {
        save_for_undo(t);
        tcp->cfg.cc->lost(t, now);
        x->prr_delivered = x->prr_out = 0;
        /* RFC 9937 6.1, RecoverFS: not delivered before this ACK. */
        x->prr_flight = t->snd_nxt - t->snd_una - x->n_sacked + news->n_delivered;
    }
    if (ca == NJ_CA_RECOVERY) {
        nj_count(tcp->cfg.counters, NJ_C_tcp_fast_retransmit);
        x->send_one_anyway = true;
    } else {
        x->undo_cwnd = 0;
    }
    x->high_seq = t->snd_nxt;
    x->ca = (uint8_t)ca;
    x->tlp_out = false;
    x->pto_at = NJ_NEVER;
    x->cwr_due = t->ecn_on;
}

static void end_recovery(struct nj_tcb *t)
{
    struct nj_xfer *x = t->x;

    if (x->ca != NJ_CA_LOSS)
        t->cwnd = t->ssthresh;
    if (x->ca != NJ_CA_CWR)
        nj__rack_recovery_ended(x);
    x->ca = NJ_CA_OPEN;
    x->dupacks = 0;
    x->frto = 0;
    x->send_one_anyway = false;
}

/* RFC 9937 6.2 (PRR). While pipe exceeds ssthresh, send in proportion to deliveries; below it, as
 * much as is delivered (conservative reduction bound). `safe`: snd_una advanced and no new loss was
 * found; then one more segment, so that pipe grows to ssthresh as in slow start. */
static void reduce_cwnd(struct nj_tcb *t, uint32_t n_delivered, bool safe)
{
    struct nj_xfer *x = t->x;
    uint32_t pipe = nj__pipe(t), n;

    x->prr_delivered += n_delivered;
    if (pipe > t->ssthresh) {
        uint64_t due = ((uint64_t)x->prr_delivered * t->ssthresh + x->prr_flight - 1) /
                       (x->prr_flight ? x->prr_flight : 1);
        n = due > x->prr_out ? (uint32_t)(due - x->prr_out) : 0;
    } else {
        uint32_t unsent = x->prr_delivered > x->prr_out ? x->prr_delivered - x->prr_out : 0;
        n = (unsent > n_delivered ? unsent : n_delivered) + (safe ? t->snd_mss : 0);
        if (n > t->ssthresh - pipe)
            n = t->ssthresh - pipe;
    }
    t->cwnd = pipe + n;
    if (t->cwnd < t->snd_mss)
        t->cwnd = t->snd_mss;
}

/* RFC 5682: if the first ACK after a time-out advances snd_una, send two new segments instead of
 * retransmissions. The next ACK shows whether the originals were lost. */
static void frto_step(struct nj_tcb *t, const struct nj_ack_result *news)
{
    struct nj_xfer *x = t->x;

    if (x->frto == 1 && news->n_acked > 0 && nj__tcp_has_new_data_in_window(t)) {
        x->frto = 2;
        t->cwnd = nj__pipe(t) + 2u * t->snd_mss;
    } else if (x->frto == 2 || news->n_acked > 0) {
        x->frto = 0;
        if (t->cwnd > 2u * t->snd_mss)
            t->cwnd = 2u * t->snd_mss;
    }
}

/* RFC 5681 3.1: grow cwnd by cumulatively acknowledged bytes. SACKed bytes only let new segments
 * out (RFC 3042 2); they count when the hole before them is filled. */
static void grow_cwnd(struct nj_tcp *tcp, struct nj_tcb *t, const struct nj_ack_result *news,
                      uint32_t una_before, bool after_rto, nj_ns now)
{
    struct nj_xfer *x = t->x;
    bool limited = x->limited && nj_seq_lt(una_before, x->limited_seq);
    struct nj_cc_ack ack = {
        .now = now,
        .n_bytes = news->n_acked,
        .rtt_us = news->newest_once_at ? (uint32_t)((now - news->newest_once_at) / NJ_US) : 0,
        .limited = limited || after_rto,
    };

    if (after_rto && ack.n_bytes > t->snd_mss)
        ack.n_bytes = t->snd_mss; /* RFC 3465 2.3: L = 1 after a time-out */
    if (ack.n_bytes > 0)
        tcp->cfg.cc->acked(t, &ack);
    if (x->limited && nj_seq_le(x->limited_seq, t->snd_una))
        x->limited = false;
}

/* Without SACK (RFC 5681 3.2, RFC 6582 3.2): the third duplicate ACK, then each partial ACK, marks
 * the first segment as lost. */
static bool detect_without_sack(struct nj_tcp *tcp, struct nj_tcb *t,
                                const struct nj_ack_result *news)
{
    struct nj_xfer *x = t->x;
    bool partial = x->ca == NJ_CA_RECOVERY && news->n_acked > 0;
    /* RFC 6582 3.2 step 1: not for data of the last recovery. CWR does not retransmit. */
    bool old = x->ca == NJ_CA_OPEN && !nj_seq_lt(x->high_seq, t->snd_una);
    bool third = x->ca < NJ_CA_RECOVERY && x->dupacks >= DUPTHRESH && !old;

    if (news->n_acked > 0) { /* subtract the duplicates now acknowledged */
        uint32_t segs = (news->n_acked + t->snd_mss - 1) / t->snd_mss - 1;
        x->dupacks =
            x->ca >= NJ_CA_RECOVERY && x->dupacks > segs ? (uint8_t)(x->dupacks - segs) : 0;
    }
    if ((!partial && !third) || x->n_flight == 0)
        return false;
    if (partial && nj_seq_le(x->high_seq, t->snd_una))
        return false;
    x->send_one_anyway = true; /* RFC 6582 3.2 step 3: regardless of cwnd */
    nj__scoreboard_lose_until(tcp, t, t->snd_una + t->snd_mss);
    return x->n_lost > 0;
}

void nj__recovery_update_on_ack(struct nj_tcp *tcp, struct nj_tcb *t, const struct nj_seg *seg,
                                const struct nj_ack_result *news, uint32_t una_before, nj_ns now)
{
    struct nj_xfer *x = t->x;
    uint32_t n_guessed = t->sack_on ? 0 : x->dupacks * t->snd_mss;

    if (nj__tlp_acked(t, seg, news) && x->ca == NJ_CA_OPEN) {
        begin_recovery(tcp, t, NJ_CA_CWR, news, now);
        x->high_seq = t->snd_una; /* repaired already: only reduce once (RFC 8985 7.4.2) */
    }
    if (is_spurious(t, seg, news))
        undo_reduction(tcp, t);
    if (x->undo_cwnd && x->ca == NJ_CA_OPEN &&
        t->snd_una - x->high_seq > x->undo_cwnd) /* too long ago to undo */
        x->undo_cwnd = 0;

    bool lost = t->sack_on ? nj__rack_mark_lost(t, now) : detect_without_sack(tcp, t, news);
    bool loss = x->ca == NJ_CA_LOSS,
         ends = x->ca >= NJ_CA_CWR && nj_seq_le(x->high_seq, t->snd_una);
    if (ends)
        end_recovery(t);
    if (lost && x->ca < NJ_CA_RECOVERY)
        begin_recovery(tcp, t, NJ_CA_RECOVERY, news, now);
    else if ((seg->flags & NJ_TCP_ECE) && t->ecn_on && x->ca == NJ_CA_OPEN &&
             nj_seq_lt(x->high_seq, t->snd_una))
        begin_recovery(tcp, t, NJ_CA_CWR, news, now);

    switch ((enum nj_ca)x->ca) {
    case NJ_CA_OPEN:
        if (!ends || loss)
            grow_cwnd(tcp, t, news, una_before, loss, now);
        if (nj_seq_lt(x->high_seq, t->snd_una) && x->undo_cwnd == 0)
            x->high_seq = t->snd_una - 1; /* stays less than 2^31 behind */
        break;
    case NJ_CA_CWR:
    case NJ_CA_RECOVERY:
        /* RFC 9937 6.2: without SACK the duplicates were counted as deliveries already. */
        reduce_cwnd(t, news->n_delivered > n_guessed ? news->n_delivered - n_guessed : 0,
                    news->n_acked > 0 && !lost);
        break;
    case NJ_CA_LOSS:
        if (x->frto)
            frto_step(t, news);
        if (x->frto != 2)
            grow_cwnd(tcp, t, news, una_before, true, now);
        break;
    }
}

void nj__recovery_dupack(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    struct nj_xfer *x = t->x;
    const struct nj_ack_result none = {0};

    if (x->dupacks < UINT8_MAX)
        x->dupacks++;
    if (x->frto)
        frto_step(t, &none);
    if (x->ca < NJ_CA_RECOVERY && detect_without_sack(tcp, t, &none))
        begin_recovery(tcp, t, NJ_CA_RECOVERY, &none, now);
    /* RFC 9937 6.2: endless duplicate ACKs must not release more than was in flight. */
    if (x->ca == NJ_CA_RECOVERY || x->ca == NJ_CA_CWR)
        reduce_cwnd(t, x->prr_delivered < x->prr_flight ? t->snd_mss : 0, false);
}

void nj__recovery_reo_timeout(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    if (nj__rack_mark_lost(t, now) && t->x->ca < NJ_CA_RECOVERY) {
        begin_recovery(tcp, t, NJ_CA_RECOVERY, &(struct nj_ack_result){0}, now);
        reduce_cwnd(t, 0, false);
    }
}

void nj__recovery_timed_out(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    struct nj_xfer *x = t->x;
    const struct nj_sent_run *head = nj_sent_run_first(x);
    bool first = x->n_backoffs == 0;

    save_for_undo(t);
    if (x->ca == NJ_CA_OPEN || (x->ca == NJ_CA_LOSS && first))
        tcp->cfg.cc->timed_out(t, now); /* else cwnd was reduced for this loss already */
    x->frto = first && x->ca < NJ_CA_RECOVERY && head && !head->again;
    if (head && head->fate == NJ_RUN_SACKED) {
        nj__scoreboard_lose_sacked(t); /* the peer has reneged */
        x->undo_cwnd = 0;              /* do not restore a cwnd that grew with these SACKs */
    }
    nj__rack_timed_out(tcp, t, now);
    t->cwnd = t->snd_mss; /* RFC 5681 3.1: the loss window */
    x->ca = NJ_CA_LOSS;
    x->high_seq = t->snd_nxt;
    x->dupacks = 0;
    x->tlp_out = false;
    x->pto_at = x->reo_at = NJ_NEVER;
    x->send_one_anyway = true;
    x->cwr_due = t->ecn_on;
}

void nj__recovery_count_sent(struct nj_tcb *t, uint32_t n_bytes, bool again, nj_ns now)
{
    struct nj_xfer *x = t->x;

    if (x->ca == NJ_CA_CWR || x->ca == NJ_CA_RECOVERY)
        x->prr_out += n_bytes;
    if (!again || x->undo_cwnd == 0)
        return;
    x->undo_bytes += (int32_t)n_bytes;
    if (x->undo_ts == 0) {
        x->undo_ts = nj__tcp_ts_now(t, now);
        x->undo_ts += x->undo_ts == 0;
    }
}
