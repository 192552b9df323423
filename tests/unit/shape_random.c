/* SPDX-License-Identifier: BSD-3-Clause */
/* Random trees and loads from a seed (NJ_SEED replays one): no limit is exceeded by more than its
 * burst, the bytes charged are those sent, and every response makes progress. */
#include "support/shape_rig.h"
#include "telem/counters.h"

enum { N_RES = 120, N_CLASSES = 4, N_CLIENTS = 9, STEPS = 60, STEP_MS = 20 };

struct walk {
    struct rig w;
    struct nj_prng r;
    struct nj_policy next[2];
    uint32_t n_adopted;
    uint64_t of_class[N_CLASSES][STEPS + 1]; /* bytes until the end of each step */
    uint32_t changed_step;
    nj_ns changed_at;
};

static uint32_t below(struct walk *k, uint32_t n)
{
    return nj_prng_below(&k->r, n);
}

static struct nj_limit any_limit(struct walk *k)
{
    static const uint64_t rates[] = {0, 0, 100 * KIB, MIB, 5 * MIB, 40 * MIB};
    uint64_t ceiling = rates[below(k, NJ_ARRAY_LEN(rates))];
    uint64_t rate = below(k, 2) ? ceiling / (1 + below(k, 5)) : 0;
    return (struct nj_limit){rate, ceiling, below(k, 3) ? 0 : 6000 + below(k, 200000)};
}

static void any_policy(struct walk *k, struct nj_policy *p)
{
    p->total = any_limit(k);
    if (p->total.ceiling == 0)
        p->total.ceiling = 60 * MIB;
    p->n_classes = 1 + below(k, N_CLASSES);
    for (uint32_t i = 0; i < p->n_classes; i++) {
        struct nj_class *c = &p->classes[i];
        c->slot = (uint8_t)i;
        c->total = any_limit(k);
        c->client = any_limit(k);
        c->request = any_limit(k);
        c->rate_after = below(k, 3) ? 0 : below(k, 100000);
    }
}

static void any_response(struct walk *k, struct rig_res *r)
{
    struct rig *w = &k->w;
    uint32_t shard = below(k, w->n_shards);
    const struct nj_policy *p = nj_shape_policy(w->shape[shard]);
    uint32_t c = below(k, p->n_classes);
    uint64_t n = below(k, 4) ? 1 + below(k, 300000) : RIG_FOREVER;
    rig_open_at(w, r, shard, c, 1 + c * N_CLIENTS + below(k, N_CLIENTS), n);
    r->unknown = n != RIG_FOREVER && below(k, 3) == 0;
    r->shows_max = below(k, 4) ? 0 : 1 + below(k, 5000);
}

static void stir(struct walk *k, uint32_t step)
{
    struct rig *w = &k->w;
    for (uint32_t n = below(k, 30); n > 0; n--) {
        struct rig_res *r = &w->res[below(k, N_RES)];
        switch (r->open ? below(k, 6) : 5) {
        case 0:
            r->stuck = !r->stuck;
            rig_ready(r);
            break;
        case 1:
            r->dry = !r->dry;
            rig_ready(r);
            break;
        case 2:
            rig_end(r);
            break;
        case 5:
            if (!r->open)
                any_response(k, r);
            break;
        default:
            rig_ready(r); /* spurious call */
            break;
        }
    }
    if (below(k, 12) == 0) {
        struct nj_policy *p = &k->next[k->n_adopted++ % 2];
        *p = w->policy;
        any_policy(k, p);
        p->version = k->n_adopted + 1;
        rig_adopt(w, p);
        k->changed_at = w->now;
        k->changed_step = step;
    }
}

static uint64_t burst_of(const struct nj_limit *l)
{
    uint64_t burst = l->burst ? l->burst : l->ceiling / 20;
    return burst > 2 * NJ_QUANTUM_MIN_BYTES ? burst : 2 * NJ_QUANTUM_MIN_BYTES;
}

/* What further lcores may hold: a lease each. */
static uint64_t in_hand(const struct rig *w, const struct nj_limit *l)
{
    uint64_t lease = burst_of(l) / 4;
    return (w->n_shards - 1) * (lease > NJ_QUANTUM_MIN_BYTES ? lease : NJ_QUANTUM_MIN_BYTES);
}

/* Per class, over any number of steps since its limit changed. */
static void check_classes(struct walk *k, uint64_t seed, uint32_t step)
{
    struct rig *w = &k->w;
    const struct nj_policy *p = nj_shape_policy(w->shape[0]);
    for (uint32_t i = 0; i < N_CLASSES; i++) {
        uint64_t sum = 0;
        for (uint32_t j = 0; j < w->n_shards; j++)
            sum += nj_shape_class_stats(w->shape[j], i)->n_bytes;
        k->of_class[i][step] = sum;
        if (i >= p->n_classes || p->classes[i].total.ceiling == 0)
            continue;
        const struct nj_limit *l = &p->classes[i].total;
        for (uint32_t from = k->changed_step; from < step; from++) {
            uint64_t most =
                l->ceiling * (step - from) * STEP_MS / 1000 + burst_of(l) + in_hand(w, l);
            cr_assert_leq(sum - k->of_class[i][from], most,
                          "seed %lu: class %u, steps %u to %u: %lu of %lu", (unsigned long)seed, i,
                          from, step, (unsigned long)(sum - k->of_class[i][from]),
                          (unsigned long)most);
        }
    }
}

/* The server's limit, over all windows of 100 ms since it changed, with the steps of all shards. */
static void check_windows(struct walk *k, uint64_t seed)
{
    struct rig *w = &k->w;
    const struct nj_limit *l = &nj_shape_policy(w->shape[0])->total;
    uint32_t from = (uint32_t)((k->changed_at - RIG_START + NJ_MS - 1) / NJ_MS) + 1;
    uint32_t to = (uint32_t)((w->now - RIG_START) / NJ_MS);
    uint64_t most = l->ceiling / 10 + burst_of(l) + in_hand(w, l);
    uint64_t got = rig_window(w, from, to, 100);
    cr_assert_leq(got, most, "seed %lu at %u ms: %lu of %lu", (unsigned long)seed, to,
                  (unsigned long)got, (unsigned long)most);
}

/* With all windows open and no limits, every response ends: none was forgotten. */
static void check_all_end(struct walk *k, uint64_t seed)
{
    struct rig *w = &k->w;
    for (uint32_t i = 0; i < N_RES; i++) {
        struct rig_res *r = &w->res[i];
        if (!r->open)
            continue;
        r->stuck = r->dry = false;
        if (r->left > 50000)
            r->left = 50000;
        rig_ready(r);
    }
    rig_run(w, 100 * NJ_SEC);
    for (uint32_t i = 0; i < N_RES; i++) {
        cr_assert_not(w->res[i].open, "seed %lu: %u has %lu left, state %d", (unsigned long)seed, i,
                      (unsigned long)w->res[i].left, w->res[i].f.state);
    }
    rig_run(w, NJ_SEC);
    for (uint32_t i = 0; i < w->n_shards; i++)
        cr_assert_eq(nj_shape_next_at(w->shape[i]), NJ_NEVER, "seed %lu", (unsigned long)seed);
}

static void walk(uint64_t seed)
{
    struct walk *k = calloc(1, sizeof *k);
    nj_prng_init(&k->r, seed);
    struct rig *w = &k->w;
    rig_init(w, 1 + below(k, 2), N_RES);
    any_policy(k, &w->policy);
    rig_start(w, N_RES);
    w->n_res = N_RES;
    for (uint32_t i = 0; i < N_RES; i++)
        any_response(k, &w->res[i]);
    k->changed_at = w->now;
    for (uint32_t i = 0; i < STEPS; i++) {
        rig_run(w, STEP_MS * NJ_MS);
        check_windows(k, seed);
        check_classes(k, seed, i + 1);
        stir(k, i + 1);
        cr_assert_eq(rig_count(w, NJ_C_shape_bytes), rig_sent(w), "seed %lu", (unsigned long)seed);
    }
    check_all_end(k, seed);
    rig_fini(w);
    free(k);
}

Test(shape_random, walks, .timeout = 100)
{
    const char *replay = getenv("NJ_SEED");
    uint64_t first = replay ? strtoull(replay, NULL, 0) : 1, n = replay ? 1 : 150;
    fprintf(stderr, "seeds %lu to %lu\n", (unsigned long)first, (unsigned long)(first + n - 1));
    for (uint64_t seed = first; seed < first + n; seed++)
        walk(seed);
}
