/* SPDX-License-Identifier: BSD-3-Clause */
#include "channel.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

/* Gilbert-Elliott loss: a good and a bad state, with a probability of changing per packet. */
static bool lost_in_bad(struct sim_channel *c, unsigned from)
{
    const struct sim_faults *f = &c->faults[from];

    if (nj_sim_chance(&c->prng, c->bad[from] ? f->to_good : f->to_bad))
        c->bad[from] = !c->bad[from];
    return c->bad[from] && nj_sim_chance(&c->prng, f->bad_loss);
}

/* All random numbers are drawn in any case, so that their order does not depend on results. */
static bool is_lost(struct sim_channel *c, unsigned from, nj_ns now)
{
    const struct sim_faults *f = &c->faults[from];

    if (now - f->blackout_at < f->blackout_for)
        return true;
    if (nj_sim_chance(&c->prng, f->burst))
        c->burst_until = now + nj_prng_next(&c->prng) % f->burst_max;
    if (now < c->burst_until)
        return true;
    return nj_sim_chance(&c->prng, f->loss) | lost_in_bad(c, from);
}

/* Time of arrival; NJ_NEVER if the queue of a slow link is full. */
static nj_ns arrival(struct sim_channel *c, unsigned from, uint32_t n_bytes, nj_ns now, bool calm,
                     bool *mark)
{
    const struct sim_faults *f = &c->faults[from];
    nj_ns leaves = now;

    if (f->ns_per_byte) {
        if (c->busy_until[from] > now)
            leaves = c->busy_until[from];
        if (leaves - now > f->queue_max)
            return NJ_NEVER;
        *mark = f->mark_above > 0 && leaves - now > f->mark_above;
        leaves += (nj_ns)n_bytes * f->ns_per_byte;
        c->busy_until[from] = leaves;
    }
    nj_ns at = leaves + f->delay + (f->jitter ? nj_prng_next(&c->prng) % f->jitter : 0);
    if (!calm && nj_sim_chance(&c->prng, f->reorder)) {
        c->stats.reordered++;
        return at + nj_prng_next(&c->prng) % f->reorder_max; /* other packets may overtake it */
    }
    if (at < c->in_order_until[from])
        at = c->in_order_until[from];
    return c->in_order_until[from] = at;
}

static void damage(struct sim_channel *c, unsigned from, struct sim_passage *p)
{
    const struct sim_faults *f = &c->faults[from];

    if (nj_sim_chance(&c->prng, f->corrupt)) {
        p->flip_bit = nj_prng_below(&c->prng, p->n_bytes * 8);
        p->fate = "corrupted";
        c->stats.corrupted++;
    }
    if (nj_sim_chance(&c->prng, f->truncate)) {
        p->n_bytes = nj_prng_below(&c->prng, p->n_bytes);
        p->fate = "truncated";
        c->stats.truncated++;
    }
}

void nj_sim_channel_pass(struct sim_channel *c, unsigned from, uint32_t n_bytes, nj_ns now,
                         bool calm, struct sim_passage *p)
{
    *p = (struct sim_passage){
        .at = NJ_NEVER, .fate = "", .n_bytes = n_bytes, .flip_bit = UINT32_MAX};
    if (!calm && is_lost(c, from, now)) {
        c->stats.lost++;
        p->fate = "lost";
        return;
    }
    p->at = arrival(c, from, n_bytes, now, calm, &p->mark);
    if (p->at == NJ_NEVER) {
        c->stats.queue_full++;
        p->fate = "queue full";
        return;
    }
    c->stats.marked += p->mark;
    if (!calm)
        damage(c, from, p);
}

bool nj_sim_channel_repeats(struct sim_channel *c, unsigned from, bool calm)
{
    if (calm || !nj_sim_chance(&c->prng, c->faults[from].duplicate))
        return false;
    c->stats.duplicated++;
    return true;
}

struct sim_frame *nj_sim_frame_new(const uint8_t *bytes, const struct sim_passage *p)
{
    struct sim_frame *f = malloc(sizeof *f + p->n_bytes);

    NJ_CHECK(f);
    f->n_bytes = p->n_bytes;
    f->corrupted = p->fate[0] != '\0';
    memcpy(f->bytes, bytes, p->n_bytes);
    if (p->flip_bit / 8 < p->n_bytes)
        f->bytes[p->flip_bit / 8] ^= (uint8_t)(1u << p->flip_bit % 8);
    return f;
}
