/* SPDX-License-Identifier: BSD-3-Clause */
/* Fairness between classes, clients and responses, with any number of responses, on one shard and
 * on two. */
#include "support/shape_rig.h"

static void two_classes(struct rig *w, uint32_t n_shards, uint64_t total)
{
    rig_two(w, n_shards, 3000, total, (struct nj_limit){total / 4 * 3, total, 0},
            (struct nj_limit){total / 4, total, 0});
}

/* Two classes 3:1, with this many responses of this many clients each. */
static void three_to_one(uint32_t n_shards, uint64_t total, uint32_t n0, uint32_t clients0,
                         uint32_t n1, uint32_t clients1, bool apart)
{
    struct rig w;
    two_classes(&w, n_shards, total);
    rig_crowd(&w, apart ? 0 : RIG_EACH, 0, n0, 1, clients0);
    rig_crowd(&w, apart ? 1 : RIG_EACH, 1, n1, 10000, clients1);
    rig_run(&w, NJ_SEC);
    rig_mark(&w);
    rig_run(&w, 10 * NJ_SEC);
    double a = (double)rig_sum(&w, 0, n0), b = (double)rig_sum(&w, n0, n0 + n1);
    cr_expect(a / b > 3 * 0.98 && a / b < 3 * 1.02, "%u of %u : %u of %u on %u: %.3f", n0, clients0,
              n1, clients1, n_shards, a / b);
    rig_near(a + b, 10.0 * (double)total, 10);
    rig_fini(&w);
}

Test(shape_fair, classes_three_to_one)
{
    three_to_one(1, 20 * MIB, 1, 1, 1, 1, false);
    three_to_one(1, 20 * MIB, 1, 1, 1000, 1, false);
    three_to_one(1, 20 * MIB, 1000, 1000, 1, 1, false);
    three_to_one(1, 20 * MIB, 1, 1, 1000, 1000, false);
    three_to_one(1, 20 * MIB, 30, 3, 500, 77, false);
    three_to_one(1, 2 * MIB, 3, 3, 100, 100, false);
    three_to_one(1, 500 * MIB, 1, 1, 100, 10, false);
}

/* Few clients that need several steps to send a grant still get their share. */
static void three_to_one_with_acks(uint32_t n0, uint32_t sends_max, uint32_t n1)
{
    struct rig w;
    two_classes(&w, 1, 20 * MIB);
    for (uint32_t i = 0; i < n0; i++)
        rig_add(&w, 0, 0, 1, RIG_FOREVER)->sends_max = sends_max;
    rig_crowd(&w, 0, 1, n1, 10000, n1);
    rig_run(&w, NJ_SEC);
    rig_mark(&w);
    rig_run(&w, 10 * NJ_SEC);
    rig_near(rig_sum(&w, 0, n0), 150.0 * MIB, 20);
    rig_near(rig_sum(&w, n0, n0 + n1), 50.0 * MIB, 40);
    rig_fini(&w);
}

Test(shape_fair, three_to_one_though_few_wait_for_acks)
{
    for (uint32_t n = 1; n <= 64; n *= 8)
        for (uint32_t sends_max = 4096; sends_max <= 16384; sends_max *= 2) {
            three_to_one_with_acks(1, sends_max, n);
            three_to_one_with_acks(2, sends_max, n);
            three_to_one_with_acks(3, sends_max, n);
        }
}

Test(shape_fair, classes_three_to_one_on_two_shards)
{
    three_to_one(2, 20 * MIB, 2, 2, 2, 2, false);
    three_to_one(2, 20 * MIB, 1, 1, 1, 1, true);
    three_to_one(2, 20 * MIB, 1, 1, 1000, 100, true);
    three_to_one(2, 20 * MIB, 1000, 1000, 1, 1, true);
    three_to_one(2, 20 * MIB, 10, 10, 1000, 1000, false);
}

Test(shape_fair, clients_have_equal_parts_whatever_they_open)
{
    struct rig w;
    rig_init(&w, 1, 3000);
    rig_class(&w, 0, 10 * MIB, 10 * MIB);
    rig_start(&w, 3000);
    rig_add(&w, 0, 0, 1, RIG_FOREVER);
    rig_crowd(&w, 0, 0, 256, 2, 1);
    rig_crowd(&w, 0, 0, 8, 3, 1);
    rig_run(&w, NJ_SEC);
    rig_mark(&w);
    rig_run(&w, 10 * NJ_SEC);
    double third = 100.0 * MIB / 3;
    rig_near(rig_sum(&w, 0, 1), third, 20);
    rig_near(rig_sum(&w, 1, 257), third, 20);
    rig_near(rig_sum(&w, 257, 265), third, 20);
    rig_fini(&w);
}

/* Eleven clients on one shard, one on the other: twelve equal shares. */
Test(shape_fair, clients_have_equal_parts_on_two_shards)
{
    for (int of_class = 0; of_class < 2; of_class++) {
        struct rig w;
        struct nj_limit l = {20 * MIB, 20 * MIB, 0};
        rig_init(&w, 2, 3000);
        if (of_class)
            w.policy.classes[0].total = l;
        else
            w.policy.total = l;
        rig_start(&w, 3000);
        rig_crowd(&w, 0, 0, 11, 1, 11);
        rig_crowd(&w, 1, 0, 50, 100, 1);
        rig_run(&w, NJ_SEC);
        rig_mark(&w);
        rig_run(&w, 10 * NJ_SEC);
        double part = 200.0 * MIB / 12;
        for (uint32_t i = 0; i < 11; i++)
            rig_near(rig_sum(&w, i, i + 1), part, 30);
        rig_near(rig_sum(&w, 11, 61), part, 30);
        rig_fini(&w);
    }
}

/* One client on both shards beside one on a single shard. */
Test(shape_fair, a_client_on_two_shards_is_one_client)
{
    struct rig w;
    rig_init(&w, 2, 3000);
    rig_class(&w, 0, 20 * MIB, 20 * MIB);
    rig_start(&w, 3000);
    rig_crowd(&w, RIG_EACH, 0, 20, 1, 1);
    rig_add(&w, 0, 0, 2, RIG_FOREVER);
    rig_run(&w, NJ_SEC);
    rig_mark(&w);
    rig_run(&w, 10 * NJ_SEC);
    rig_near(rig_sum(&w, 0, 20), 100.0 * MIB, 30);
    rig_near(rig_sum(&w, 20, 21), 100.0 * MIB, 30);
    rig_fini(&w);
}

Test(shape_fair, a_client_has_one_gate_on_two_shards)
{
    struct rig w;
    rig_init(&w, 2, 3000);
    w.policy.classes[0].client = (struct nj_limit){2 * MIB, 2 * MIB, 0};
    rig_start(&w, 3000);
    rig_crowd(&w, RIG_EACH, 0, 256, 1, 1);
    rig_run(&w, 10 * NJ_SEC);
    rig_near(rig_sent(&w), 20.0 * MIB, 10);
    cr_expect_leq(rig_window(&w, 0, 10000, 100), 2 * MIB / 10 + 2 * MIB / 20);
    rig_mark(&w);
    for (uint32_t i = 0; i < 256; i += 2) /* the other shard stops: this one gets everything */
        w.res[i].stuck = true;
    rig_run(&w, 10 * NJ_SEC);
    rig_near(rig_sum(&w, 0, 256), 20.0 * MIB, 10);
    rig_fini(&w);
}

Test(shape_fair, responses_of_a_client_share)
{
    struct rig w;
    rig_init(&w, 1, 100);
    w.policy.classes[0].client = (struct nj_limit){0, 10 * MIB, 0};
    rig_start(&w, 100);
    rig_crowd(&w, 0, 0, 20, 1, 1);
    rig_run(&w, NJ_SEC); /* the first client uses the burst */
    rig_mark(&w);
    rig_run(&w, 10 * NJ_SEC);
    for (uint32_t i = 0; i < 20; i++)
        rig_near(rig_sum(&w, i, i + 1), 5.0 * MIB, 20);
    rig_fini(&w);
}

/* Unused guaranteed rate is available to others at once, and is returned at once. */
Test(shape_fair, borrowing_ends_when_the_owner_comes_back)
{
    struct rig w;
    two_classes(&w, 1, 20 * MIB);
    rig_crowd(&w, 0, 1, 50, 10, 50);
    rig_run(&w, 2 * NJ_SEC);
    rig_near(rig_sum(&w, 0, 50), 40.0 * MIB, 35);
    rig_add(&w, 0, 0, 1, RIG_FOREVER);
    rig_run(&w, 100 * NJ_MS);
    rig_mark(&w);
    rig_run(&w, NJ_SEC);
    rig_near(rig_sum(&w, 50, 51), 15.0 * MIB, 20);
    w.res[50].stuck = true;
    rig_run(&w, 100 * NJ_MS);
    rig_mark(&w);
    rig_run(&w, NJ_SEC);
    rig_near(rig_sum(&w, 0, 50), 20.0 * MIB, 20);
    rig_fini(&w);
}

Test(shape_fair, a_ceiling_ends_borrowing)
{
    struct rig w;
    rig_two(&w, 1, 100, 20 * MIB, (struct nj_limit){15 * MIB, 20 * MIB, 0},
            (struct nj_limit){5 * MIB, 8 * MIB, 0});
    rig_crowd(&w, 0, 1, 20, 1, 20);
    rig_run(&w, 5 * NJ_SEC);
    rig_near(rig_sent(&w), 40.0 * MIB, 15);
    rig_fini(&w);
}

/* A class without a guaranteed rate takes nothing from the guarantee of another. */
Test(shape_fair, who_is_sure_of_something_has_it)
{
    struct rig w;
    rig_two(&w, 1, 300, 20 * MIB, (struct nj_limit){0}, (struct nj_limit){15 * MIB, 0, 0});
    rig_crowd(&w, 0, 0, 200, 1, 200);
    rig_add(&w, 0, 1, 1000, RIG_FOREVER);
    rig_run(&w, NJ_SEC);
    rig_mark(&w);
    rig_run(&w, 10 * NJ_SEC);
    rig_near(rig_sum(&w, 200, 201), 150.0 * MIB, 20);
    rig_near(rig_sum(&w, 0, 200), 50.0 * MIB, 20);
    rig_fini(&w);
}
