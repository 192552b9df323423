/* SPDX-License-Identifier: BSD-3-Clause */
/* perf/ahead/pause.c: how many requests the server has parsed when it consumes one. */
#include "pause.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>

#include "support/handlers_rig.h"
#include "telem/counters.h"

#define ASKED_MAX 100u
#define PAUSE_MAX 9u /* requests */

static uint32_t n_run, parsed_at[ASKED_MAX]; /* when the i-th handler ran */
static uint32_t n_checked;                   /* of them */
static uint64_t n_bodies;

static void note(struct nj_request *req, struct nj_response *resp, void *arg)
{
    parsed_at[n_run++] = (uint32_t)nj_counter_read(&hr_here->r->s->counters, NJ_C_requests);
}

/* On a stack of its own, where it waits for the rest. */
static void swallow(struct nj_request *req, struct nj_response *resp, void *arg)
{
    uint8_t piece[500];
    int64_t n;

    note(req, resp, arg);
    while ((n = nj_request_read(req, piece, sizeof piece)) > 0)
        n_bodies += (uint64_t)n;
    cr_expect_eq(n, 0);
}

static const struct nj_route routes[] = {
    {.path = "/note", .type = NJ_NON_BLOCKING, .handle = note},
    {.path = "/swallow", .type = NJ_BLOCKING, .handle = swallow},
};

static struct hr *start(void)
{
    struct hr *h = hr_start(hr_new(routes, 2));

    n_run = n_checked = 0;
    n_bodies = 0;
    return h;
}

static void finish(struct hr *h)
{
    pause_after(0);
    hr_free(h);
}

/* ---- in one packet ---- */

/* The i-th of n requests that come in one packet. */
static uint32_t wanted(uint32_t i, uint32_t k, uint32_t n)
{
    uint32_t all = k ? (i / k + 1) * k : n;
    return all < n ? all : n;
}

Test(perf_ahead, so_many_are_parsed_when_one_is_consumed)
{
    for (uint32_t k = 0; k < PAUSE_MAX; k++) {
        struct hr *h = start();
        struct hr_client *c = hr_connect(h);

        pause_after(k);
        for (int i = 0; i < 8; i++)
            hr_get(c, "/note");
        hr_step(h);
        cr_assert_eq(n_run, 8);
        for (uint32_t i = 0; i < 8; i++)
            cr_expect_eq(parsed_at[i], wanted(i, k, 8), "%u of 8 by %u: %u", i, k, parsed_at[i]);
        finish(h);
    }
}

/* A request with a body is complete with the last byte of that, and not with its head. */
Test(perf_ahead, a_body_belongs_to_its_request)
{
    struct hr *h = start();
    struct hr_client *c = hr_connect(h);

    pause_after(1);
    for (int i = 0; i < 2; i++) {
        hr_post(c, "/swallow", 600);
        hr_gather(c); /* otherwise the heads of the other requests would arrive before the body */
    }
    hr_get(c, "/note");
    hr_step(h);
    cr_assert_eq(n_run, 3);
    for (uint32_t i = 0; i < 3; i++)
        cr_expect_eq(parsed_at[i], i + 1, "%u: %u", i, parsed_at[i]);
    cr_expect_eq(n_bodies, 1200);
    cr_expect_eq(hr_class(h, 1)->n[NJ_MODE_EPC_INLINE], 2, "they did not have to wait");
    hr_settle(h);
    finish(h);
}

/* ---- in packets that begin and end anywhere ---- */

/* No handler may find more requests parsed and not consumed than a pause lets come. */
static void check_backlog(uint32_t k, uint64_t seed)
{
    for (; n_checked < n_run; n_checked++)
        cr_assert(k == 0 || parsed_at[n_checked] - n_checked <= k, "seed %" PRIu64, seed);
}

/* Send the client's output in segments of 1 to 60 bytes: most frames span two or more. */
static void send_crumbs(struct hr_client *c, struct nj_prng *prng)
{
    uint32_t n;

    hr_gather(c);
    for (uint32_t at = 0; at < c->n_out; at += n) {
        n = 1 + nj_prng_below(prng, 60);
        n = n < c->n_out - at ? n : c->n_out - at;
        NJ_CHECK(rig_send(c->r, c->p, c->out + at, n));
        if (nj_prng_below(prng, 4) == 0)
            rig_step(c->r);
    }
    c->n_out = 0;
}

static void random_requests(uint64_t seed)
{
    struct hr *h = start();
    struct hr_client *c = hr_connect(h);
    struct nj_prng prng;
    uint32_t n_asked = 0;
    uint64_t n_sent = 0;
    int32_t id[ASKED_MAX];

    nj_prng_init(&prng, seed);
    while (n_asked < ASKED_MAX) {
        uint32_t k = nj_prng_below(&prng, PAUSE_MAX);
        pause_after(k);
        for (uint32_t n = 1 + nj_prng_below(&prng, 9); n > 0 && n_asked < ASKED_MAX; n--) {
            uint64_t n_body = nj_prng_below(&prng, 2) ? 1 + nj_prng_below(&prng, 300) : 0;
            n_sent += n_body;
            id[n_asked++] = n_body ? hr_post(c, "/swallow", n_body) : hr_get(c, "/note");
            hr_gather(c);
        }
        send_crumbs(c, &prng);
        hr_settle(h);
        check_backlog(k, seed);
    }
    for (uint32_t i = 0; i < n_asked; i++)
        cr_assert_eq(hr_reply_of(c, id[i])->status, 200, "seed %" PRIu64 ": request %u", seed, i);
    cr_expect_eq(n_bodies, n_sent, "seed %" PRIu64, seed);
    finish(h);
}

Test(perf_ahead, frames_in_pieces)
{
    const char *given = getenv("NJ_SEED");
    uint64_t from = given ? strtoull(given, NULL, 0) : 1;

    for (uint64_t seed = from; seed < from + (given ? 1 : 40); seed++)
        random_requests(seed);
}
