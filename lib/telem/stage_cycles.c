/* SPDX-License-Identifier: BSD-3-Clause */
/* Cycles per processing stage, sampled in one step of many. Contract: stage_cycles.h. */
#include "telem/stage_cycles.h"

#include "base/relaxed_atomics.h"

const char *const nj_stage_name[NJ_N_STAGES] = {"rx", "tcp", "h2", "handler", "tx"};

void nj_stages_begin_step(struct nj_stages *s)
{
    if (!s->cycles || s->n_steps++ % NJ_STAGES_PERIOD != 0)
        return;
    s->on = true;
    s->now = NJ_STAGE_RX;
    s->since = s->cycles();
    for (unsigned i = 0; i < NJ_N_STAGES; i++)
        s->pending[i] = 0;
}

void nj_stages_end_step(struct nj_stages *s, bool busy)
{
    if (!s->on)
        return;
    nj_stage(s, NJ_STAGE_RX);
    s->on = false;
    if (!busy)
        return;
    uint64_t all = 0;
    for (unsigned i = 0; i < NJ_N_STAGES; i++) {
        nj_add_single_writer(&s->spent[i], s->pending[i]);
        all += s->pending[i];
    }
    nj_histogram_add(&s->step, all);
    nj_add_single_writer(&s->n_measured, 1);
}
