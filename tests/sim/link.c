/* SPDX-License-Identifier: BSD-3-Clause */
#include "link.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "sim.h"

static void flatten(const struct rte_mbuf *m, uint8_t *out)
{
    uint32_t n = 0;
    for (const struct rte_mbuf *s = m; s; s = s->next) {
        NJ_CHECK(n + s->data_len <= SIM_FRAME_MAX);
        memcpy(out + n, rte_pktmbuf_mtod(s, const uint8_t *), s->data_len);
        n += s->data_len;
    }
    NJ_CHECK(n == m->pkt_len);
}

/* Also the order of random draws must not depend on what comes of them. */
static bool is_lost(struct sim *sim)
{
    const struct sim_mix *mix = &sim->mix;
    struct sim_link *l = &sim->link;

    if (sim->now - mix->blackout_at < mix->blackout_for)
        return true;
    if (nj_sim_chance(&l->prng, mix->burst))
        l->burst_until = sim->now + nj_prng_next(&l->prng) % mix->burst_max;
    if (sim->now < l->burst_until)
        return true;
    return nj_sim_chance(&l->prng, mix->loss);
}

/* When it arrives; NJ_NEVER when the queue of a slow link is full. */
static nj_ns arrival(struct sim *sim, enum sim_side from, uint32_t n_bytes)
{
    const struct sim_mix *mix = &sim->mix;
    struct sim_link *l = &sim->link;
    nj_ns leaves = sim->now;

    if (mix->ns_per_byte) {
        if (l->busy_until[from] > sim->now)
            leaves = l->busy_until[from];
        if (leaves - sim->now > mix->queue_max)
            return NJ_NEVER;
        leaves += (nj_ns)n_bytes * mix->ns_per_byte;
        l->busy_until[from] = leaves;
    }
    nj_ns at = leaves + mix->delay + (mix->jitter ? nj_prng_next(&l->prng) % mix->jitter : 0);
    if (!sim->calm && nj_sim_chance(&l->prng, mix->reorder)) {
        l->stats.reordered++;
        return at + nj_prng_next(&l->prng) % mix->reorder_max; /* others may pass */
    }
    if (at < l->in_order_until[from])
        at = l->in_order_until[from];
    return l->in_order_until[from] = at;
}

static const char *launch(struct sim *sim, enum sim_side from, const uint8_t *bytes,
                          uint32_t n_bytes)
{
    struct sim_link *l = &sim->link;

    if (!sim->calm && is_lost(sim)) {
        l->stats.lost++;
        return "lost";
    }
    nj_ns at = arrival(sim, from, n_bytes);
    if (at == NJ_NEVER) {
        l->stats.queue_full++;
        return "queue full";
    }
    struct sim_frame *f = malloc(sizeof *f + n_bytes);
    NJ_CHECK(f);
    f->n_bytes = n_bytes;
    memcpy(f->bytes, bytes, n_bytes);
    f->corrupted = !sim->calm && nj_sim_chance(&l->prng, sim->mix.corrupt);
    if (f->corrupted) {
        uint32_t bit = nj_prng_below(&l->prng, n_bytes * 8);
        f->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        l->stats.corrupted++;
    }
    nj_sim_agenda_add(&sim->agenda, at,
                      from == SIM_SERVER ? SIM_FRAME_TO_CLIENT : SIM_FRAME_TO_SERVER, f);
    return f->corrupted ? "corrupted" : "";
}

void nj_sim_link_send(struct sim *sim, enum sim_side from, const struct rte_mbuf *m)
{
    struct sim_link *l = &sim->link;
    uint8_t bytes[SIM_FRAME_MAX];

    flatten(m, bytes);
    l->stats.sent++;
    sim->progress++;
    nj_sim_log_frame(sim, from, m, bytes, launch(sim, from, bytes, m->pkt_len));
    if (!sim->calm && nj_sim_chance(&l->prng, sim->mix.duplicate)) {
        l->stats.duplicated++;
        nj_sim_log_frame(sim, from, m, bytes, launch(sim, from, bytes, m->pkt_len));
    }
}
