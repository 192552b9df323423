/* SPDX-License-Identifier: BSD-3-Clause */
/* Rates are kept and reached: of a response, of the server, of classes and clients. */
#include "support/shape_rig.h"
#include "telem/counters.h"

/* Ten thousand downloads at 20 KiB/s on one shard: each within 1 % over 30 s. */
Test(shape_rates, ten_thousand_responses, .timeout = 100)
{
    enum { N = 10000 };
    struct rig w;
    rig_init(&w, 1, N);
    w.policy.classes[0].request = (struct nj_limit){20 * KIB, 20 * KIB, 0};
    rig_start(&w, N);
    for (uint32_t i = 0; i < N; i++) {
        rig_add(&w, 0, 0, 1 + i, RIG_FOREVER);
        if (i % 100 == 99)
            rig_run(&w, NJ_MS);
    }
    rig_mark(&w);
    rig_run(&w, 30 * NJ_SEC);
    for (uint32_t i = 0; i < N; i++) {
        double got = (double)rig_sum(&w, i, i + 1);
        cr_assert(got >= 0.99 * 30 * 20 * KIB && got <= 1.01 * 30 * 20 * KIB, "%u: %.0f", i, got);
        cr_assert_eq(w.res[i].n_short_wakes, 0);
    }
    cr_expect_leq(rig_count(&w, NJ_C_shape_wakes_empty) * 100, rig_count(&w, NJ_C_shape_wakes));
    cr_expect_gt(w.res[0].n_rests, 0, "rest() of its body is called while it waits");
    rig_fini(&w);
}

/* From its first byte on. */
Test(shape_rates, a_response_of_any_rate)
{
    static const uint64_t rates[] = {3 * KIB, 20 * KIB, 200 * KIB, 5 * MIB, 300 * MIB, 8192 * MIB};
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(rates); i++) {
        struct rig w;
        rig_init(&w, 1, 1);
        w.policy.classes[0].request = (struct nj_limit){rates[i], rates[i], 0};
        rig_start(&w, 1);
        rig_add(&w, 0, 0, 1, RIG_FOREVER);
        rig_run(&w, 30 * NJ_SEC);
        cr_expect(w.res[0].sent >= 0.99 * 30 * rates[i] - NJ_QUANTUM_MAX_BYTES &&
                      w.res[0].sent <= 1.01 * 30 * rates[i] + NJ_QUANTUM_MAX_BYTES,
                  "%lu: %lu", (unsigned long)rates[i], (unsigned long)w.res[0].sent);
        rig_fini(&w);
    }
}

/* ---- the whole server ---- */

#define TOTAL (20 * MIB)
#define BURST (TOTAL / 20)

static void check_total(struct rig *w, uint32_t from_ms, uint32_t to_ms, const char *what)
{
    uint64_t sum = 0;
    for (uint32_t i = from_ms; i < to_ms; i++)
        sum += rig_in_ms(w, i);
    double want = (double)TOTAL * (to_ms - from_ms) / 1000;
    cr_expect(sum >= 0.99 * want && sum <= want + BURST, "%s: %.4f", what, (double)sum / want);
    uint64_t most = rig_window(w, from_ms, to_ms, 100);
    cr_expect_leq(most, TOTAL / 10 + BURST, "%s: %lu", what, (unsigned long)most);
}

static void total_with(uint32_t n_shards, uint32_t n, uint32_t n_clients, const char *what)
{
    struct rig w;
    rig_init(&w, n_shards, n);
    w.policy.total = (struct nj_limit){TOTAL, TOTAL, 0};
    rig_start(&w, n);
    rig_crowd(&w, RIG_EACH, 0, n, 1, n_clients);
    rig_run(&w, 5 * NJ_SEC);
    check_total(&w, 0, 5000, what);
    rig_fini(&w);
}

Test(shape_rates, the_server_with_few_and_many)
{
    total_with(1, 1, 1, "one");
    total_with(1, 3, 3, "three");
    total_with(1, 100, 1, "a hundred of one");
    total_with(1, 100, 100, "a hundred");
    total_with(1, 5000, 5000, "five thousand");
    total_with(2, 2, 2, "one on each shard");
    total_with(2, 1000, 30, "a thousand on two shards");
}

static struct nj_prng dice;

static void again(struct rig_res *r)
{
    uint64_t sent = r->sent, n = 1 + nj_prng_below(&dice, 100000);
    rig_open_at(r->rig, r, r->shard, 0, 1 + nj_prng_below(&dice, 50), n);
    r->sent = sent;
}

/* Short responses of many sizes, one after the other. */
Test(shape_rates, the_server_with_short_ones)
{
    struct rig w;
    rig_init(&w, 1, 200);
    w.policy.total = (struct nj_limit){TOTAL, TOTAL, 0};
    rig_start(&w, 200);
    w.ended = again;
    nj_prng_init(&dice, 1);
    for (uint32_t i = 0; i < 200; i++)
        rig_add(&w, 0, 0, 1 + i, 1 + nj_prng_below(&dice, 100000));
    rig_run(&w, 5 * NJ_SEC);
    check_total(&w, 0, 5000, "short ones");
    w.ended = NULL;
    rig_fini(&w);
}

Test(shape_rates, the_server_after_a_pause)
{
    struct rig w;
    rig_init(&w, 1, 300);
    w.policy.total = (struct nj_limit){TOTAL, TOTAL, 0};
    rig_start(&w, 300);
    for (uint32_t i = 0; i < 100; i++)
        rig_add(&w, 0, 0, 1 + i, 100 * KIB);
    rig_run(&w, 2 * NJ_SEC);
    cr_expect_eq(rig_sent(&w), 100 * 100 * KIB, "less than a second's worth");
    rig_crowd(&w, 0, 0, 200, 1, 200);
    rig_run(&w, 2 * NJ_SEC);
    check_total(&w, 2000, 4000, "after a pause");
    rig_fini(&w);
}

/* ---- below a class ---- */

Test(shape_rates, a_lone_response_has_all_of_its_class)
{
    struct rig w;
    rig_two(&w, 1, 1, 0, (struct nj_limit){0}, (struct nj_limit){3 * MIB, 3 * MIB, 0});
    rig_add(&w, 0, 1, 1, RIG_FOREVER);
    rig_run(&w, 10 * NJ_SEC);
    rig_near(rig_sent(&w), 30.0 * MIB, 10);
    rig_fini(&w);
}

Test(shape_rates, every_ceiling_on_the_way_holds)
{
    struct rig w;
    rig_init(&w, 1, 400);
    w.policy.total = (struct nj_limit){10 * MIB, 10 * MIB, 0};
    rig_class(&w, 0, MIB, 8 * MIB);
    rig_class(&w, 1, MIB, 3 * MIB);
    w.policy.classes[0].client = (struct nj_limit){0, 2 * MIB, 0};
    w.policy.classes[1].request = (struct nj_limit){0, 500 * KIB, 0};
    rig_start(&w, 400);
    rig_crowd(&w, 0, 0, 10, 1, 2); /* two clients: 4 MiB/s */
    rig_add(&w, 0, 1, 10, RIG_FOREVER);
    rig_run(&w, 5 * NJ_SEC);
    uint64_t client = 0;
    for (uint32_t i = 0; i < 10; i += 2)
        client += w.res[i].sent;
    rig_near(client, 10.0 * MIB, 15);
    rig_near(w.res[10].sent, 2500.0 * KIB, 10);
    rig_crowd(&w, 0, 1, 20, 20, 20);
    rig_mark(&w);
    rig_run(&w, 5 * NJ_SEC);
    rig_near(rig_sum(&w, 10, 31), 15.0 * MIB, 15);
    rig_fini(&w);
}

static uint32_t n_ended;

static void another_small(struct rig_res *r)
{
    rig_open_at(r->rig, r, 0, 0, 1, 1000 + 97 * n_ended++ % 1900);
}

/* With a small burst: the credit held by an lcore during a long pause, an unused grant, the
 * remainder of a lease, and the credit accumulated meanwhile do not exceed the burst. */
Test(shape_rates, small_burst_after_a_long_step)
{
    struct rig w;
    const uint64_t rate = 10 * NJ_QUANTUM_MIN_BYTES, burst = 2 * NJ_QUANTUM_MIN_BYTES;

    rig_init(&w, 1, 20);
    w.policy.classes[0].client = (struct nj_limit){rate, rate, 0};
    rig_start(&w, 20);
    w.ended = another_small;
    struct rig_res *stuck = rig_add(&w, 0, 0, 1, RIG_FOREVER);
    for (uint32_t i = 0; i < 12; i++)
        rig_add(&w, 0, 0, 1, 1500);
    for (uint32_t i = 0; i < 100; i++) {
        for (uint32_t k = 0; stuck->f.granted == 0; k++) {
            cr_assert_lt(k, 1000000);
            stuck->stuck |= nj_paced_is_waiting(&stuck->f);
            w.now += RIG_STEP_NS;
            rig_step(&w);
        }
        w.now += NJ_SEC;
        uint64_t before = rig_sent(&w);
        for (uint32_t k = 0; k < 20; k++, w.now += RIG_STEP_NS)
            rig_step(&w);
        cr_assert_leq(rig_sent(&w) - before, burst + rate / 1000, "round %u", i);
        stuck->stuck = false;
        rig_ready(stuck);
        rig_run(&w, 100 * NJ_MS);
    }
    cr_expect_gt(n_ended, 100);
    rig_fini(&w);
}
