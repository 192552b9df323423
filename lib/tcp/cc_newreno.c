/* SPDX-License-Identifier: BSD-3-Clause */
/* NewReno: RFC 5681 with the recovery of RFC 6582 and the initial window of RFC 6928. */
#include "tcp/cc.h"

#define IW_SEGMENTS 10u /* RFC 6928 */
#define CWND_MAX    (1u << 30)

static uint32_t initial_window(const struct nj_tcb *t)
{
    return IW_SEGMENTS * t->snd_mss;
}

static uint32_t half_flight(const struct nj_tcb *t)
{
    uint32_t half = nj_tcb_flight(t) / 2, floor = 2u * t->snd_mss; /* RFC 5681 equation (4) */
    return half > floor ? half : floor;
}

static void grow(struct nj_tcb *t, uint32_t n_bytes)
{
    t->cwnd = t->cwnd + n_bytes < CWND_MAX ? t->cwnd + n_bytes : CWND_MAX;
}

static void init(struct nj_tcb *t)
{
    t->cwnd = initial_window(t);
    t->ssthresh = CWND_MAX;
    t->x->cc_acked = 0;
}

/* Byte counting (RFC 3465, L = 2): by what was acknowledged, not by how many ACKs said so. */
static void on_ack(struct nj_tcb *t, uint32_t n_bytes, bool limited)
{
    if (!limited)
        return; /* RFC 7661: a window we did not fill proves nothing */
    if (t->cwnd < t->ssthresh) {
        uint32_t cap = 2u * t->snd_mss;
        grow(t, n_bytes < cap ? n_bytes : cap);
        return;
    }
    t->x->cc_acked += n_bytes;
    if (t->x->cc_acked >= t->cwnd) {
        t->x->cc_acked -= t->cwnd;
        grow(t, t->snd_mss);
    }
}

/* RFC 6582 3.2 step 2. The three duplicates say that three segments have left the network. */
static void on_recovery_begin(struct nj_tcb *t)
{
    t->ssthresh = half_flight(t);
    t->cwnd = t->ssthresh + 3u * t->snd_mss;
    t->x->cc_acked = 0;
}

static void on_dupack(struct nj_tcb *t)
{
    grow(t, t->snd_mss);
}

/* RFC 6582 3.2 step 4, partial acknowledgment. */
static void on_partial_ack(struct nj_tcb *t, uint32_t n_bytes)
{
    t->cwnd -= n_bytes < t->cwnd ? n_bytes : t->cwnd;
    if (n_bytes >= t->snd_mss || t->cwnd < t->snd_mss)
        grow(t, t->snd_mss);
}

/* RFC 6582 3.2 step 3, option 1: no burst when little is in flight. */
static void on_recovery_end(struct nj_tcb *t)
{
    uint32_t flight = nj_tcb_flight(t);
    uint32_t careful = (flight > t->snd_mss ? flight : t->snd_mss) + t->snd_mss;
    t->cwnd = careful < t->ssthresh ? careful : t->ssthresh;
}

static void on_rto(struct nj_tcb *t, bool first)
{
    if (first)
        t->ssthresh = half_flight(t);
    t->cwnd = t->snd_mss;
    t->x->cc_acked = 0;
}

static void on_idle(struct nj_tcb *t)
{
    if (t->cwnd > initial_window(t))
        t->cwnd = initial_window(t); /* RFC 5681 4.1 */
}

const struct nj_cc_ops nj_cc_newreno = {
    .name = "newreno",
    .init = init,
    .on_ack = on_ack,
    .on_recovery_begin = on_recovery_begin,
    .on_dupack = on_dupack,
    .on_partial_ack = on_partial_ack,
    .on_recovery_end = on_recovery_end,
    .on_rto = on_rto,
    .on_idle = on_idle,
};
