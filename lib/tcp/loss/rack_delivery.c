/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp/loss/rack_delivery.h"

#include "tcp/loss/scoreboard.h"
#include "tcp/tcp_internal.h"

#define MIN_RTT_S 300u /* validity of the minimum RTT, as in Linux */

static uint32_t us_of(nj_ns t)
{
    uint64_t us = t / NJ_US;
    return us == 0 ? 1 : us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}

/* Step 1: update the minimum RTT over the last MIN_RTT_S seconds. */
static void take_min_rtt(struct nj_tcb *t, uint32_t us, nj_ns now)
{
    uint16_t s = (uint16_t)(now / NJ_SEC);

    if (t->min_rtt_us != 0 && us > t->min_rtt_us && (uint16_t)(s - t->min_rtt_s) < MIN_RTT_S)
        return;
    t->min_rtt_us = us;
    t->min_rtt_s = s;
}

/* Step 2: was an earlier copy acknowledged? Yes if TSecr is older than the retransmission, or if
 * the round trip would be below the minimum RTT. */
static bool is_of_earlier_copy(const struct nj_tcb *t, const struct nj_sent_run *r, nj_ns rtt)
{
    if (t->x->echo != 0 && nj_seq_lt(t->x->echo, nj__tcp_ts_now(t, r->at)))
        return true;
    return rtt < (nj_ns)t->min_rtt_us * NJ_US;
}

void nj__rack_update(struct nj_tcb *t, const struct nj_sent_run *r, nj_ns now)
{
    struct nj_xfer *x = t->x;
    nj_ns rtt = now - r->at;

    if (!r->again)
        take_min_rtt(t, us_of(rtt), now);
    if (nj_seq_lt(x->rack_fack, r->end))
        x->rack_fack = r->end;
    else if (nj_seq_lt(r->end, x->rack_fack) && !r->again)
        x->reordering = true; /* sent only once, delivered late */
    if (r->again && is_of_earlier_copy(t, r, rtt))
        return;
    if (x->rack_at == 0 || nj_rack_sent_after(r->at, r->end, x->rack_at, x->rack_end)) {
        x->rack_at = r->at;
        x->rack_end = r->end;
        x->rack_rtt = rtt;
    }
}
