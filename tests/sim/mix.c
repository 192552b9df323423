/* SPDX-License-Identifier: BSD-3-Clause */
#include "mix.h"

#include "conn.h"

#define CALM_AFTER (60 * NJ_SEC)

static nj_ns span(struct nj_prng *p, nj_ns least, nj_ns most)
{
    return least + nj_prng_next(p) % (most - least + 1);
}

static void draw_network(struct sim_mix *m, struct nj_prng *p)
{
    m->name = "own";
    m->net.loss = nj_prng_below(p, 4) ? nj_prng_below(p, 80000) : 0;
    m->net.duplicate = nj_prng_below(p, 2) ? nj_prng_below(p, 300000) : 0;
    m->net.reorder = nj_prng_below(p, 2) ? nj_prng_below(p, 300000) : 0;
    m->net.corrupt = nj_prng_below(p, 2) ? nj_prng_below(p, 50000) : 0;
    m->net.delay = span(p, 1 * NJ_US, 100 * NJ_MS);
    m->net.jitter = span(p, 0, 10 * NJ_MS);
    m->net.reorder_max = span(p, 1 * NJ_MS, 300 * NJ_MS);
    if (nj_prng_below(p, 3) == 0) {
        m->net.ns_per_byte = 1 + nj_prng_below(p, 5000); /* from 8 Gbit/s to 1.6 Mbit/s */
        /* At least 20 packets: with fewer, TCP is too slow for the time limit. */
        m->net.queue_max = (nj_ns)20 * 1514 * m->net.ns_per_byte + span(p, 0, 500 * NJ_MS);
    }
    if (nj_prng_below(p, 3) == 0) {
        m->net.burst = 1 + nj_prng_below(p, 5000);
        m->net.burst_max = span(p, 1 * NJ_MS, 300 * NJ_MS);
        m->harsh = true;
    }
    if (nj_prng_below(p, 3) == 0) {
        m->net.blackout_at = m->start_at + span(p, 0, 3 * NJ_SEC);
        m->net.blackout_for = span(p, 100 * NJ_MS, 5 * NJ_SEC);
        m->harsh = true;
    }
    m->harsh |= m->net.loss + m->net.corrupt > 70000;
}

static void draw_host(struct sim_mix *m, struct nj_prng *p)
{
    m->tx_short = nj_prng_below(p, 4) == 0 ? 200000 : 0;
    m->spurious = nj_prng_below(p, 4) == 0 ? 500000 : 0;
    m->steer_queue = nj_prng_below(p, 8) == 0 ? 4 : 1024;
    m->tight = nj_prng_below(p, 8) == 0;
    m->time_wait = nj_prng_below(p, 2) ? 1 * NJ_SEC : 60 * NJ_SEC;
    m->drain_at = nj_prng_below(p, 8) ? NJ_NEVER : m->start_at + span(p, 0, 5 * NJ_SEC);
    m->file_delay = nj_prng_below(p, 3) ? span(p, 1, 30 * NJ_MS) : 0;
    m->file_queue = nj_prng_below(p, 6) == 0 ? 1 + nj_prng_below(p, 4) : 64;
    m->file_refuse = nj_prng_below(p, 6) == 0 ? 300000 : 0;
}

/* Uses a generator of its own, so that old seeds keep their network and clients. */
static void draw_disk(struct sim_mix *m, uint64_t seed)
{
    struct nj_prng p;

    nj_prng_init(&p, seed ^ 0xd15c5);
    m->disk.depth = 1 + nj_prng_below(&p, nj_prng_below(&p, 2) ? 4 : SIM_DISK_DEPTH_MAX);
    if (nj_prng_below(&p, 3) > 0) {
        m->disk.latency = span(&p, 0, nj_prng_below(&p, 2) ? 200 * NJ_US : 10 * NJ_MS);
        m->disk.jitter = span(&p, 0, 10 * NJ_MS);
        m->disk.rate = span(&p, 2000000, 1000000000);
    }
    m->disk.slow_at = m->start_at + span(&p, 0, 2 * NJ_SEC);
    if (nj_prng_below(&p, 4) == 0) {
        m->disk.slow_for = span(&p, 100 * NJ_MS, 10 * NJ_SEC);
        m->disk.slow_latency = 500 * NJ_MS;
    }
    m->disk.cut_short = nj_prng_below(&p, 4) == 0 ? 200000 : 0;
    m->store.cache_bytes = (uint64_t)4096 << nj_prng_below(&p, 14); /* to 32 MiB */
    m->store.lent_max = nj_prng_below(&p, 4) == 0 ? (uint64_t)8192 << nj_prng_below(&p, 8) : 0;
    m->store.distant = nj_prng_below(&p, 3) == 0 ? 300000 : 0;
    m->store.read_errors = 1 + nj_prng_below(&p, 300000);
    m->disk.no_memory_at = m->start_at + span(&p, 0, NJ_SEC);
    m->disk.no_memory_for = nj_prng_below(&p, 4) == 0 ? span(&p, 1 * NJ_MS, 2 * NJ_SEC) : 0;
}

/* With a generator of its own, too. */
static void draw_tls(struct sim_mix *m, uint64_t seed, bool always)
{
    struct nj_prng p;

    nj_prng_init(&p, seed ^ 0x715715);
    m->tls.on = nj_prng_below(&p, 4) == 0 || always;
    if (!m->tls.on)
        return;
    m->tls.delay = nj_prng_below(&p, 3) ? span(&p, 1, 30 * NJ_MS) : 0;
    m->tls.refuse = nj_prng_below(&p, 12) == 0 ? 300000 : 0;
    m->tls.n_widths = nj_prng_below(&p, 2) ? 1 + nj_prng_below(&p, SIM_WIDTHS_MAX) : 0;
    m->tls.icmp = nj_prng_below(&p, 3) > 0;
    for (uint32_t i = 0; i < m->tls.n_widths; i++) {
        nj_ns last = i > 0 ? m->tls.width[i - 1].from : m->start_at;
        m->tls.width[i].from = last + span(&p, 0, 2 * NJ_SEC);
        m->tls.width[i].mtu = (uint16_t)(1280 + nj_prng_below(&p, 221));
    }
}

void nj_sim_mix_draw(struct sim_mix *m, uint64_t seed, bool always_tls)
{
    struct nj_prng p;

    nj_prng_init(&p, seed * 0x9e3779b97f4a7c15u + 1);
    *m = (struct sim_mix){
        .name = "issue",
        .net = {.loss = 50000,
                .duplicate = 50000,
                .reorder = 50000,
                .delay = 10 * NJ_MS,
                .jitter = 2 * NJ_MS,
                .reorder_max = 30 * NJ_MS},
        .resent = true,
        .limits = true,
        .plan = nj_sim_conn_plan,
        .start_at = span(&p, 1, 100000 * NJ_SEC),
    };
    m->calm_at = m->start_at + CALM_AFTER;
    if (seed % 5 == 0)
        draw_network(m, &p);
    draw_host(m, &p);
    draw_disk(m, seed);
    draw_tls(m, seed, always_tls);
    m->n_conns = 1 + nj_prng_below(&p, 6);
    m->n_requests = 1 + nj_prng_below(&p, 10);
    m->odd_clients = nj_prng_below(&p, 2);
    m->odd_files = nj_prng_below(&p, 2);
    m->bytes_budget = nj_prng_below(&p, 12) == 0 ? 16u << 20 : 3u << 20;
    m->client_mtu = (uint16_t)(nj_prng_below(&p, 6) ? 1500 : 576 + nj_prng_below(&p, 925));
}
