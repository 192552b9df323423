/* SPDX-License-Identifier: BSD-3-Clause */
/* What RACK learns from a run that was delivered (RFC 8985 6.2, steps 1 to 3): the most recently
 * sent one, the minimum RTT, and whether there was reordering. The scoreboard reports each run. */
#pragma once

#include "tcp/seq.h"
#include "tcp/tcb.h"

/* RACK_sent_after of RFC 8985 6.2: was the run (at1, end1) sent after (at2, end2)? Ties are decided
 * by sequence number. */
static inline bool nj_rack_sent_after(nj_ns at1, uint32_t end1, nj_ns at2, uint32_t end2)
{
    return at1 > at2 || (at1 == at2 && nj_seq_lt(end2, end1));
}

/* `run` was delivered now. */
void nj__rack_update(struct nj_tcb *, const struct nj_sent_run *run, nj_ns now);
