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

/* The MTU of the path to the client; 0: that of the hosts. */
static uint16_t path_mtu(const struct sim *sim)
{
    const struct sim_tls_mix *t = &sim->mix.tls;
    uint16_t mtu = 0;

    for (uint32_t i = 0; i < t->n_widths && t->width[i].from <= sim->now; i++)
        mtu = t->width[i].mtu;
    return mtu;
}

static bool is_too_big(struct sim *sim, const uint8_t *bytes, uint32_t n_bytes, nj_ns at)
{
    uint16_t mtu = path_mtu(sim);
    uint8_t icmp[SIM_TOO_BIG_MAX];

    if (mtu == 0 || n_bytes - SIM_ETH_BYTES <= mtu)
        return false;
    nj_sim_record_frame(&sim->record, at, SIM_SERVER, bytes, n_bytes, "too big");
    if (sim->mix.tls.icmp)
        launch(sim, SIM_CLIENT, icmp, nj_sim_raw_too_big(bytes, mtu, icmp), at);
    return true;
}

static void check_resent(struct sim *sim, const uint8_t *bytes, uint32_t n_bytes)
{
    uint32_t at;

    if (!nj_sim_resent_check(&sim->resent, bytes, n_bytes, &at))
        nj_sim_fail(sim, "the server sends byte %u of a stream again with another value", at);
}

void nj_sim_link_send(struct sim *sim, enum sim_side from, const struct rte_mbuf *m, nj_ns at)
{
    uint8_t bytes[SIM_FRAME_MAX];

    nj_sim_flatten(m, bytes);
    sim->link.stats.sent++;
    sim->progress++;
    if (from == SIM_SERVER && sim->mix.resent)
        check_resent(sim, bytes, m->pkt_len);
    if (from == SIM_SERVER && is_too_big(sim, bytes, m->pkt_len, at))
        return;
    launch(sim, from, bytes, m->pkt_len, at);
    if (nj_sim_channel_repeats(&sim->link, from, sim->calm))
        launch(sim, from, bytes, m->pkt_len, at);
}
