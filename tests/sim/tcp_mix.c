/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp_mix.h"

#include "tcp_probe.h"

static nj_ns span(struct nj_prng *p, nj_ns least, nj_ns most)
{
    return least + nj_prng_next(p) % (most - least + 1);
}

static bool one_in(struct nj_prng *p, uint32_t n)
{
    return nj_prng_below(p, n) == 0;
}

/* A random time on a logarithmic scale: from `least` microseconds, over `n` decades. */
static nj_ns decades(struct nj_prng *p, nj_ns least, uint32_t n)
{
    for (uint32_t i = nj_prng_below(p, n); i > 0; i--)
        least *= 10;
    return least * (1 + nj_prng_below(p, 9));
}

static void draw_rate(struct sim_faults *f, struct nj_prng *p)
{
    f->ns_per_byte = (uint32_t)decades(p, 1, 4); /* from 8 Gbit/s to 0.9 Mbit/s */
    uint32_t packets = one_in(p, 3) ? 5 + nj_prng_below(p, 10) : 20 + nj_prng_below(p, 200);
    f->queue_max = (nj_ns)packets * SIM_FRAME_MAX * f->ns_per_byte;
    f->mark_above = one_in(p, 2) ? f->queue_max / 4 : 0;
}

static void draw_loss(struct sim_faults *f, struct nj_prng *p)
{
    if (one_in(p, 2))
        f->loss = nj_prng_below(p, one_in(p, 4) ? 200000 : 30000);
    if (one_in(p, 6)) {
        f->burst = 1 + nj_prng_below(p, 5000);
        f->burst_max = span(p, 1 * NJ_MS, 300 * NJ_MS);
    }
    if (one_in(p, 5)) {
        f->to_bad = 1000 + nj_prng_below(p, 30000);
        f->to_good = 50000 + nj_prng_below(p, 450000);
        f->bad_loss = 300000 + nj_prng_below(p, 700000);
    }
}

static void draw_network(struct tsim_mix *m, struct nj_prng *p)
{
    struct sim_faults *f = &m->net[0];

    f->delay = decades(p, 20 * NJ_US, 5) / 2;
    f->jitter = one_in(p, 2) ? span(p, 0, f->delay / 2) : 0;
    if (one_in(p, 2))
        draw_rate(f, p);
    draw_loss(f, p);
    if (one_in(p, 4))
        f->duplicate = nj_prng_below(p, 200000);
    if (one_in(p, 3)) {
        f->reorder = nj_prng_below(p, 300000);
        f->reorder_max = span(p, 1 * NJ_US, 2 * f->delay + 10 * NJ_MS);
    }
    if (one_in(p, 5))
        f->corrupt = nj_prng_below(p, 50000);
    if (one_in(p, 8))
        f->truncate = nj_prng_below(p, 30000);
    if (one_in(p, 8)) {
        f->blackout_at = m->start_at + span(p, 0, 3 * NJ_SEC);
        f->blackout_for = span(p, 100 * NJ_MS, 15 * NJ_SEC);
    }
    m->net[1] = *f;
    if (one_in(p, 4)) { /* only one direction has losses: data without ACKs, or ACKs without data */
        struct sim_faults *g = &m->net[nj_prng_below(p, 2)];
        g->loss = g->burst = g->to_bad = 0;
        g->blackout_for = 0;
    }
    if (one_in(p, 6)) /* an access line: slow in one direction */
        m->net[nj_prng_below(p, 2)].ns_per_byte *= 1 + nj_prng_below(p, 10);
}

static void draw_host(struct tsim_host_mix *h, struct nj_prng *p)
{
    h->mtu = (uint16_t)(one_in(p, 5) ? 576 + nj_prng_below(p, 925) : 1500);
    h->step_gap = one_in(p, 4) ? span(p, 1 * NJ_US, 300 * NJ_US) : 5 * NJ_US;
    h->tight = one_in(p, 12);
    h->tx_short = one_in(p, 8) ? nj_prng_below(p, 300000) : 0;
    h->held_max = one_in(p, 12) ? 64 + nj_prng_below(p, 512) : 0;
}

static void draw_middle(struct tsim_mix *m, struct nj_prng *p)
{
    static const uint16_t clamps[] = {1, 64, 216, 217, 536, 1000, 1220, 1400};

    m->no_ts = one_in(p, 4);
    m->no_wscale = one_in(p, 5);
    m->no_sack = one_in(p, 4);
    if (one_in(p, 6))
        m->mss_clamp = clamps[nj_prng_below(p, sizeof clamps / sizeof clamps[0])];
    if (one_in(p, 8)) {
        m->path_mtu = (uint16_t)(1280 + nj_prng_below(p, 220));
        m->icmp = !one_in(p, 3);
    }
    if (!TSIM_HAS_PMTUD || (!m->icmp && !TSIM_HAS_BLACK_HOLES))
        m->path_mtu = 0;
}

static void draw_malice(struct tsim_mix *m, struct nj_prng *p)
{
    if (one_in(p, 4))
        for (uint32_t bit = 1; bit <= TSIM_CRUMBLE; bit <<= 1)
            if (one_in(p, bit == TSIM_OPTIMISTIC ? 8 : 3))
                m->evil |= bit;
    m->evil_host = nj_prng_below(p, 2);
    m->evil_chance = 1000 + nj_prng_below(p, one_in(p, 2) ? 50000 : 1000000);
    m->ts_jump_at = m->start_at + decades(p, 1 * NJ_MS, 4);
    m->ts_jump = 1u << nj_prng_below(p, 31);
    m->attack_every = one_in(p, 5) ? decades(p, 100 * NJ_US, 4) : 0;
    m->flood_every = one_in(p, 20) ? decades(p, 1 * NJ_MS, 2) : 0;
}

void nj_tsim_mix_draw(struct tsim_mix *m, uint64_t seed)
{
    struct nj_prng p;

    nj_prng_init(&p, seed * 0x9e3779b97f4a7c15u + 7);
    *m = (struct tsim_mix){.start_at = span(&p, NJ_SEC, 100000 * NJ_SEC)};
    m->calm_at = m->start_at + span(&p, 1 * NJ_SEC, 30 * NJ_SEC);
    draw_network(m, &p);
    draw_host(&m->host[0], &p);
    draw_host(&m->host[1], &p);
    draw_middle(m, &p);
    draw_malice(m, &p);
    m->n_flows = one_in(&p, 2) ? 1 : 1 + nj_prng_below(&p, 6);
    m->bytes_budget = one_in(&p, 40) ? 3u << 20 : one_in(&p, 6) ? 300000 : 40000;
    m->v6 = one_in(&p, 2);
    m->newreno = one_in(&p, 3);
    m->ecn = one_in(&p, 2);
    m->time_wait = one_in(&p, 8) ? 60 * NJ_SEC : span(&p, 1 * NJ_MS, 2 * NJ_SEC);
}
