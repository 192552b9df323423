/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RACK-TLP (RFC 8985), from 6.2 step 4 on. A run is lost when data sent later was delivered and the
 * run was sent more than a round trip and the reordering window ago. For the tail of a flight,
 * which has no later data, a probe is sent before the time-out.
 */
#include "tcp/loss/recovery_state.h"
#include "tcp/seq.h"
#include "tcp/tcp_internal.h"

#define REO_PERSIST    16u /* RFC 8985 6.2 step 4: recoveries until the window is small again */
#define REO_MULT_MAX   255u
#define DUPTHRESH_SEGS 3u

/* Step 4: RACK_update_reo_wnd. */
static nj_ns reordering_window(const struct nj_tcb *t)
{
    const struct nj_xfer *x = t->x;

    if (!x->reordering && (x->ca >= NJ_CA_RECOVERY || x->n_sacked >= DUPTHRESH_SEGS * t->snd_mss))
        return 0;
    nj_ns window = (nj_ns)x->reo_mult * t->min_rtt_us * NJ_US / 4;
    nj_ns srtt = (nj_ns)t->srtt_us * NJ_US;
    return window < srtt ? window : srtt;
}

/* Was data sent after this run delivered? */
static bool overtaken(const struct nj_xfer *x, const struct nj_sent_run *r)
{
    return nj_rack_sent_after(x->rack_at, x->rack_end, r->at, r->end);
}

/* The latest sent run in flight that RACK's segment has overtaken. At least one exists. RACK's
 * segment only moves forward, so each run is passed once per transmission. */
static const struct nj_sent_run *last_overtaken(struct nj_xfer *x)
{
    struct nj_list *next;

    while ((next = x->overtaken->next) != &x->by_send_time &&
           overtaken(x, nj_sent_run_of_node(next)))
        x->overtaken = next;
    return nj_sent_run_of_node(x->overtaken);
}

/* Step 5. Runs are ordered by send time, so the walk ends at the first run that is too young. */
bool nj__rack_mark_lost(struct nj_tcb *t, nj_ns now)
{
    struct nj_xfer *x = t->x;
    bool lost = false;

    x->reo_at = NJ_NEVER;
    if (x->rack_at == 0 || (x->ca == NJ_CA_OPEN && x->n_sacked == 0))
        return false; /* no run is overtaken */
    nj_ns wait = x->rack_rtt + reordering_window(t);
    struct nj_sent_run *r;
    while ((r = nj_sent_run_oldest(x)) && overtaken(x, r)) {
        if (r->at + wait > now) {
            x->reo_at = last_overtaken(x)->at + wait;
            break;
        }
        lost |= nj__scoreboard_mark_lost(t, r);
    }
    return lost;
}

/* Runs sent less than a round trip ago are not marked, since they may still be delivered. Without
 * SACK their delivery is unknown, so all are marked. */
void nj__rack_timed_out(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    struct nj_xfer *x = t->x;
    nj_ns wait = x->rack_rtt + reordering_window(t);

    if (!t->sack_on) {
        nj__scoreboard_lose_until(tcp, t, t->snd_nxt);
        return;
    }
    nj__scoreboard_lose_until(tcp, t, t->snd_una + t->snd_mss);
    struct nj_sent_run *r;
    while ((r = nj_sent_run_oldest(x)) && r->at + wait <= now)
        nj__scoreboard_mark_lost(t, r);
}

void nj__rack_widen_window(struct nj_tcb *t)
{
    struct nj_xfer *x = t->x;

    if (x->dsack_round_on && nj_seq_lt(t->snd_una, x->dsack_round))
        return; /* once per round trip */
    x->dsack_round_on = true;
    x->dsack_round = t->snd_nxt;
    if (x->reo_mult < REO_MULT_MAX)
        x->reo_mult++;
    x->reo_persist = REO_PERSIST;
}

void nj__rack_recovery_ended(struct nj_xfer *x)
{
    if (x->reo_persist > 0 && --x->reo_persist == 0)
        x->reo_mult = 1;
}

/* The PTO (ADR 6). The ACK of a single segment may be delayed, counted from its arrival: ACKs of
 * earlier segments do not restart the time. Of two or more, the second is acknowledged at once (RFC
 * 5681 4.2), so only the variance of the round trip is added. Never later than in RFC 8985 7.2. */
static nj_ns probe_at(const struct nj_tcb *t, nj_ns now)
{
    if (t->srtt_us == 0)
        return now + NJ_TCP_RTO_INITIAL;
    nj_ns srtt = nj__srtt(t), var = 4 * (nj_ns)t->rttvar_us * NJ_US, half = srtt / 2;
    nj_ns least = srtt / 8 + NJ_TCP_TLP_SLACK;

    if (t->x->n_flight <= t->snd_mss) {
        nj_ns late =
            nj_sent_run_last(t->x)->at + srtt + NJ_TCP_TLP_ACK_DELAY + nj_min_u64(var, srtt);
        return late > now + NJ_TCP_TLP_SLACK ? late : now + NJ_TCP_TLP_SLACK;
    }
    nj_ns spread = nj_min_u64(var, half);
    spread = spread > least ? spread : least;
    return now + srtt + nj_min_u64(spread, srtt);
}

void nj__tlp_schedule(struct nj_tcb *t, nj_ns now)
{
    struct nj_xfer *x = t->x;

    x->pto_at = NJ_NEVER;
    if (!t->sack_on || x->ca != NJ_CA_OPEN || x->tlp_out || x->n_flight == 0 || x->n_sacked > 0 ||
        x->n_lost > 0 || t->snd_wnd == 0)
        return;
    nj_ns at = probe_at(t, now);
    if (at < x->rexmit_at)
        x->pto_at = at;
}

bool nj__tlp_acked(struct nj_tcb *t, const struct nj_seg *seg, const struct nj_ack_result *news)
{
    struct nj_xfer *x = t->x;

    if (!x->tlp_out || nj_seq_lt(seg->ack, x->tlp_end))
        return false;
    if (!x->tlp_was_rexmit || news->dsack) { /* new data, or D-SACK: both copies arrived */
        x->tlp_out = false;
        return false;
    }
    if (nj_seq_lt(x->tlp_end, seg->ack)) {
        x->tlp_out = false;
        return true;
    }
    if (news->repeats && seg->opts.n_sack == 0)
        x->tlp_out = false; /* a duplicate ACK: both copies arrived */
    return false;
}
