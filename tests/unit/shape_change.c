/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits change while responses are sent: effective within 100 ms, up and down, on every level. */
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

/* Changes `before` to `after`: the rate from 100 ms to 1.1 s later is the new one. */
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
            change(l, 1, 20 * MIB, n); /* responses that would have waited for 49 minutes */
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
        r->stuck = true; /* without limits it would never stop */
        rig_run(&w, NJ_SEC);
        struct nj_policy limited = w.policy, free = w.policy;
        set(&limited, l, MIB);
        free.version = 3;
        rig_adopt(&w, &limited);
        r->stuck = false;
        rig_ready(r);
        rig_run(&w, 2 * NJ_SEC);
        rig_near(r->sent, 2.0 * MIB, 40);
        cr_assert(nj_paced_is_waiting(&r->f));
        r->stuck = true;
        rig_adopt(&w, &free);
        rig_run(&w, 2 * NJ_MS);
        cr_expect_not(nj_paced_is_waiting(&r->f), "it is woken");
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

/* A slot keeps its responses whatever the index of its class; those of a removed class get the
 * default class. */
Test(shape_change, classes_by_slot)
{
    struct rig w;
    start_classes(&w, 3);
    struct nj_policy next = w.policy;
    next.classes[1] = w.policy.classes[2]; /* slot 1 is free */
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

/* Another class gets the slot: it has none of the former responses, and its statistics start at
 * zero. */
Test(shape_change, classes_by_name)
{
    struct rig w;
    start_classes(&w, 2);
    const struct nj_class_stats *old = nj_shape_class_stats(w.shape[0], 0);
    const struct nj_class_stats *new = nj_shape_class_stats(w.shape[0], 1);
    cr_assert(new->n_open == 1 && new->n_waiting == 1 && new->n_bytes > 100 * KIB);
    struct nj_policy next = w.policy;
    next.classes[1].slot_gen++;
    next.version++;
    rig_adopt(&w, &next);
    rig_step(&w);
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

#define CROWD (4 * NJ_SHAPE_MIGRATE_MAX - 10)

static uint32_t n_waiting(const struct rig *w)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->n_res; i++)
        n += w->res[i].open && nj_paced_is_waiting(&w->res[i].f);
    return n;
}

/* Responses with very long waits, of some clients in two classes. */
static void crowd(struct rig *w)
{
    rig_init(w, 1, CROWD + 10);
    set(&w->policy, REQUEST, 1);
    rig_class(w, 1, 0, 0);
    w->policy.classes[1].request = w->policy.classes[0].request;
    rig_start(w, CROWD + 10);
    for (uint32_t i = 0; i < CROWD; i++)
        rig_add(w, 0, i % 2, 1 + i % 100, RIG_FOREVER);
    rig_run(w, 10 * NJ_MS);
    cr_assert_eq(n_waiting(w), CROWD);
}

/* A run moves a bounded number of responses, and the former policy is used until all are moved. */
Test(shape_change, so_many_follow_in_a_run)
{
    struct rig w;
    crowd(&w);
    struct nj_policy free = nj_policy_none;
    free.version = 9;
    for (uint32_t i = 0; i < w.n_res; i++)
        w.res[i].stuck = true;
    cr_expect(nj_shape_is_migrated(w.shape[0]));
    rig_adopt(&w, &free);
    cr_expect_eq(nj_shape_policy(w.shape[0]), &free);
    uint32_t n_runs = 0, left = CROWD;
    while (left > 0) {
        cr_assert(n_runs < 20);
        cr_expect_eq(nj_shape_is_migrated(w.shape[0]), n_runs >= 4, "run %u", n_runs);
        cr_expect_eq(nj_shape_next_at(w.shape[0]) == w.now, n_runs < 4, "run %u", n_runs);
        n_runs++;
        w.now += 2 * NJ_MS; /* a tick of the wheel */
        rig_step(&w);
        uint32_t now = n_waiting(&w);
        cr_expect(left - now <= NJ_SHAPE_MIGRATE_MAX, "%u at once", left - now);
        left = now;
    }
    cr_expect_geq(n_runs, 4);
    cr_expect_eq(nj_shape_class_stats(w.shape[0], 1)->n_open, 0, "the class is gone");
    cr_expect_eq(nj_shape_class_stats(w.shape[0], 1)->n_waiting, 0);
    cr_expect_eq(nj_shape_class_stats(w.shape[0], 0)->n_open, CROWD);
    cr_expect_eq(nj_shape_class_stats(w.shape[0], 0)->n_waiting, 0);
    rig_fini(&w);
}

/* The second change comes when only some responses have been moved to the first, which stops all.
 */
Test(shape_change, another_before_all_have_followed)
{
    for (enum level l = CLASS; l < N_LEVELS; l++) {
        struct rig w;
        crowd(&w);
        struct nj_policy slow = w.policy, fast = w.policy;
        set(&slow, l, 1);
        slow.n_classes = 1;
        set(&fast, REQUEST, 100 * KIB);
        fast.classes[1].request = fast.classes[0].request;
        rig_adopt(&w, &slow);
        rig_step(&w);
        cr_expect_not(nj_shape_is_migrated(w.shape[0]));
        rig_adopt(&w, &fast);
        rig_run(&w, 100 * NJ_MS);
        cr_expect(nj_shape_is_migrated(w.shape[0]));
        for (uint32_t i = 0; i < CROWD; i++)
            w.res[i].mark = w.res[i].sent;
        rig_run(&w, NJ_SEC);
        for (uint32_t i = 0; i < CROWD; i++)
            rig_near(w.res[i].sent - w.res[i].mark, 100.0 * KIB, 60);
        rig_fini(&w);
    }
}

/* A slot gets another class, and policies change again before all former responses have left it:
 * they still leave, and later ones stay. */
Test(shape_change, another_class_and_another_change)
{
    struct rig w;
    crowd(&w);
    const struct nj_class_stats *first = nj_shape_class_stats(w.shape[0], 0);
    const struct nj_class_stats *slot = nj_shape_class_stats(w.shape[0], 1);
    struct nj_policy next = w.policy, again;
    next.classes[1].slot_gen++;
    next.version++;
    again = next;
    again.version++;
    rig_adopt(&w, &next);
    struct rig_res *fresh =
        rig_add(&w, 0, 1, 2, RIG_FOREVER); /* whose client has others in the slot */
    rig_step(&w);
    rig_adopt(&w, &again);
    cr_expect_not(nj_shape_is_migrated(w.shape[0]));
    rig_run(&w, 100 * NJ_MS);
    cr_expect_eq(slot->n_open, 1);
    cr_expect_eq(slot->n_requests, 1);
    cr_expect_eq(first->n_open, CROWD);
    rig_end(fresh);
    cr_expect_eq(slot->n_open, 0);
    rig_fini(&w);
}

/* Some responses begin and some end while others are moved. New ones follow the new policy at once,
 * also for a client with former ones. */
Test(shape_change, comings_and_goings_meanwhile)
{
    struct rig w;
    crowd(&w);
    struct nj_policy next = w.policy;
    set(&next, CLIENT, 200 * KIB);
    next.n_classes = 1;
    rig_adopt(&w, &next);
    struct rig_res *old = rig_add(&w, 0, 0, 51, RIG_FOREVER); /* its group has not been moved */
    struct rig_res *fresh = rig_add(&w, 0, 0, 1000, RIG_FOREVER);
    for (uint32_t i = 0; i < CROWD; i += 3)
        rig_end(&w.res[i]);
    rig_step(&w);
    cr_expect_not(nj_shape_is_migrated(w.shape[0]));
    cr_expect(old->f.limited && fresh->f.limited);
    cr_expect_geq(fresh->sent, NJ_QUANTUM_MIN_BYTES);
    for (uint32_t i = 1; i < CROWD; i += 3)
        rig_end(&w.res[i]);
    rig_run(&w, 100 * NJ_MS);
    fresh->mark = fresh->sent;
    uint64_t at = rig_sent(&w);
    rig_run(&w, NJ_SEC);
    rig_near(fresh->sent - fresh->mark, 200.0 * KIB, 60);
    /* All clients still send some. */
    rig_near(rig_sent(&w) - at, 101 * 200.0 * KIB, 60);
    rig_fini(&w);
}
