/* SPDX-License-Identifier: BSD-3-Clause */
/* The time of a test: the shard's steps, and the clients' between them. */
#include "dpdk/lcore_loop.h"
#include "testing/testing_internal.h"

#define STEPS_MAX 1000000u /* without time */

static bool step(struct nj_test *t)
{
    bool any = false;

    for (struct nj_test_client *c = t->clients; c; c = c->next) {
        if (!c->is_dead)
            nj__test_h2_send_bodies(c);
        any |= nj__test_tcp_flush(c);
    }
    any |= t->n_in > 0;
    any |= nj_shard_step(t->shard, t->now) > 0;
    for (struct nj_test_client *c = t->clients; c; c = c->next) {
        nj__test_h2_input(c);
        if (c->is_dead)
            nj__test_h2_end(c);
    }
    return any;
}

void nj__test_settle(struct nj_test *t)
{
    unsigned before = nj_lcore_set_id(0);

    for (uint32_t i = 0; i < STEPS_MAX; i++)
        if (!step(t) && t->n_in == 0 && nj_shard_next_at(t->shard) > t->now)
            break;
    nj_lcore_set_id(before);
}

/* To the next event, but not beyond `end`. False: `end` is reached. */
static bool advance_once(struct nj_test *t, nj_ns end)
{
    nj_ns next = nj_shard_next_at(t->shard);

    if (t->now >= end)
        return false;
    if (next <= t->now) /* the steps above were not enough */
        next = t->now + NJ_MS;
    t->now = nj_min_u64(next, end);
    nj__test_settle(t);
    return true;
}

static nj_ns time_in(const struct nj_test *t, uint64_t ns)
{
    return ns < NJ_NEVER - t->now ? t->now + ns : NJ_NEVER - 1;
}

void nj_test_advance(struct nj_test *t, uint64_t ns)
{
    nj_ns end = time_in(t, ns);

    nj__test_settle(t);
    while (advance_once(t, end))
        ;
}

static bool is_done(const struct nj_test_request *r)
{
    return r->resp.is_ended || r->resp.is_reset;
}

bool nj_test_wait(struct nj_test_request *r, uint64_t ns)
{
    struct nj_test *t = r->client->t;
    nj_ns end = time_in(t, ns);

    nj__test_settle(t);
    while (!is_done(r) && advance_once(t, end))
        ;
    return is_done(r);
}

uint64_t nj_test_now(const struct nj_test *t)
{
    return t->now - t->began;
}
