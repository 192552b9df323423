/* SPDX-License-Identifier: BSD-3-Clause */
/* A paced body as HTTP/2 sees it: what it shows, when it waits, and to where its credit returns. */
#include "support/shape_rig.h"
#include "telem/counters.h"

/* One response under a common limit, or under its own. */
static struct rig_res *limited(struct rig *w, bool shared, struct nj_limit l, uint64_t n_bytes)
{
    rig_init(w, 1, 10);
    *(shared ? &w->policy.total : &w->policy.classes[0].request) = l;
    rig_start(w, 10);
    return rig_add(w, 0, 0, 1, n_bytes);
}

static struct rig_res *one(struct rig *w, struct nj_limit request, uint64_t n_bytes)
{
    return limited(w, false, request, n_bytes);
}

static int peek(struct rig_res *r, uint32_t n)
{
    struct nj_slice slice;
    r->f.body.waiter = r;
    return r->f.body.ops->peek(&r->f.body, n, &slice);
}

static void take(struct rig_res *r, uint32_t n)
{
    r->f.body.ops->advance(&r->f.body, n);
    r->rig->sent[r->shard] += n;
}

/* It has its first quantum, and further credit is refused. */
static void spend(struct rig_res *r)
{
    cr_assert_eq(peek(r, 16384), 2920);
    take(r, 2920);
    cr_assert_eq(peek(r, 16384), 0);
}

Test(shape_paced_body, without_limits_everything_passes)
{
    struct rig w;
    struct rig_res *r = one(&w, (struct nj_limit){0}, 100000);
    cr_expect_eq(r->f.body.ops->remaining(&r->f.body), 100000);
    cr_expect_eq(peek(r, 16384), 16384);
    cr_expect_eq(r->inner.waiter, r, "its source wakes the refused body");
    take(r, 1000);
    cr_expect_eq(r->f.n_bytes, 1000);
    cr_expect_eq(r->f.first_byte_at, w.now);
    r->dry = true;
    cr_expect_eq(peek(r, 16384), 0);
    r->dry = false;
    cr_expect_eq(peek(r, 16384), 16384);
    cr_expect_not(nj_paced_is_waiting(&r->f));
    cr_expect_eq(nj_shape_class_stats(w.shape[0], 0)->n_bytes, 1000);
    rig_fini(&w);
}

Test(shape_paced_body, no_body_is_not_wrapped)
{
    struct rig w;
    rig_init(&w, 1, 10);
    rig_start(&w, 10);
    struct nj_paced f;
    struct nj_client *c = nj_client_take(nj_shape_clients(w.shared), 1, NULL, w.now);
    cr_assert(nj_paced_begin(w.shape[0], &f, &w.policy.classes[0], c, w.now));
    cr_expect_null(nj_paced_wrap(&f, NULL));
    nj_paced_end(&f);
    nj_client_put(c, w.now);
    rig_fini(&w);
}

Test(shape_paced_body, it_waits_until_a_quantum_is_its_own)
{
    struct rig w;
    struct rig_res *r = one(&w, (struct nj_limit){20 * KIB, 20 * KIB, 0}, 10000);
    spend(r);
    cr_expect_eq(r->n_rests, 1);
    cr_expect(nj_paced_is_waiting(&r->f));
    cr_expect_eq(peek(r, 16384), 0, "asking again changes nothing");
    cr_expect_eq(rig_count(&w, NJ_C_shape_throttled), 1);
    nj_ns due = nj_shape_next_at(w.shape[0]);
    nj_ns quantum = 2920 * NJ_SEC / (20 * KIB);
    cr_expect(due >= w.now + quantum - 1 && due < w.now + quantum + 2 * NJ_MS);
    cr_expect_eq(nj_shape_run(w.shape[0], w.now + quantum - NJ_MS, rig_wake, NULL), 0);
    cr_expect_eq(nj_shape_run(w.shape[0], due, rig_wake, NULL), 1);
    cr_expect(nj_list_linked(&r->ready));
    cr_expect_not(nj_paced_is_waiting(&r->f));
    cr_expect_eq(peek(r, 1000), 1000, "in parts, if HTTP/2 likes");
    take(r, 1000);
    cr_expect_eq(peek(r, 16384), 1920);
    take(r, 1920);
    cr_expect_eq(r->f.throttled_ns, due - w.now);
    cr_expect_eq(peek(r, 16384), 0);
    rig_fini(&w);
}

/* The windows closed between the wake and the next run: no credit is lost, and the wake is counted.
 */
Test(shape_paced_body, credit_that_is_not_used_goes_back)
{
    struct rig w;
    struct rig_res *r = one(&w, (struct nj_limit){20 * KIB, 20 * KIB, 0}, 100000);
    spend(r);
    w.now = nj_shape_next_at(w.shape[0]);
    cr_assert_eq(nj_shape_run(w.shape[0], w.now, rig_wake, NULL), 1);
    cr_expect_eq(nj_shape_next_at(w.shape[0]), w.now, "so that it goes back soon");
    nj_shape_run(w.shape[0], w.now + 1, rig_wake, NULL);
    cr_expect_eq(rig_count(&w, NJ_C_shape_wakes_empty), 1);
    cr_expect_eq(r->f.granted, 0);
    cr_expect_eq(peek(r, 16384), 2920, "it has it still");
    take(r, 1);
    nj_shape_run(w.shape[0], w.now + 2, rig_wake, NULL);
    cr_expect_eq(rig_count(&w, NJ_C_shape_wakes_empty), 1, "this one was not empty");
    rig_fini(&w);
}

/* On every level: unused credit is available to others at once, and the remainder returns to the
 * GCRAs. */
Test(shape_paced_body, credit_goes_back_on_all_levels)
{
    struct rig w;
    rig_init(&w, 1, 10);
    struct nj_limit l = {MIB, MIB, 0};
    w.policy.total = w.policy.classes[0].total = w.policy.classes[0].client = l;
    rig_start(&w, 10);
    struct rig_res *a = rig_add(&w, 0, 0, 1, RIG_FOREVER);
    int n = peek(a, 16384);
    cr_assert_gt(n, 2000);
    w.now += NJ_US;
    nj_shape_run(w.shape[0], w.now, rig_wake, NULL);
    uint64_t at = w.now * NJ_GCRA_UNITS;
    cr_expect_leq(a->client->rate_gcra.tat, at, "the gate is unchanged");
    cr_expect_eq(nj_shape_next_at(w.shape[0]) == w.now, false, "and all is quiet");
    rig_fini(&w);
}

Test(shape_paced_body, a_source_that_has_nothing_keeps_its_turn)
{
    struct rig w;
    rig_init(&w, 1, 60);
    w.policy.classes[0].client = (struct nj_limit){0, MIB, 0};
    rig_start(&w, 60);
    rig_crowd(&w, 0, 0, 50, 1, 1);
    rig_run(&w, NJ_SEC);
    struct rig_res *r = &w.res[7];
    for (uint32_t i = 0; i < 20; i++) { /* the chunk is late each time */
        r->dry = true;
        rig_run(&w, 300 * NJ_MS); /* two rounds of all */
        uint64_t before = r->sent;
        r->dry = false;
        rig_ready(r);
        rig_run(&w, 20 * NJ_MS);
        cr_expect_gt(r->sent, before, "turn %u", i);
    }
    rig_fini(&w);
}

Test(shape_paced_body, a_source_that_shows_little)
{
    struct rig w;
    one(&w, (struct nj_limit){200 * KIB, 200 * KIB, 0}, RIG_FOREVER);
    w.res[0].shows_max = 700;
    rig_run(&w, 10 * NJ_SEC);
    rig_near(w.res[0].sent, 2000.0 * KIB, 10);
    rig_fini(&w);
}

Test(shape_paced_body, bodies_of_unknown_length)
{
    for (int shared = 0; shared < 2; shared++) {
        struct rig w;
        limited(&w, shared, (struct nj_limit){100 * KIB, 100 * KIB, 0}, 50000)->unknown = true;
        rig_run(&w, 2 * NJ_SEC);
        cr_expect_eq(w.res[0].sent, 50000);
        cr_expect_not(w.res[0].open, "its end was found");
        rig_fini(&w);
    }
}

/* The body ends while it waits for credit: it is woken to report its end. */
Test(shape_paced_body, a_source_that_ends_while_it_waits)
{
    for (int shared = 0; shared < 2; shared++) {
        struct rig w;
        struct nj_limit l = {20 * KIB, 20 * KIB, 0};
        struct rig_res *r = limited(&w, shared, l, RIG_FOREVER);
        r->unknown = true;
        rig_run(&w, NJ_SEC);
        cr_assert(nj_paced_is_waiting(&r->f));
        r->left = 0;
        rig_run(&w, NJ_SEC);
        cr_expect_not(r->open);
        rig_fini(&w);
    }
}

Test(shape_paced_body, the_first_bytes_are_free)
{
    struct rig w;
    rig_init(&w, 1, 10);
    w.policy.classes[0].request = (struct nj_limit){20 * KIB, 20 * KIB, 0};
    w.policy.classes[0].rate_after = 64 * KIB;
    rig_start(&w, 10);
    rig_add(&w, 0, 0, 1, RIG_FOREVER);
    rig_run(&w, NJ_MS);
    cr_expect(w.res[0].sent >= 64 * KIB && w.res[0].sent <= 64 * KIB + 2920, "%lu",
              (unsigned long)w.res[0].sent);
    rig_run(&w, 30 * NJ_SEC);
    rig_near(w.res[0].sent - 64 * KIB, 600.0 * KIB, 10);
    rig_fini(&w);
}

Test(shape_paced_body, a_burst_that_was_asked_for)
{
    struct rig w;
    one(&w, (struct nj_limit){20 * KIB, 20 * KIB, 100 * KIB}, RIG_FOREVER);
    rig_run(&w, NJ_MS);
    cr_expect(w.res[0].sent <= 100 * KIB && w.res[0].sent > 97 * KIB);
    rig_fini(&w);
}

/* Closed in any state, it frees everything (rig_fini checks). */
Test(shape_paced_body, closed_while_it_waits)
{
    struct rig w;
    rig_init(&w, 1, 10);
    w.policy.total = (struct nj_limit){MIB, MIB, 0};
    rig_class(&w, 0, 0, 0);
    rig_class(&w, 1, 0, 0);
    w.policy.classes[1].request = (struct nj_limit){0, 20 * KIB, 0};
    rig_start(&w, 10);
    for (uint32_t i = 0; i < 8; i++)
        rig_add(&w, 0, i % 2, 1 + i / 2, RIG_FOREVER);
    rig_run(&w, NJ_SEC);
    uint32_t n_waiting = 0;
    for (uint32_t i = 0; i < 8; i++)
        n_waiting += nj_paced_is_waiting(&w.res[i].f);
    cr_expect_eq(n_waiting, 8);
    cr_expect_eq(rig_count(&w, NJ_C_shape_waiting), 8);
    rig_end(&w.res[2]);
    rig_end(&w.res[3]);
    rig_run(&w, NJ_SEC);
    nj_shape_run(w.shape[0], w.now, rig_wake, NULL); /* some have credit in hand now */
    for (uint32_t i = 0; i < 8; i++)
        if (w.res[i].open)
            rig_end(&w.res[i]);
    nj_shape_run(w.shape[0], w.now + NJ_MS, rig_wake, NULL);
    nj_shape_run(w.shape[0], w.now + 100 * NJ_MS, rig_wake, NULL);
    cr_expect_eq(nj_shape_next_at(w.shape[0]), NJ_NEVER, "nothing is left in the wheel");
    rig_fini(&w);
}

/* The waiting responses have ended: the lease is returned. */
Test(shape_paced_body, a_lease_that_nobody_wants_goes_back)
{
    struct rig w;
    rig_init(&w, 1, 10);
    w.policy.classes[0].client = (struct nj_limit){0, MIB, 0};
    rig_start(&w, 10);
    rig_add(&w, 0, 0, 1, RIG_FOREVER);
    rig_add(&w, 0, 0, 1, RIG_FOREVER);
    rig_run(&w, NJ_SEC + 500 * NJ_US);
    struct rig_res *r = &w.res[0];
    uint64_t tat = r->client->rate_gcra.tat;
    cr_assert(nj_paced_is_waiting(&r->f) && nj_paced_is_waiting(&w.res[1].f));
    rig_end(&w.res[1]);
    cr_expect_eq(r->client->rate_gcra.tat, tat, "one response still waits for it");
    nj_ns until = nj_shape_next_at(w.shape[0]);
    cr_assert_gt(until, w.now, "it has a lease for later");
    struct nj_client *c = r->client;
    rig_end(r);
    cr_expect_leq(c->rate_gcra.tat, tat - nj_gcra_cost_down(MIB, NJ_QUANTUM_MIN_BYTES));
    rig_fini(&w);
}

Test(shape_paced_body, no_memory_for_another_client)
{
    struct rig w;
    rig_init(&w, 1, 10);
    rig_start(&w, 2);
    rig_add(&w, 0, 0, 1, 10);
    rig_add(&w, 0, 0, 2, 10);
    struct nj_paced f;
    struct nj_client *c = nj_clients_overflow_client(nj_shape_clients(w.shared));
    cr_expect_not(nj_paced_begin(w.shape[0], &f, &w.policy.classes[0], c, w.now));
    rig_fini(&w);
}
