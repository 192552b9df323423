/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits change while responses run: felt within 100 ms, up and down, on every level. */
#include "support/shape_rig.h"

enum level { TOTAL, CLASS, CLIENT, REQUEST, N_LEVELS };

static void set(struct nj_policy *p, enum level level, uint64_t rate)
{
    struct nj_limit l = {rate, rate, 0};
    p->total = level == TOTAL ? l : (struct nj_limit){0};
    p->classes[0].total = level == CLASS ? l : (struct nj_limit){0};
    p->classes[0].client = level == CLIENT ? l : (struct nj_limit){0};
    p->classes[0].request = level == REQUEST ? l : (struct nj_limit){0};
    p->version++;
}

/* From `before` to `after`: what goes between 100 ms and 1.1 s later is the new rate's. */
static void change(enum level level, uint64_t before, uint64_t after, uint32_t n_shards)
{
    struct rig w;
    rig_init(&w, n_shards, 10);
    set(&w.policy, level, before);
    rig_start(&w, 10);
    uint32_t n = level == REQUEST ? 1 : 4;
    rig_crowd(&w, RIG_EACH, 0, n, 1, 1);
    rig_run(&w, 3 * NJ_SEC);
    struct nj_policy next = w.policy;
    set(&next, level, after);
    rig_adopt(&w, &next);
    rig_run(&w, 100 * NJ_MS);
    uint64_t at = rig_sent(&w);
    rig_run(&w, NJ_SEC);
    double got = (double)(rig_sent(&w) - at);
    uint64_t slack = NJ_QUANTUM_MIN_BYTES * n_shards + after / 50;
    cr_expect(got + slack >= after && got <= after + slack, "level %d, %lu to %lu on %u: %.0f",
              level, (unsigned long)before, (unsigned long)after, n_shards, got);
    rig_fini(&w);
}

Test(shape_change, is_felt_within_100_ms)
{
    for (enum level l = TOTAL; l < N_LEVELS; l++) {
        for (uint32_t n = 1; n <= 2; n++) {
            change(l, MIB, 10 * MIB, n);
            change(l, 10 * MIB, MIB, n);
            change(l, 1, 20 * MIB, n); /* those who would have waited for 49 minutes */
            change(l, 1, 100 * KIB, n);
            change(l, 200 * MIB, 200 * KIB, n);
        }
    }
}

Test(shape_change, limits_come_and_go)
{
    for (enum level l = TOTAL; l < N_LEVELS; l++) {
        struct rig w;
        rig_init(&w, 1, 10);
        rig_start(&w, 10);
        struct rig_res *r = rig_add(&w, 0, 0, 1, RIG_FOREVER);
        r->stuck = true; /* without limits it would run for ever */
        rig_run(&w, NJ_SEC);
        struct nj_policy limited = w.policy, free = w.policy;
        set(&limited, l, MIB);
        free.version = 3;
        rig_adopt(&w, &limited);
        r->stuck = false;
        rig_ready(r);
        rig_run(&w, 2 * NJ_SEC);
        rig_near(r->sent, 2.0 * MIB, 40);
        cr_assert(nj_paced_waits(&r->f));
        r->stuck = true;
        rig_adopt(&w, &free);
        rig_run(&w, 2 * NJ_MS);
        cr_expect_not(nj_paced_waits(&r->f), "it is woken");
        r->stuck = false;
        r->left = 100 * MIB;
        rig_ready(r);
        rig_run(&w, NJ_MS);
        cr_expect_not(r->open, "and runs");
        rig_fini(&w);
    }
}

/* 100, 200, 400 KiB/s, and a response in each. */
static void start_classes(struct rig *w, uint32_t n)
{
    rig_init(w, 1, 10);
    for (uint32_t i = 0; i < n; i++) {
        rig_class(w, i, 0, (100 * KIB) << i);
        snprintf(w->policy.classes[i].name, NJ_CLASS_NAME_MAX, "c%u", i);
    }
    rig_start(w, 10);
    for (uint32_t i = 0; i < n; i++)
        rig_add(w, 0, i, 1 + i, RIG_FOREVER);
    rig_run(w, NJ_SEC);
}

/* A slot keeps its responses whatever index its class has; those of a class that is gone become
 * the default class's. */
Test(shape_change, classes_by_slot)
{
    struct rig w;
    start_classes(&w, 3);
    struct nj_policy next = w.policy;
    next.classes[1] = w.policy.classes[2]; /* slot 1 is gone */
    next.n_classes = 2;
    next.version++;
    rig_adopt(&w, &next);
    rig_mark(&w);
    rig_run(&w, 10 * NJ_SEC);
    rig_near(rig_sum(&w, 2, 3), 4000.0 * KIB, 20);
    uint64_t both = rig_sum(&w, 0, 2);
    rig_near(both, 1000.0 * KIB, 20);
    rig_near(rig_sum(&w, 1, 2), 500.0 * KIB, 30);
    cr_expect_eq(nj_shape_class_stats(w.shape[0], 1)->n_open, 0);
    cr_expect_eq(nj_shape_class_stats(w.shape[0], 0)->n_open, 2);
    rig_fini(&w);
}

/* Another class in the same slot: what ran there is not of it, and it counts from zero. */
Test(shape_change, classes_by_name)
{
    struct rig w;
    start_classes(&w, 2);
    const struct nj_class_stats *old = nj_shape_class_stats(w.shape[0], 0);
    const struct nj_class_stats *new = nj_shape_class_stats(w.shape[0], 1);
    cr_assert(new->n_open == 1 && new->n_waiting == 1 && new->n_bytes > 100 * KIB);
    struct nj_policy next = w.policy;
    snprintf(next.classes[1].name, NJ_CLASS_NAME_MAX, "after");
    next.version++;
    rig_adopt(&w, &next);
    cr_expect(new->n_open == 0 && new->n_waiting == 0 && old->n_open == 2);
    cr_expect(new->n_bytes == 0 && new->n_requests == 0 && new->throttled_ns == 0);
    uint64_t mark = w.res[1].sent;
    rig_run(&w, 10 * NJ_SEC);
    rig_near(w.res[1].sent - mark, 500.0 * KIB, 30);
    cr_expect_eq(new->n_bytes, 0);
    rig_fini(&w);
}

Test(shape_change, many_times)
{
    struct rig w;
    rig_init(&w, 2, 200);
    set(&w.policy, CLIENT, MIB);
    rig_start(&w, 200);
    rig_crowd(&w, RIG_EACH, 0, 200, 1, 7);
    struct nj_policy p[2] = {w.policy, w.policy};
    for (uint32_t i = 0; i < 200; i++) {
        set(&p[i % 2], (enum level)(i % N_LEVELS), (i * 7919 % 1000 + 1) * 10 * KIB);
        rig_adopt(&w, &p[i % 2]);
        rig_run(&w, 7 * NJ_MS);
    }
    rig_fini(&w);
}
