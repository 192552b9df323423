/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers of routes in a whole shard, asked by real HTTP/2 clients. */
#include <criterion/criterion.h>

#include <nightjar/handler.h>

#include "support/handlers_rig.h"

/* ---- handlers ---- */

static void hello(struct nj_request *req, struct nj_response *resp, void *arg)
{
    cr_expect_eq(nj_response_header(resp, "content-type", "text/plain"), 0);
    cr_expect_eq(nj_response_write(resp, "hello\n", 6), 0);
}

static void slow(struct nj_request *req, struct nj_response *resp, void *arg)
{
    cr_expect_eq(nj_sleep(200 * NJ_MS), 0);
    cr_expect_eq(nj_response_write(resp, "slow\n", 5), 0);
}

static const struct nj_route few[] = {
    {.method = "GET", .path = "/hello", .type = NJ_NON_BLOCKING, .handle = hello},
    {.method = "GET", .path = "/slow", .type = NJ_BLOCKING, .handle = slow},
};

Test(shard_handlers, hello_goes_out_in_two_frames)
{
    struct hr *h = hr_start(hr_new(few, 2));
    struct hr_client *c = hr_connect(h);
    struct hr_reply *a = hr_reply_of(c, hr_get(c, "/hello"));

    hr_settle(h);
    cr_expect_eq(a->status, 200);
    cr_expect_str_eq(a->body, "hello\n");
    cr_expect_str_eq(a->length, "6");
    cr_expect(a->ended && a->closed && a->n_heads == 1 && a->n_datas == 1);
    cr_expect_eq(hr_class(h, 0)->n[NJ_MODE_PC], 1);
    hr_free(h);
}

Test(shard_handlers, a_blocking_one_sleeps_and_others_do_not)
{
    struct hr *h = hr_start(hr_new(few, 2));
    struct hr_client *c = hr_connect(h);
    struct hr_reply *s = hr_reply_of(c, hr_get(c, "/slow"));

    hr_settle(h);
    struct hr_reply *a = hr_reply_of(c, hr_get(c, "/hello"));
    hr_settle(h);
    cr_expect_eq(a->status, 200);
    hr_run(h, 199 * NJ_MS);
    cr_expect_eq(s->status, 0);
    hr_run(h, 3 * NJ_MS);
    cr_expect_eq(s->status, 200);
    cr_expect_str_eq(s->body, "slow\n");
    cr_expect_eq(hr_class(h, 1)->n[NJ_MODE_EPC_PARKED], 1);
    hr_free(h);
}
