/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CUBIC congestion control (RFC 9438), in integers. Windows are in bytes (the RFC's segments times
 * snd_mss), the curve's time in milliseconds.
 *
 * An epoch is a period of congestion avoidance. Its time t is the sum of the intervals between ACKs
 * while the sender is limited by cwnd, so that application-limited time does not count (4.2, 5.8).
 * t stops after 71 minutes, when the curve is beyond any possible window.
 */
#include "tcp/cc/cubic_math.h"
#include "tcp/cc/hystart.h"
#include "tcp/tcp_internal.h"

/* beta = 0.7, and (1 + beta) / 2 of fast convergence */
#define BETA(w)     ((uint32_t)((uint64_t)(w)*7 / 10))
#define CONVERGE(w) ((uint32_t)((uint64_t)(w)*17 / 20))

enum stage { STAGE_NONE, STAGE_SLOW_START, STAGE_EPOCH };

struct epoch {
    nj_ns ack_at;        /* of the last ACK that found us limited; 0: none yet */
    uint32_t elapsed_us; /* t */
    uint32_t origin;     /* the plateau: W_max */
    uint32_t k_ms;
    uint32_t w_est, w_est_frac; /* the Reno-friendly window, and its fraction / 2^32 */
    uint32_t carry;             /* remainder of the last division for the growth of cwnd */
};

struct cubic {
    union { /* by stage */
        struct nj_hystart hystart;
        struct epoch epoch;
    };
    uint32_t cwnd_prior;

    /* As it was before the last congestion event (4.9.2). */
    uint32_t undo_w_max, undo_cwnd_prior;
    uint32_t undo_elapsed_us, undo_origin, undo_k_ms, undo_w_est;
    uint8_t undo_stage;
    bool can_undo;

    uint8_t stage;  /* enum stage */
    bool after_rto; /* this slow start follows a time-out */
};
_Static_assert(sizeof(struct cubic) <= NJ_CC_PRIV_BYTES, "room in x->cc");
_Static_assert(sizeof(struct nj_hystart) <= sizeof(struct epoch), "clearing one clears both");

static struct cubic *priv(struct nj_tcb *t)
{
    return (struct cubic *)t->x->cc;
}

/* Bit by bit from bit 21: the cube of 2^22 exceeds 64 bits. */
uint32_t nj__cube_root(uint64_t n)
{
    uint32_t root = 0;

    for (int bit = 21; bit >= 0; bit--) {
        uint64_t r = root | 1u << bit;
        if (r <= 2642245 && r * r * r <= n) /* 2642245^3 < 2^64 < 2642246^3 */
            root = (uint32_t)r;
    }
    return root;
}

/* K = cbrt(d / C) for a distance of `n_bytes`: cbrt(n_bytes / mss / 0.4 * 10^9 ms^3/s^3). With
 * n_bytes <= 2^30 the product stays below 2^62. */
uint32_t nj__cubic_k_ms(uint32_t n_bytes, uint32_t mss)
{
    return nj__cube_root((uint64_t)n_bytes * 2500000000u / mss);
}

/* W_cubic(t) = C (t - K)^3 + W_max, figure 1. Beyond 2^20 ms (17 minutes) on either side the curve
 * exceeds any window: 0.4 * 1048^3 segments are more than 2^28. So the cube stays below 2^60, and
 * the product below 2^58. The first quotient counts in 0.0004 segments. */
uint32_t nj__cubic_window(uint32_t origin, uint32_t k_ms, uint64_t t_ms, uint32_t mss)
{
    uint64_t d = t_ms > k_ms ? t_ms - k_ms : k_ms - t_ms;

    if (d > 1u << 20)
        d = 1u << 20;
    uint64_t n = d * d * d / 1000000 * (2 * mss) / 5000;
    if (t_ms < k_ms)
        return n < origin ? origin - (uint32_t)n : 0;
    return n < NJ_CC_CWND_MAX - nj_min_u32(origin, NJ_CC_CWND_MAX) ? origin + (uint32_t)n
                                                                   : NJ_CC_CWND_MAX;
}

static void enter_stage(struct cubic *c, enum stage stage)
{
    if (c->stage == stage)
        return;
    c->stage = (uint8_t)stage;
    memset(&c->epoch, 0, sizeof c->epoch);
}

/* The first ACK of an epoch. W_max is the current cwnd, and K is 0, if there was no congestion
 * event, if it was a time-out (4.8), or if slow start has passed it. */
static void begin_epoch(struct nj_tcb *t, struct cubic *c, nj_ns now)
{
    struct epoch *e = &c->epoch;

    enter_stage(c, STAGE_EPOCH);
    if (t->w_max == 0)
        t->w_max = t->cwnd;
    e->ack_at = now;
    e->origin = nj_max_u32(t->w_max, t->cwnd);
    e->k_ms = nj__cubic_k_ms(e->origin - t->cwnd, t->snd_mss);
    e->w_est = t->cwnd;
    if (c->cwnd_prior == 0)
        c->cwnd_prior = t->w_max;
    c->after_rto = false;
}

static void advance_time(struct epoch *e, const struct nj_cc_ack *ack)
{
    uint64_t us = e->ack_at ? (ack->now - e->ack_at) / NJ_US : 0;

    if (ack->limited)
        e->elapsed_us = us < UINT32_MAX - e->elapsed_us ? e->elapsed_us + (uint32_t)us : UINT32_MAX;
    /* Keep the fraction of a microsecond, or an ACK every 900 ns would stop the clock. */
    e->ack_at = e->ack_at && ack->limited ? e->ack_at + us * NJ_US : ack->now;
}

/* RFC 9438 4.3: W_est += alpha * segments_acked / cwnd, figure 4: alpha = 3 (1 - beta) / (1 + beta)
 * = 9 / 17 until the window before the reduction is reached, then 1 as Reno. In 2^-32 bytes, of
 * which the product has less than 2^53: n <= cwnd, mss < 2^16. */
static void grow_reno(struct epoch *e, uint32_t n, const struct nj_tcb *t, uint32_t cwnd_prior)
{
    uint64_t inc = ((uint64_t)n << 32) / t->cwnd * t->snd_mss;

    if (e->w_est < cwnd_prior)
        inc = inc * 9 / 17;
    uint64_t sum = ((uint64_t)e->w_est << 32 | e->w_est_frac) + inc;
    e->w_est = nj_min_u32((uint32_t)(sum >> 32), NJ_CC_CWND_MAX);
    e->w_est_frac = (uint32_t)sum;
}

static void avoid_congestion(struct nj_tcb *t, struct cubic *c, const struct nj_cc_ack *ack)
{
    struct epoch *e = &c->epoch;

    if (c->stage != STAGE_EPOCH)
        begin_epoch(t, c, ack->now);
    advance_time(e, ack);
    if (!ack->limited)
        return;

    uint32_t n = nj_min_u32(ack->n_bytes, t->cwnd);
    uint64_t rtt_us = nj__srtt(t) / NJ_US;
    uint32_t w = nj__cubic_window(e->origin, e->k_ms, e->elapsed_us / 1000, t->snd_mss);
    grow_reno(e, n, t, c->cwnd_prior);
    if (w < e->w_est) { /* 4.3: the Reno-friendly region */
        nj_cc_add_to_cwnd(t, nj_max_u32(e->w_est, t->cwnd) - t->cwnd);
        return;
    }
    /* 4.2, 4.4, 4.5: (target - cwnd) / cwnd per segment, so that the target is reached after one
     * round trip. */
    uint32_t target =
        nj__cubic_window(e->origin, e->k_ms, (e->elapsed_us + rtt_us) / 1000, t->snd_mss);
    target = nj_min_u32(nj_max_u32(target, t->cwnd), t->cwnd + t->cwnd / 2);
    uint64_t product = (uint64_t)(target - t->cwnd) * n + e->carry;
    e->carry = (uint32_t)(product % t->cwnd);
    nj_cc_add_to_cwnd(t, (uint32_t)(product / t->cwnd));
}

static void acked(struct nj_tcb *t, const struct nj_cc_ack *ack)
{
    struct cubic *c = priv(t);

    if (t->cwnd < t->ssthresh) {
        enter_stage(c, STAGE_SLOW_START);
        nj__slow_start(t, &c->hystart, ack, c->after_rto);
    } else {
        avoid_congestion(t, c, ack);
    }
}

static void remember(const struct nj_tcb *t, struct cubic *c)
{
    bool epoch = c->stage == STAGE_EPOCH;

    c->undo_w_max = t->w_max;
    c->undo_cwnd_prior = c->cwnd_prior;
    c->undo_elapsed_us = epoch ? c->epoch.elapsed_us : 0;
    c->undo_origin = epoch ? c->epoch.origin : 0;
    c->undo_k_ms = epoch ? c->epoch.k_ms : 0;
    c->undo_w_est = epoch ? c->epoch.w_est : 0;
    c->undo_stage = c->stage;
    c->can_undo = true;
}

/* RFC 9438 4.6 and 4.7 (fast convergence): a flow that loses below its last W_max releases
 * bandwidth. */
static void lost(struct nj_tcb *t, nj_ns now)
{
    struct cubic *c = priv(t);

    (void)now;
    remember(t, c);
    t->w_max = t->cwnd < t->w_max ? CONVERGE(t->cwnd) : t->cwnd;
    t->ssthresh = nj_max_u32(BETA(nj_cc_flight(t)), 2u * t->snd_mss);
    c->cwnd_prior = t->cwnd;
    enter_stage(c, STAGE_NONE);
}

/* RFC 9438 4.8: W_max will be the cwnd at the start of congestion avoidance. */
static void timed_out(struct nj_tcb *t, nj_ns now)
{
    lost(t, now);
    t->w_max = 0;
    priv(t)->after_rto = true;
}

/* RFC 9438 4.9. t resumes with the next ACK; the time since the event does not count. */
static void undone(struct nj_tcb *t)
{
    struct cubic *c = priv(t);

    if (!c->can_undo)
        return; /* the saved state is gone */
    c->can_undo = c->after_rto = false;
    t->w_max = c->undo_w_max;
    c->cwnd_prior = c->undo_cwnd_prior;
    enter_stage(c, STAGE_NONE);
    if (c->undo_stage != STAGE_EPOCH)
        return;
    enter_stage(c, STAGE_EPOCH);
    c->epoch.elapsed_us = c->undo_elapsed_us;
    c->epoch.origin = c->undo_origin;
    c->epoch.k_ms = c->undo_k_ms;
    c->epoch.w_est = c->undo_w_est;
}

static void idle(struct nj_tcb *t, nj_ns now, nj_ns for_ns)
{
    struct cubic *c = priv(t);

    (void)now;
    (void)for_ns;
    if (nj_cc_restart_idle(t))
        enter_stage(c, STAGE_NONE);
    else if (c->stage == STAGE_EPOCH)
        c->epoch.ack_at = 0;
}

const struct nj_cc_ops nj_cc_cubic = {
    .name = "cubic",
    .opened = nj_cc_init_state,
    .acked = acked,
    .lost = lost,
    .timed_out = timed_out,
    .undone = undone,
    .idle = idle,
};
