/* SPDX-License-Identifier: BSD-3-Clause */
/* Slow start (RFC 5681 3.1) with appropriate byte counting (RFC 3465). The first slow start ends by
 * HyStart++ (RFC 9406) or by a long ACK train. */
#include "tcp/cc/hystart.h"
#include "tcp/seq.h"

#define UNKNOWN_US UINT32_MAX

static uint32_t us_of(nj_ns now)
{
    return (uint32_t)(now / NJ_US);
}

static void begin_round(struct nj_hystart *h, const struct nj_tcb *t, nj_ns now)
{
    h->round_end = t->snd_nxt;
    h->ack_at_us = us_of(now);
    h->busy_us = 0;
    h->last_min_us = h->cur_min_us;
    h->cur_min_us = UNKNOWN_US;
    h->n_samples = 0;
}

static void begin_slow_start(struct nj_hystart *h, const struct nj_tcb *t, nj_ns now)
{
    memset(h, 0, sizeof *h);
    h->cur_min_us = UNKNOWN_US;
    h->running = true;
    begin_round(h, t, now);
}

/* RFC 9406 4.2: is the delay of this round higher than that of the last by more than jitter? */
static bool delay_grew(const struct nj_hystart *h)
{
    if (h->cur_min_us == UNKNOWN_US || h->last_min_us == UNKNOWN_US)
        return false;
    uint32_t thresh = h->last_min_us / NJ_HYSTART_MIN_RTT_DIVISOR;
    if (thresh > NJ_HYSTART_MAX_RTT_THRESH_US)
        thresh = NJ_HYSTART_MAX_RTT_THRESH_US;
    if (thresh < NJ_HYSTART_MIN_RTT_THRESH_US)
        thresh = NJ_HYSTART_MIN_RTT_THRESH_US;
    return h->cur_min_us >= h->last_min_us && h->cur_min_us - h->last_min_us >= thresh;
}

static void enter_css(struct nj_hystart *h, uint32_t base_us)
{
    h->in_css = true;
    h->css_rounds = 0;
    h->css_base_us = base_us;
}

/* Enter conservative slow start if ACK trains cover more than half a round trip: the path has no
 * room for twice the window. This is not jitter, so it is not reverted (base 0). */
static void follow_ack_trains(struct nj_hystart *h, const struct nj_tcb *t, nj_ns now)
{
    uint32_t gap = us_of(now) - h->ack_at_us;
    uint32_t most =
        nj_min_u32(NJ_HYSTART_ACK_TRAIN_GAP_US, t->min_rtt_us / NJ_HYSTART_TRAIN_GAP_DIVISOR);

    h->ack_at_us = us_of(now);
    if (h->in_css || gap > most)
        return;
    h->busy_us += gap;
    if (h->busy_us > t->min_rtt_us / 2 && t->min_rtt_us > 0 &&
        t->cwnd >= NJ_HYSTART_TRAIN_SEGS_MIN * t->snd_mss)
        enter_css(h, 0);
}

static void take_sample(struct nj_hystart *h, uint32_t rtt_us)
{
    if (rtt_us > 0) {
        h->cur_min_us = nj_min_u32(h->cur_min_us, rtt_us);
        h->n_samples += h->n_samples < NJ_HYSTART_N_RTT_SAMPLE;
    }
    if (h->n_samples < NJ_HYSTART_N_RTT_SAMPLE)
        return;
    if (!h->in_css && delay_grew(h)) {
        enter_css(h, h->cur_min_us);
    } else if (h->in_css && h->cur_min_us < h->css_base_us) {
        h->in_css = false; /* it was jitter: back to slow start */
    }
}

/* True when slow start has to end. The round in which conservative slow start began counts. */
static bool round_over(struct nj_hystart *h, const struct nj_tcb *t, nj_ns now)
{
    if (nj_seq_lt(t->snd_una, h->round_end))
        return false;
    h->css_rounds += h->in_css;
    begin_round(h, t, now);
    return h->in_css && h->css_rounds >= NJ_HYSTART_CSS_ROUNDS;
}

void nj__slow_start(struct nj_tcb *t, struct nj_hystart *h, const struct nj_cc_ack *ack,
                    bool after_rto)
{
    bool first = t->ssthresh >= NJ_CC_SSTHRESH_NONE;
    uint32_t l = first ? NJ_CC_L_FIRST : after_rto ? NJ_CC_L_AFTER_RTO : NJ_CC_L_LATER;
    uint32_t n = nj_min_u32(ack->n_bytes, l * t->snd_mss);

    if (!ack->limited) {
        h->running = false; /* an unused window is no evidence, neither way (RFC 7661) */
        return;
    }
    if (!first) {
        nj_cc_add_to_cwnd(t, nj_min_u32(n, t->ssthresh - t->cwnd));
        return;
    }
    if (!h->running)
        begin_slow_start(h, t, ack->now);
    nj_cc_add_to_cwnd(t, h->in_css ? n / NJ_HYSTART_CSS_GROWTH_DIVISOR : n);
    follow_ack_trains(h, t, ack->now);
    take_sample(h, ack->rtt_us);
    if (round_over(h, t, ack->now))
        t->ssthresh = t->cwnd;
}
