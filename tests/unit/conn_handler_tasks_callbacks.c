/* SPDX-License-Identifier: BSD-3-Clause */
/* When and how often callbacks of a deferred response are called. */
#include <criterion/criterion.h>

#include "support/handlers_rig.h"

#define BYTES 100000u

static uint8_t bytes[BYTES];
static unsigned n_body, n_timer, n_writable;
static struct nj_response *kept;
static bool takes_back;

static void end(struct nj_request *req, struct nj_response *resp, void *arg)
{
    n_writable++;
    nj_response_end(resp);
}

static void register_late(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_on_writable(resp, end, NULL);
}

/* Room becomes free while no callback is registered. */
static void late(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_defer(resp);
    nj_response_try_write(resp, bytes, BYTES);
    nj_response_on_timer(resp, NJ_SEC, register_late, NULL);
}

static void writable_again(struct nj_request *req, struct nj_response *resp, void *arg)
{
    n_writable++;
    nj_response_on_writable(resp, writable_again, NULL);
}

/* Registers the callback repeatedly and writes nothing. */
static void idle(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_defer(resp);
    nj_response_try_write(resp, bytes, BYTES);
    nj_response_on_timer(resp, NJ_SEC, writable_again, NULL);
}

static void body_again(struct nj_request *req, struct nj_response *resp, void *arg)
{
    uint8_t b[64];

    n_body++;
    if (arg)
        while (nj_request_read(req, b, sizeof b) > 0) {
        }
    nj_request_on_body(req, body_again, arg);
}

static void hand_over(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_request_on_body(req, body_again, bytes);
}

static void body(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_defer(resp);
    nj_request_on_body(req, arg ? hand_over : body_again, NULL);
}

static void stalled(struct nj_request *req, struct nj_response *resp, void *arg)
{
    n_timer++;
}

static void on_room(struct nj_request *req, struct nj_response *resp, void *arg)
{
    n_writable++;
    nj_response_try_write(resp, bytes, BYTES);
    nj_response_on_timer(resp, takes_back ? 0 : 10 * NJ_SEC, stalled, NULL);
}

/* "The peer took nothing for 10 s." */
static void watch(struct nj_request *req, struct nj_response *resp, void *arg)
{
    kept = resp;
    nj_response_defer(resp);
    nj_response_on_writable(resp, on_room, NULL);
    nj_response_try_write(resp, bytes, BYTES);
    nj_response_on_timer(resp, 10 * NJ_SEC, stalled, NULL);
}

static const struct nj_route routes[] = {
    {.path = "/late", .type = NJ_NON_BLOCKING, .handle = late},
    {.path = "/idle", .type = NJ_NON_BLOCKING, .handle = idle},
    {.path = "/body", .type = NJ_NON_BLOCKING, .handle = body},
    {.path = "/body/other", .type = NJ_NON_BLOCKING, .handle = body, .arg = bytes},
    {.path = "/watch", .type = NJ_NON_BLOCKING, .handle = watch},
};

static struct hr *start(void)
{
    n_body = n_timer = n_writable = 0;
    return hr_start(hr_new(routes, NJ_ARRAY_LEN(routes)));
}

static struct hr_client *small_window(struct hr *h)
{
    return hr_connect_with(h, &(struct hr_options){.window = 20000, .no_auto = true});
}

Test(conn_handler_tasks_callbacks, room_that_came_before)
{
    struct hr *h = start();
    struct hr_client *c = hr_connect(h);
    const struct hr_reply *a = hr_reply_of(c, hr_get(c, "/late"));

    hr_run(h, 3 * NJ_SEC);
    cr_expect(n_writable == 1 && a->ended, "%u calls", n_writable);
    hr_free(h);
}

Test(conn_handler_tasks_callbacks, once_for_each_lack_of_room)
{
    struct hr *h = start();
    struct hr_client *c = small_window(h);

    hr_get(c, "/idle");
    hr_run(h, 3 * NJ_SEC);
    cr_expect_leq(n_writable, 2, "%u calls", n_writable);
    hr_free(h);
}

/* The body is complete when the callback is registered. Another function is notified, too. */
Test(conn_handler_tasks_callbacks, once_for_what_came)
{
    struct hr *h = start();
    struct hr_client *c = hr_connect(h);

    hr_post(c, "/body", 1000);
    hr_run(h, NJ_SEC);
    cr_expect(n_body >= 1 && n_body <= 3, "%u calls", n_body);
    n_body = 0;
    hr_post(c, "/body/other", 1000);
    hr_run(h, NJ_SEC);
    cr_expect(n_body >= 1 && n_body <= 3, "%u calls", n_body);
    hr_free(h);
}

/* Room and timer are due at once; the callback for room runs first. */
static void expect_no_timer(void)
{
    struct hr *h = start();
    struct hr_client *c = small_window(h);
    int32_t id = hr_get(c, "/watch");

    hr_settle(h);
    nj_ns at = h->r->now;
    hr_run(h, 9 * NJ_SEC);
    h->r->now = at + 10 * NJ_SEC - 100 * NJ_US;
    nghttp2_submit_window_update(c->s, 0, id, 30000);
    for (int i = 0; i < 100 && !(nj__exchange_of_resp(kept)->due & NJ__DUE_WRITABLE); i++)
        hr_step(h);
    cr_assert(nj__exchange_of_resp(kept)->due & NJ__DUE_WRITABLE);
    cr_assert_eq(n_writable, 0);
    h->r->now = at + 10 * NJ_SEC + 2 * NJ_MS;
    hr_settle(h);
    cr_expect_eq(n_writable, 1);
    cr_expect_eq(n_timer, 0);
    hr_run(h, 12 * NJ_SEC);
    cr_expect_eq(n_timer, takes_back ? 0 : 1);
    hr_free(h);
}

Test(conn_handler_tasks_callbacks, timer_that_is_set_anew)
{
    takes_back = false;
    expect_no_timer();
}

Test(conn_handler_tasks_callbacks, timer_that_is_taken_back)
{
    takes_back = true;
    expect_no_timer();
}
