/* SPDX-License-Identifier: BSD-3-Clause */
/* The plans of the applications at both ends of a flow, drawn from the seed. */
#include "tcp_sim.h"

/* Sizes near boundaries: segments, windows, send queues. Most are small, so that a seed takes
 * little time. */
static uint64_t draw_size(struct tsim *sim, struct nj_prng *p)
{
    static const uint32_t edges[] = {0,    0,     1,     1,     2,     100,   535,
                                     536,  1447,  1448,  1449,  1460,  2897,  4096,
                                     8192, 16384, 14480, 14481, 65535, 65536, 65537};
    uint64_t size;

    switch (nj_prng_below(p, 6)) {
    case 0:
        size = nj_prng_below(p, 30000);
        break;
    case 1:
        size = nj_prng_below(p, (uint32_t)sim->mix.bytes_budget + 1);
        break;
    default:
        size = edges[nj_prng_below(p, sizeof edges / sizeof edges[0])];
    }
    return size;
}

static void draw_reader(struct tsim_side *s, struct nj_prng *p)
{
    s->sip = UINT32_MAX;
    s->stall_after = NJ_NEVER;
    switch (nj_prng_below(p, 6)) {
    case 0: /* one long pause: the window closes */
        s->stall_after = nj_prng_below(p, 100000);
        s->stall_for = nj_prng_next(p) % (8 * NJ_SEC);
        s->n_stalls = 1;
        s->slow = true;
        break;
    case 1: /* reads small amounts */
        s->sip = 1 + nj_prng_below(p, 3000);
        s->stall_after = nj_prng_below(p, 5000);
        s->stall_gap = 1 + nj_prng_below(p, 20000);
        s->stall_for = nj_prng_next(p) % (200 * NJ_MS);
        s->n_stalls = 1 + nj_prng_below(p, 30);
        s->slow = true;
        break;
    default:
        break;
    }
}

static void draw_side(struct tsim_side *s, struct tsim *sim, struct nj_prng *p)
{
    uint64_t room;

    s->per_round = draw_size(sim, p);
    room = sim->mix.bytes_budget / s->flow->n_rounds;
    if (s->per_round > room)
        s->per_round = room;
    sim->mix.bytes_budget -= s->per_round * s->flow->n_rounds;
    s->refer = nj_prng_below(p, 3) == 0;
    s->piece = 65535;
    if (nj_prng_below(p, 3) == 0)
        s->piece = (s->refer || s->per_round > 20000 ? 512 : 1) + nj_prng_below(p, 5000);
    s->think = nj_prng_below(p, 4) ? 0 : nj_prng_next(p) % (2 * NJ_SEC);
    s->abort_after = nj_prng_below(p, 12) ? NJ_NEVER : nj_prng_below(p, 40000);
    s->leaves = nj_prng_below(p, 5) == 0;
    draw_reader(s, p);
}

void nj_tsim_plan(struct tsim_flow *f, struct tsim *sim, uint32_t index)
{
    struct nj_prng prng, *p = &prng;

    nj_prng_init(p, (sim->seed << 8 | index) * 0xd1342543de82ef95u);
    f->n_rounds = nj_prng_below(p, 3) ? 1 : 1 + nj_prng_below(p, 10);
    f->lockstep = nj_prng_below(p, 2);
    f->both_open = sim->mix.net[0].delay >= 5 * NJ_MS && nj_prng_below(p, 8) == 0;
    f->port[0] = (uint16_t)(40000 + (sim->seed + index * 7919) % 20000);
    f->port[1] = (uint16_t)(f->both_open ? 9000 + index : TSIM_LISTEN_PORT);
    for (unsigned h = 0; h < 2; h++) {
        f->salt[h] = nj_prng_below(p, 1u << 20);
        draw_side(&f->side[h], sim, p);
    }
    unsigned polite = nj_prng_below(p, 3); /* 2: neither end waits for the other's FIN */
    if (polite < 2)
        f->side[polite].polite = true;
    nj_ns start_at = sim->now + (nj_prng_below(p, 3) ? 0 : nj_prng_next(p) % NJ_SEC);
    f->side[0].start_at = f->side[1].start_at = start_at;
    f->side[0].state = TSIM_WAITING;
    f->side[1].state = f->both_open ? TSIM_WAITING : TSIM_ABSENT;
}
