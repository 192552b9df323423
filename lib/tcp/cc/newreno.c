/* SPDX-License-Identifier: BSD-3-Clause */
/* NewReno congestion control (RFC 5681), with the initial window of RFC 6928. Recovery (RFC 6582)
 * is in loss/recovery_state.c. */
#include "tcp/cc/hystart.h"

struct newreno {
    struct nj_hystart hystart;
    uint32_t n_acked; /* bytes counted towards the next increase */
    bool after_rto;   /* this slow start follows a time-out */
};
_Static_assert(sizeof(struct newreno) <= NJ_CC_PRIV_BYTES, "room in x->cc");

static struct newreno *priv(struct nj_tcb *t)
{
    return (struct newreno *)t->x->cc;
}

static uint32_t half_flight(const struct nj_tcb *t)
{
    uint32_t half = nj_cc_flight(t) / 2, floor = 2u * t->snd_mss; /* RFC 5681 equation (4) */
    return half > floor ? half : floor;
}

/* Byte counting (RFC 3465 2.1): cwnd grows by one segment per acknowledged window. */
static void acked(struct nj_tcb *t, const struct nj_cc_ack *ack)
{
    struct newreno *r = priv(t);

    if (t->cwnd < t->ssthresh) {
        nj__slow_start(t, &r->hystart, ack, r->after_rto);
        return;
    }
    r->after_rto = false;
    if (!ack->limited)
        return; /* RFC 7661: an unused window is no evidence */
    r->n_acked += ack->n_bytes < t->cwnd ? ack->n_bytes : t->cwnd;
    if (r->n_acked >= t->cwnd) {
        r->n_acked -= t->cwnd;
        nj_cc_add_to_cwnd(t, t->snd_mss);
    }
}

static void lost(struct nj_tcb *t, nj_ns now)
{
    (void)now;
    memset(priv(t), 0, sizeof *priv(t));
    t->ssthresh = half_flight(t);
}

static void timed_out(struct nj_tcb *t, nj_ns now)
{
    lost(t, now);
    priv(t)->after_rto = true;
}

/* n_acked is not restored; that costs less than one segment of growth. */
static void undone(struct nj_tcb *t)
{
    priv(t)->after_rto = false;
}

static void idle(struct nj_tcb *t, nj_ns now, nj_ns for_ns)
{
    (void)now;
    (void)for_ns;
    if (nj_cc_restart_idle(t))
        memset(priv(t), 0, sizeof *priv(t));
}

const struct nj_cc_ops nj_cc_newreno = {
    .name = "newreno",
    .opened = nj_cc_init_state,
    .acked = acked,
    .lost = lost,
    .timed_out = timed_out,
    .undone = undone,
    .idle = idle,
};
