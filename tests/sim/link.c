/* SPDX-License-Identifier: BSD-3-Clause */
#include "link.h"

#include "record.h"
#include "sim.h"

static void launch(struct sim *sim, enum sim_side from, const uint8_t *bytes, uint32_t n_bytes,
                   nj_ns at)
{
    struct sim_passage p;

    nj_sim_channel_pass(&sim->link, from, n_bytes, at, sim->calm, &p);
    if (p.at != NJ_NEVER)
        nj_sim_agenda_add(&sim->agenda, p.at,
                          from == SIM_SERVER ? SIM_FRAME_TO_CLIENT : SIM_FRAME_TO_SERVER,
                          nj_sim_frame_new(bytes, &p));
    nj_sim_record_frame(&sim->record, at, from, bytes, n_bytes, p.fate);
}

void nj_sim_link_send(struct sim *sim, enum sim_side from, const struct rte_mbuf *m, nj_ns at)
{
    uint8_t bytes[SIM_FRAME_MAX];

    nj_sim_flatten(m, bytes);
    sim->link.stats.sent++;
    sim->progress++;
    launch(sim, from, bytes, m->pkt_len, at);
    if (nj_sim_channel_repeats(&sim->link, from, sim->calm))
        launch(sim, from, bytes, m->pkt_len, at);
}
